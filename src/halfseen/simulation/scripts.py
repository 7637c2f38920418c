"""Which code a class of a script or notebook stands on: not all of it, but what the class uses.

The rest of a script may draw figures or read results, and changes more often.
"""

import ast
import linecache
import symtable
import sys
from collections.abc import Iterator
from inspect import unwrap
from types import FunctionType, ModuleType

from halfseen.lazy import from_extra
from halfseen.simulation.sources import Code, Use, digest_of, stripped, uses_among


def parts_of_script(thing: Code) -> tuple[dict[str, str], set[Use]]:
    """Return what a class or function uses of its script, and of other modules.

    Returns
    -------
    parts : dict
        Digests of definitions and of values, by name.
    uses : set of Use

    Raises
    ------
    OSError
        A source cannot be read.
    MissingExtraError
        joblib, which makes digests of values, is not installed.
    """
    with from_extra("paper", "define the class in a module"):
        import joblib

    script = vars(sys.modules["__main__"])
    modules = {name: each.__name__ for name, each in script.items() if isinstance(each, ModuleType)}
    parts: dict[str, str] = {}
    uses: set[Use] = set()
    waiting = [thing]
    while waiting:
        current = waiting.pop()
        if current.__module__ != "__main__":
            uses.add(Use(current.__module__))
        elif current.__qualname__ not in parts:
            tree = _definition(current)
            parts[current.__qualname__] = digest_of(ast.dump(tree))
            uses.update(uses_among(ast.walk(tree), "", modules))
            for name in _global_names(tree) & script.keys():
                value = unwrap(script[name])
                if isinstance(value, Code):
                    waiting.append(value)
                elif not isinstance(value, ModuleType):
                    parts[f"{name} ="] = joblib.hash(value)
                    waiting.append(type(value))
    return parts, uses


def _global_names(tree: ast.AST) -> set[str]:
    """Return the names that a definition takes from its script."""
    names: set[str] = set()
    tables = [symtable.symtable(ast.unparse(tree), "", "exec")]
    for table in tables:
        tables += table.get_children()
        names |= {each.get_name() for each in table.get_symbols() if each.is_global()}
    return names


def _definition(thing: Code) -> ast.AST:
    """Return all definitions that have the name of a class or function, as one tree."""
    for file in _files(thing):
        linecache.checkcache(file)  # the script may have been edited and run again
        tree = ast.parse("".join(linecache.getlines(file)))
        kinds = ast.ClassDef | ast.FunctionDef
        each = (node for node in ast.walk(tree) if isinstance(node, kinds))
        found: list[ast.stmt] = [node for node in each if node.name == thing.__name__]
        if found:
            return stripped(ast.Module(found, []))
    raise OSError(f"the source of {thing.__qualname__} cannot be found")


def _files(thing: Code) -> Iterator[str]:
    """Yield the files in which a definition may stand; every cell of a notebook has its own."""
    for each in vars(thing).values() if isinstance(thing, type) else [thing]:
        function = unwrap(each)
        if isinstance(function, FunctionType):
            yield function.__code__.co_filename
    yield getattr(sys.modules["__main__"], "__file__", None) or ""
