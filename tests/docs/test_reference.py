"""The reference has every public name, and every public name shows how it is used."""

import inspect
import re
from pathlib import Path

import pytest

import halfseen
from halfseen import paper, params, sklearn, testing, tofu

API = Path(__file__).resolve().parents[2] / "docs" / "api"
DECLARATIONS = ("integer", "real", "size", "horizon", "probability", "choice", "flag", "custom")
PUBLIC = {
    **{name: getattr(halfseen, name) for name in halfseen.__all__},
    **{f"params.{name}": getattr(params, name) for name in DECLARATIONS},
    **{f"paper.{name}": getattr(paper, name) for name in paper.__all__},
    **{f"sklearn.{name}": getattr(sklearn, name) for name in sklearn.__all__},
    **{f"testing.{name}": getattr(testing, name) for name in testing.__all__},
    **{f"tofu.{name}": getattr(tofu, name) for name in tofu.__all__ if not hasattr(halfseen, name)},
}


def listed():
    """Return the names in the tables of the reference, in their order."""
    tables = re.findall(
        r"\.\. autosummary::\n   :toctree: generated\n\n((?:   \S+\n)+)",
        "".join(page.read_text("utf-8") for page in sorted(API.glob("*.md"))),
    )
    return [name for table in tables for name in table.split()]


def test_the_reference_lists_every_public_name_once():
    assert sorted(listed()) == sorted(PUBLIC)


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_has_an_example(name):
    assert ">>>" in (inspect.getdoc(PUBLIC[name]) or ""), f"{name} has no example"


def test_every_declaration_of_parameters_is_in_the_reference():
    own = [each for each in vars(params).values() if inspect.isfunction(each)]
    names = {each.__name__ for each in own if each.__module__ == params.__name__}
    assert {name for name in names if not name.startswith("_")} == {*DECLARATIONS}
