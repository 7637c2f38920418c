"""The code behind a class or function, as one digest.

That is its module and all modules that this one uses; of a script or notebook, whose other parts
change more often, only the definitions and values that the class uses. Sources are compared as
syntax trees without docstrings: comments and layout do not count. Modules of halfseen and files of
the user's own are followed; installed packages are not, except the one that has the class.
"""

import ast
import hashlib
import json
import linecache
import symtable
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from importlib.util import find_spec, resolve_name
from inspect import unwrap
from pathlib import Path
from pickle import PicklingError
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

from halfseen.lazy import from_extra

Code = type | FunctionType

_INSTALLED = {"site-packages", "dist-packages"}
_BY_TEXT = ("LazyModule", "import_module")  # calls that name a module by a text


class Use(NamedTuple):
    """A name that is taken from a module; empty for the module as a whole."""

    module: str
    name: str = ""


class Source(NamedTuple):
    """A module's source: its digest, what it uses, and the names of its classes and functions."""

    digest: str
    uses: frozenset[Use] = frozenset()
    names: frozenset[str] = frozenset()


@cache
def code_digest(thing: Any) -> str | None:
    """Return a digest of the code behind a class or function; None if a source cannot be read.

    It is computed once per class: importing an edited module again makes a new class.

    Raises
    ------
    MissingExtraError
        The class is defined in a script, and joblib, which makes digests of values, is missing.

    Examples
    --------
    >>> from halfseen import TofuPov, Uniform
    >>> code_digest(TofuPov) == code_digest(Uniform)
    False
    """
    if not isinstance(thing, Code) or "<locals>" in thing.__qualname__:
        return None  # it may use variables of the function that defines it
    home = thing.__module__
    try:
        if home == "__main__":
            parts, uses = _parts_of_script(thing)
            sources = sources_of(uses)
        else:
            parts, sources = {}, sources_of([Use(home)], home.partition(".")[0])
            if home not in sources or thing.__name__ not in sources[home].names:
                return None
    except (OSError, SyntaxError, ImportError, PicklingError, TypeError, ValueError):
        return None
    return digest_of(parts | {name: source.digest for name, source in sources.items()})


def digest_of(plain: Any) -> str:
    """Return a digest of plain JSON types."""
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:16]


# Modules


def sources_of(uses: Iterable[Use], *packages: str) -> dict[str, Source]:
    """Return the sources of all modules that are used, directly or by others, by name.

    `packages` are followed even if they are installed.
    """

    def followed(module: str) -> bool:
        top = module.partition(".")[0]
        return top in ("halfseen", *packages) or _is_own(top)

    sources: dict[str, Source] = {}
    waiting, seen = list(uses), set(uses)
    while waiting:
        use = waiting.pop()
        name = _home(use) if followed(use.module) else ""
        if not name or name in sources or not followed(name):
            continue
        spec = _spec(name)
        if spec is not None and spec.has_location:
            package = name if spec.submodule_search_locations else name.rpartition(".")[0]
            compiled = not spec.origin.endswith(".py")
            sources[name] = source = _source(Path(spec.origin).read_bytes(), package, compiled)
            waiting += source.uses - seen
            seen |= source.uses
    return sources


def _home(use: Use) -> str:
    """Return the module that a use leads to.

    A name that a package passes on counts where it is defined, not as a use of the whole package.
    """
    module = sys.modules.get(use.module)
    if use.name and (module is None or hasattr(module, "__path__")):
        inner = f"{use.module}.{use.name}"
        if _spec(inner) is not None:
            return inner
        value = getattr(module, use.name, None)
        if isinstance(value, Code):
            return value.__module__
    return use.module


def _is_own(top: str) -> bool:
    """Tell whether a module is a file of the user's: not part of Python, and not installed."""
    spec = None if top in sys.stdlib_module_names else _spec(top)
    if spec is None:
        return False
    places = spec.submodule_search_locations or [spec.origin or ""]
    return not any(_INSTALLED & set(Path(place).parts) for place in places)


def _spec(name: str) -> Any:
    try:
        return find_spec(name)
    except (ImportError, ValueError):  # its parent is no package; a script
        return None


