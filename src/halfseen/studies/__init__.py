"""The paper's figures and tables as data: which worlds, which methods, which seeds."""

import halfseen.paper  # noqa: F401 (registers the worlds and measures of the paper)
