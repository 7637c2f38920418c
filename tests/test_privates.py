"""No object uses private names of another one, where agents, tools and studies meet policies."""

import ast
from pathlib import Path

import pytest

import halfseen
from halfseen.policies.base import Policy

SOURCE = Path(halfseen.__file__).parent
ROOMS = (
    "agent",
    "service",
    "tools",
    "simulation",
    "testing",
    "paper",
    "report",
    "policies",
    "baselines",
)
FILES = [*SOURCE.glob("*.py"), *(path for room in ROOMS for path in (SOURCE / room).rglob("*.py"))]
PUBLIC = {"_replace", "_asdict", "_fields", "_exit"}  # of named tuples, and `os._exit`


def own_names(kind):
    """Return the names that a class defines: methods, and attributes of `self` or `cls`."""
    for node in ast.walk(kind):
        if isinstance(node, ast.FunctionDef):
            yield node.name
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("self", "cls"):
            yield node.attr


def foreign_privates(node, own=frozenset()):
    """Yield each use of a private name of another object; a class may use its own names."""
    if isinstance(node, ast.ClassDef):
        own = own | set(own_names(node))
    if isinstance(node, ast.Attribute) and node.attr.startswith("_"):
        is_magic = node.attr.startswith("__")
        is_own = ast.unparse(node.value) in ("self", "cls", "super()") or node.attr in own
        if not (is_magic or is_own or node.attr in PUBLIC):
            yield ast.unparse(node)
    for child in ast.iter_child_nodes(node):
        yield from foreign_privates(child, own)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_module_uses_private_names_of_other_objects(path):
    assert list(foreign_privates(ast.parse(path.read_text("utf-8")))) == []


def test_private_names_of_other_objects_are_found():
    tree = ast.parse("class A:\n    def f(self, b):\n        return self._x + b._x + b.c._y + b._z")
    assert list(foreign_privates(tree)) == ["b.c._y", "b._z"]


def test_the_base_class_of_policies_is_short():
    tree = ast.parse((SOURCE / "policies" / "base.py").read_text("utf-8"))
    (kind,) = (node for node in tree.body if getattr(node, "name", "") == Policy.__name__)
    assert kind.end_lineno - kind.lineno < 280