@lru_cache(maxsize=1024)  # by content: classes share most of their modules
def _source(content: bytes, package: str, compiled: bool) -> Source:
    if compiled:
        return Source(hashlib.sha256(content).hexdigest())
    tree = _stripped(ast.parse(content))
    nodes = list(ast.walk(tree))
    names = (node.name for node in nodes if isinstance(node, ast.ClassDef | ast.FunctionDef))
    uses = _uses_among(nodes, package, {})
    return Source(digest_of(ast.dump(tree)), frozenset(uses), frozenset(names))


# Scripts and notebooks


def _parts_of_script(thing: Code) -> tuple[dict[str, str], set[Use]]:
    """Return digests of what a class uses of its script, by name, and what it uses of modules."""
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
            uses.update(_uses_among(ast.walk(tree), "", modules))
            for name in _global_names(tree) & script.keys():
                value = unwrap(script[name])
                if isinstance(value, Code):
                    waiting.append(value)
                elif not isinstance(value, ModuleType):
                    parts[f"{name} ="] = joblib.hash(value)
                    waiting.append(type(value))
    return parts, uses


def _definition(thing: Code) -> ast.AST:
    """Return all definitions that have the name of a class or function, as one tree."""
    for file in _files(thing):
        linecache.checkcache(file)  # the script may have been edited and run again
        tree = ast.parse("".join(linecache.getlines(file)))
        kinds = ast.ClassDef | ast.FunctionDef
        each = (node for node in ast.walk(tree) if isinstance(node, kinds))
        found: list[ast.stmt] = [node for node in each if node.name == thing.__name__]
        if found:
            return _stripped(ast.Module(found, []))
    raise OSError(f"the source of {thing.__qualname__} cannot be found")


def _files(thing: Code) -> Iterator[str]:
    """Yield the files that may have a definition; every cell of a notebook is a file of its own."""
    for each in vars(thing).values() if isinstance(thing, type) else [thing]:
        function = unwrap(each)
        if isinstance(function, FunctionType):
            yield function.__code__.co_filename
    yield getattr(sys.modules["__main__"], "__file__", None) or ""


def _global_names(tree: ast.AST) -> set[str]:
    """Return the names that a definition takes from its script."""
    names: set[str] = set()
    tables = [symtable.symtable(ast.unparse(tree), "", "exec")]
    for table in tables:
        tables += table.get_children()
        names |= {each.get_name() for each in table.get_symbols() if each.is_global()}
    return names


# Syntax trees


def _stripped(node: ast.AST) -> ast.AST:
    """Return a tree without what never runs: docstrings, and imports for type checkers."""
    for name in ("body", "orelse", "finalbody", "handlers"):
        statements = getattr(node, name, None)
        if isinstance(statements, list):
            statements[:] = [_stripped(each) for each in statements if not _is_idle(each)]
    return node


def _is_idle(node: ast.AST) -> bool:
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.If):
        return _last_name(node.test) == "TYPE_CHECKING" and not node.orelse
    return False


def _last_name(node: ast.AST) -> str:
    """Return `c` of `c` and of `a.b.c`."""
    return str(getattr(node, "id", None) or getattr(node, "attr", None))


def _uses_among(
    nodes: Iterable[ast.AST], package: str, modules: Mapping[str, str]
) -> Iterator[Use]:
    """Yield what the nodes of a tree use of modules.

    Relative imports refer to `package`; `modules` are those imported elsewhere, by local name.
    """
    known, attributes = dict(modules), []
    for node in nodes:
        if isinstance(node, ast.Attribute):
            attributes.append(node)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield Use(alias.name)
                top = alias.name.partition(".")[0]
                known[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom):
            home = resolve_name("." * node.level + (node.module or ""), package)
            for alias in node.names:
                yield Use(home, "" if alias.name == "*" else alias.name)
        elif isinstance(node, ast.Call) and _last_name(node.func) in _BY_TEXT:
            for argument in node.args[:1]:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield Use(argument.value)
    for node in attributes:
        if isinstance(node.value, ast.Name) and node.value.id in known:
            yield Use(known[node.value.id], node.attr)
