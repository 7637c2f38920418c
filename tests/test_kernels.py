"""Compiled loops: each file complete in itself, and loops that do several steps at once."""

import ast
import importlib
import math
import pkgutil
import types
from pathlib import Path

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

from halfseen import kernels
from halfseen.kernels import ridge
from halfseen.linear.ridge import Ridge

NAN = math.nan
FILES = [name for _, name, _ in pkgutil.iter_modules(kernels.__path__)]


def trained(dim):
    """Return a regression that has seen a few samples."""
    rng = np.random.default_rng(dim)
    model = Ridge(dim, ridge=0.5)
    model.insert(rng.normal(size=(2 * dim, dim)), rng.normal(size=2 * dim))
    return model


# -- files -----------------------------------------------------------------------------------------


def read_names(function):
    """Return the global names that a function reads, inner functions included."""
    found, codes = set(), [function.__code__]
    while codes:
        code = codes.pop()
        found.update(code.co_names)
        codes.extend(each for each in code.co_consts if isinstance(each, types.CodeType))
    return found & function.__globals__.keys()


@pytest.mark.parametrize("name", FILES)
def test_a_compiled_function_reads_nothing_of_another_file(name):
    """numba notices a change of a function's own file only: another file would leave it stale."""
    module = importlib.import_module(f"halfseen.kernels.{name}")
    tree = ast.parse(Path(module.__file__).read_text())
    own = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in ast.walk(node)
        if isinstance(target, ast.Name) and isinstance(target.ctx, ast.Store)
    }
    own |= {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    for each in vars(module).values():
        if isinstance(each, Dispatcher):
            assert each.py_func.__module__ == module.__name__, "a compiled function of another file"
            outside = read_names(each.py_func) - own - {"np", "float64", "int64", "uint64"}
            assert not outside, f"{each.__name__} reads {outside}"


def test_all_compiled_functions_live_among_the_kernels():
    package = Path(kernels.__path__[0]).parent
    compiled = {file for file in package.rglob("*.py") if "\n@compiled(" in file.read_text()}
    assert len(compiled) == len(FILES) - 1  # without the decorator
    assert {file.parent.name for file in compiled} == {"kernels"}


# -- the root --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [1, 4, 7])
def test_inserting_is_updating_one_by_one_bit_by_bit(dim):
    rng = np.random.default_rng(dim)
    points, rewards = rng.normal(size=(30, dim)), rng.normal(size=30)
    points[rng.random(points.shape) < 0.3] = NAN
    model = trained(dim)
    at_once, one_by_one = model.root.copy(), model.root.copy()
    ridge.insert(at_once, points, rewards)
    for point, reward in zip(points, rewards, strict=True):
        ridge.update(one_by_one, point, reward, one_by_one[:0])
    assert at_once[:-2].tobytes() == one_by_one[:-2].tobytes()
    np.testing.assert_allclose(at_once[-2:], one_by_one[-2:], rtol=1e-14)
