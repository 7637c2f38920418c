"""The paper's algorithm."""

from halfseen.tofu import policy

__all__ = ["policy"]
