"""The site: `make docs` builds it into docs/_build/html. Pages need no network."""

import sys
from pathlib import Path

from sphinx.application import Sphinx

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))

import halfseen  # noqa: E402

project = "halfseen"
author = "the authors of halfseen"
version = release = halfseen.__version__
copyright = "the authors of halfseen, MIT licence"

extensions = [
    "gallery",
    "myst_parser",
    "numpydoc",
    "paper_figures",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_design",
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]
nitpicky = True
default_role = "py:obj"  # a link where the name is public, code where it is not
nitpick_ignore_regex = [
    (r"py:obj", r".*"),
    (r"py:(class|exc|data|meth|attr)", r"(?!halfseen\.).*"),  # other libraries: no network
    (r"py:(class|exc|data)", r"halfseen\.[a-z].*"),  # where a name is defined is not public
]
suppress_warnings = ["config.cache"]

# Markdown
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

# Reference
autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"  # types stand in the docstrings
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
numpydoc_validation_checks = set()

html_theme = "pydata_sphinx_theme"
html_title = "halfseen"
html_static_path = ["_static"]
html_css_files = ["halfseen.css"]
html_favicon = "_static/favicon.svg"
html_show_sourcelink = False
html_copy_source = False
html_show_sphinx = False
html_context = {"default_mode": "auto"}  # light or dark, as the system says
LONE = [
    "index",
    "compare",
    "glossary",
    "experiments",
    "contributing",
    "changes",
    "search",
    "genindex",
]
html_sidebars = {
    "**": ["sidebar-nav-bs", "page-toc"],  # one table of contents: the part, then the page
    "deploy": ["page-toc"],
    **{page: [] for page in LONE},
}
html_theme_options = {
    "logo": {
        "text": "halfseen",
        "image_light": "_static/favicon.svg",
        "image_dark": "_static/favicon.svg",
        "alt_text": "halfseen",
    },
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "header_links_before_dropdown": 8,
    "collapse_navigation": True,
    "secondary_sidebar_items": [],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}


def leave_out(app: Sphinx, what: str, name: str, value: object, skip: bool, given: object) -> bool:
    """Leave out fields of named tuples and scikit-learn's routing methods."""
    text = getattr(value, "__doc__", None) or ""
    return skip or text.startswith("Alias for field number") or name.endswith("_request")


def setup(app: Sphinx) -> None:
    """Connect what this file defines."""
    app.connect("autodoc-skip-member", leave_out)
