"""The public names are few, listed, light to import, and the README's example runs."""

import ast
import importlib
import io
import re
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest

import halfseen

ROOT = Path(__file__).resolve().parents[1]
HEAVY = ("pandas", "matplotlib", "sklearn", "numba", "scipy", "joblib", "rich", "typer")


def loaded_after(statement):
    """Return the top-level packages that a fresh interpreter has loaded after a statement."""
    program = f"{statement}\nimport sys\nprint(*{{name.split('.')[0] for name in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_the_listed_names_are_those_that_are_found_on_demand():
    assert halfseen.__all__ == sorted(halfseen.__all__)
    assert set(halfseen.__all__) == set(halfseen._HOME)


@pytest.mark.parametrize("name", halfseen.__all__)
def test_every_public_name_resolves_to_the_object_of_its_module(name):
    home = importlib.import_module(f"halfseen.{halfseen._HOME[name]}")
    value = getattr(halfseen, name)
    assert value is getattr(home, name)
    assert value.__module__ == home.__name__
    assert value.__doc__


def test_type_checkers_see_the_same_names_at_the_same_places():
    tree = ast.parse(Path(halfseen.__file__).read_text("utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.name: statement.module for statement in block.body for alias in statement.names}
    assert seen == {name: f"halfseen.{home}" for name, home in halfseen._HOME.items()}


def test_dir_lists_all_public_names():
    assert set(halfseen.__all__) <= set(dir(halfseen))


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'Clairvoyant'"):
        halfseen.Clairvoyant  # noqa: B018


def test_importing_the_package_loads_nothing_heavy():
    loaded = loaded_after("import halfseen")
    assert "halfseen" in loaded
    assert not loaded & {*HEAVY, "numpy"}


@pytest.mark.parametrize("name", ["Slate", "Decision", "HalfseenError"])
def test_values_and_errors_load_nothing_heavy(name):
    assert not loaded_after(f"from halfseen import {name}") & set(HEAVY)


def test_a_policy_loads_what_it_needs_and_no_more():
    loaded = loaded_after("from halfseen import TofuPov")
    assert "numba" in loaded
    assert not loaded & {"pandas", "matplotlib", "sklearn", "joblib", "rich", "typer"}


def test_every_error_is_a_halfseen_error_and_can_be_caught_as_what_it_is():
    errors = {name for name, home in halfseen._HOME.items() if home == "errors"}
    assert all(issubclass(getattr(halfseen, name), halfseen.HalfseenError) for name in errors)
    assert issubclass(halfseen.InvalidSlateError, ValueError)
    assert issubclass(halfseen.UnknownDecisionError, LookupError)


def python_blocks():
    return re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)


def test_the_readme_has_one_example_of_about_fifteen_lines():
    (example,) = python_blocks()
    assert len([line for line in example.splitlines() if line.strip()]) <= 16


def test_the_readmes_example_runs():
    (example,) = python_blocks()
    names, printed = {}, io.StringIO()
    with redirect_stdout(printed):
        exec(compile(example, "README.md", "exec"), names)
    assert names["policy"].round > 0
    assert printed.getvalue()


def test_the_package_is_typed():
    assert (Path(halfseen.__file__).parent / "py.typed").exists()


def test_the_version_is_a_version():
    assert re.fullmatch(r"\d+\.\d+\.\d+", halfseen.__version__)
