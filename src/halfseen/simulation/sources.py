"""Which code a class or function stands on: its module, and all modules that this one uses.

Sources are compared as syntax trees without docstrings, so that comments and layout do not count.
Modules of halfseen and files of the user's own are followed; installed packages are not, except the
one in which the class itself lives.
"""

import ast
import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from importlib.util import find_spec, resolve_name
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

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
    uses: frozenset[Use]
    names: frozenset[str]


def sources_of(uses: Iterable[Use], *packages: str) -> dict[str, Source]:
    """Return the sources of all modules that are used, directly or by others, by name.

    `packages` are followed although they may be installed.
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
            sources[name] = source = _read(Path(spec.origin), package)
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


def _read(path: Path, package: str) -> Source:
    stat = path.stat()
    return _read_version(path, package, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=1024)
def _read_version(path: Path, package: str, changed: int, size: int) -> Source:
    content = path.read_bytes()
    if path.suffix != ".py":  # compiled
        return Source(hashlib.sha256(content).hexdigest(), frozenset(), frozenset())
    tree = stripped(ast.parse(content))
    nodes = list(ast.walk(tree))
    names = (node.name for node in nodes if isinstance(node, ast.ClassDef | ast.FunctionDef))
    return Source(
        digest_of(ast.dump(tree)), frozenset(uses_among(nodes, package)), frozenset(names)
    )


def stripped(node: ast.AST) -> ast.AST:
    """Return a tree without what never runs: docstrings, and imports for type checkers."""
    for name in ("body", "orelse", "finalbody", "handlers"):
        statements = getattr(node, name, None)
        if isinstance(statements, list):
            statements[:] = [stripped(each) for each in statements if not _is_idle(each)]
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


def uses_among(
    nodes: Iterable[ast.AST], package: str, modules: Mapping[str, str] | None = None
) -> Iterator[Use]:
    """Yield what the nodes of a tree use of modules.

    Parameters
    ----------
    nodes : iterable of AST
    package : str
        To which relative imports refer.
    modules : mapping, optional
        Modules that are known without an import, by their local names.
    """
    known, attributes = dict(modules or {}), []
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


def digest_of(plain: Any) -> str:
    """Return a digest of plain JSON types."""
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:16]
