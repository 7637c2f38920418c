"""A stored result is used again if nothing that decides it has changed, and only then."""

import importlib
import json
import linecache
import runpy
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

import pytest

from halfseen import (
    AmbientOful,
    LowRankWorld,
    ProductContextWorld,
    TableWorld,
    TofuPov,
    Uniform,
    simulate,
)
from halfseen.measures import measure_named
from halfseen.policies.registry import _CLASSES, register_policy
from halfseen.simulation import fingerprints
from halfseen.simulation.cells import Cell, CellKey
from halfseen.simulation.methods import METHODS, Method
from halfseen.simulation.sources import Use, code_digest, sources_of
from halfseen.worlds.masking import _LAWS, Bernoulli, register_mask_law
from halfseen.worlds.registry import world_from

SOURCES = Path(__file__).resolve().parents[2] / "src"
WORLD = {"kind": "low-rank", "dim": 5, "rank": 1, "n_arms": 3, "horizon": 12}


def cell(method=METHODS["tofu"], world=WORLD):
    key = CellKey("s", "default", 0.3, "m", 0)
    return Cell(key=key, world=world_from(world), method=method)


def modules_behind(thing):
    return set(sources_of([Use(thing.__module__)]))


# A study of one's own, in files that are edited between two runs.

POLICY = """
from halfseen import AmbientOful
from halfseen.policies.registry import register_policy

import helper  # a remark


@register_policy
class Mine(AmbientOful):
    '''Learns something else than it was paid.'''

    def learn(self, decision, reward):
        super().learn(decision, helper.FACTOR * helper.twisted(reward))
"""
HELPER = """
FACTOR = 1.0


def twisted(reward):
    return reward
"""


@pytest.fixture
def home(tmp_path):
    for name, text in (("mine.py", POLICY), ("helper.py", HELPER)):
        (tmp_path / name).write_text(text)
    return tmp_path


def edit(path, before, after):
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))


@pytest.fixture
def imported(home, monkeypatch):
    """Return a function that imports the user's files anew and returns the policy."""
    monkeypatch.syspath_prepend(home)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    names = ("mine", "helper", "deep", "deep.inner", "other")

    def import_anew():
        for name in names:
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        return importlib.import_module("mine").Mine

    yield import_anew
    for name in names:
        sys.modules.pop(name, None)
    del _CLASSES["Mine"]


@pytest.fixture
def digest(imported):
    """Return a function that imports the user's files anew and returns the digest of the policy."""
    return lambda: code_digest(imported())


def run_again(home):
    """Return how many cells were run, and all regrets."""
    world = LowRankWorld(dim=6, rank=2, n_arms=5, horizon=60)
    out = home / "results"
    tables = simulate({"mine": {"policy": "Mine"}}, world, range(2), jobs=1, out=out)
    manifest = json.loads((out / "manifest.json").read_text())
    return manifest["cells_run_now"], [row["final_regret"] for row in tables.per_seed]


def test_an_edited_policy_is_run_again_and_an_unchanged_one_is_not(home, imported):
    imported()
    n_run, first = run_again(home)
    assert n_run == 2
    edit(home / "mine.py", "# a remark", "# another remark")
    edit(home / "mine.py", "Learns something else than it was paid.", "As it is paid.")
    edit(home / "helper.py", "return reward", "return   (reward)")
    imported()
    assert run_again(home) == (0, first)
    edit(home / "mine.py", "helper.FACTOR *", "-helper.FACTOR *")
    imported()
    n_run, second = run_again(home)
    assert n_run == 2
    assert all(new != old for new, old in zip(second, first, strict=True))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("return reward", "return -reward"),
        ("FACTOR = 1.0", "FACTOR = 2.0"),
        ("FACTOR = 1.0", "FACTOR = 1.0\nprint"),
    ],
)
def test_the_imports_of_a_policy_enter_its_fingerprint(home, digest, before, after):
    first = digest()
    edit(home / "helper.py", before, after)
    assert digest() != first


@pytest.mark.parametrize(
    "use",
    [
        "    from deep.inner import VALUE",
        "    import deep.inner",
        "    from deep import inner",
        "    from deep import passed_on",
        "    import deep\n    deep.passed_on()",
        "    from importlib import import_module\n    import_module('deep.inner')",
    ],
)
def test_an_import_inside_a_function_counts(home, digest, use):
    (home / "deep").mkdir()
    (home / "deep" / "__init__.py").write_text("from .inner import passed_on")
    (home / "deep" / "inner.py").write_text("VALUE = 1\ndef passed_on():\n    return VALUE\n")
    edit(home / "helper.py", "    return reward", f"{use}\n    return reward")
    first = digest()
    assert first is not None
    edit(home / "deep" / "inner.py", "VALUE = 1", "VALUE = 2")
    assert digest() != first


def test_a_file_that_is_not_imported_does_not_count(home, digest):
    (home / "other.py").write_text("x = 1")
    edit(home / "mine.py", "import helper", "from typing import TYPE_CHECKING\nimport helper")
    edit(
        home / "mine.py",
        "@register_policy",
        "if TYPE_CHECKING:\n    import other\n\n\n@register_policy",
    )
    first = digest()
    (home / "other.py").write_text("x = 2")
    assert digest() == first


def test_only_the_modules_that_a_class_uses_enter_its_fingerprint():
    modules = modules_behind(TofuPov)
    assert {"halfseen.core.moments", "halfseen.policies.base", "halfseen.values"} <= modules
    assert "halfseen.kernels.narrow_lift" in modules  # named by a text
    assert not {"halfseen", "halfseen.policies", "halfseen.policies.pslb"} & modules
    parts = {name.split(".")[1] for name in modules}
    assert not parts & {"cli", "report", "simulation", "studies", "worlds", "databuild"}
    assert "halfseen.worlds.table" not in modules_behind(LowRankWorld)


def test_a_user_who_takes_a_name_from_the_package_does_not_use_all_of_it(home, digest):
    assert digest() is not None
    modules = modules_behind(sys.modules["mine"].Mine)
    assert {"mine", "helper", "halfseen.policies.ambient"} <= modules
    assert not {"halfseen", "halfseen.policies.tofu", "halfseen.simulation.simulate"} & modules


# Scripts and notebooks.

SCRIPT = """
import numpy as np
import helper
from halfseen import AmbientOful
from halfseen.simulation.sources import code_digest

FACTOR = np.ones(2)
UNUSED = 1
paid = 3


def twisted(reward):
    return FACTOR[0] * reward


class Mine(AmbientOful):
    def learn(self, decision, reward):
        paid = helper.twisted(twisted(reward))
        super().learn(decision, paid)


class Other(AmbientOful):
    pass


found = code_digest(Mine)
"""


@pytest.fixture
def script(home, monkeypatch):
    monkeypatch.syspath_prepend(home)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (home / "script.py").write_text(SCRIPT)

    def ran():
        importlib.invalidate_caches()
        sys.modules.pop("helper", None)
        return runpy.run_path(str(home / "script.py"), run_name="__main__")["found"]

    yield ran
    sys.modules.pop("helper", None)


@pytest.mark.parametrize(
    ("file", "before", "after"),
    [
        ("script.py", "super().learn(decision, paid)", "super().learn(decision, -paid)"),
        ("script.py", "FACTOR[0] * reward", "FACTOR[1] * reward"),
        ("script.py", "np.ones(2)", "np.zeros(2)"),
        ("helper.py", "return reward", "return -reward"),
    ],
    ids=["the class", "a function", "a value", "a module"],
)
def test_the_code_that_a_class_of_a_script_uses_enters_its_fingerprint(
    home, script, file, before, after
):
    first = script()
    assert first is not None
    edit(home / file, before, after)
    assert script() != first


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("UNUSED = 1", "UNUSED = 2"),
        ("paid = 3", "paid = 4"),  # within the class it is another variable
        ("class Other(AmbientOful):\n    pass", "class Other:\n    x = 1"),
        ("def twisted(reward):", "# a remark\ndef twisted(reward):\n    'A docstring.'"),
        ("found =", "print()\nfound ="),
    ],
)
def test_the_rest_of_a_script_does_not_count(home, script, before, after):
    first = script()
    edit(home / "script.py", before, after)
    assert script() == first


def test_a_value_that_cannot_be_compared_makes_the_class_run_every_time(home, script):
    edit(home / "script.py", "np.ones(2)", "(each for each in [1])")
    assert script() is None


NOTEBOOK = [
    "from halfseen import AmbientOful\nFACTOR = 1.0",
    "def twisted(reward):\n    return FACTOR * reward",
    """class Mine(AmbientOful):
    def learn(self, decision, reward):
        super().learn(decision, twisted(reward))""",
]


def in_notebook(monkeypatch, texts):
    """Return the digest of the class that the cells of a notebook define."""
    notebook = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", notebook)
    for number, text in enumerate(texts):
        name = f"<cell {number} of {abs(hash(tuple(texts)))}>"
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        exec(compile(text, name, "exec"), vars(notebook))
    return code_digest(notebook.Mine)


@pytest.mark.parametrize("number", [0, 1, 2])
def test_the_cells_of_a_notebook_count_as_far_as_a_class_uses_them(monkeypatch, number):
    first = in_notebook(monkeypatch, NOTEBOOK)
    assert first is not None
    assert in_notebook(monkeypatch, [*NOTEBOOK, "FIGURE = 1"]) == first
    edits = [("1.0", "2.0"), ("FACTOR *", "-FACTOR *"), ("twisted", "-twisted")]
    edited = list(NOTEBOOK)
    edited[number] = edited[number].replace(*edits[number])
    assert in_notebook(monkeypatch, edited) != first


# Classes without a source.


def test_a_class_without_a_source_has_no_fingerprint():
    namespace = {"Uniform": Uniform, "__name__": __name__}
    exec("class Made(Uniform):\n    pass", namespace)
    made = register_policy(namespace["Made"])
    try:
        assert cell(Method(policy="Made")).fingerprint is None
    finally:
        del _CLASSES["Made"]
    assert made.__module__ == __name__
    assert code_digest(type("Made", (Uniform,), {})) is None


def test_a_class_that_a_function_makes_has_no_fingerprint():
    class Local(Uniform):
        pass

    assert code_digest(Local) is None


# What else decides a result.


class Inner(Uniform):
    """Named in the settings of another policy only."""


@pytest.fixture
def inner():
    yield register_policy(Inner)
    del _CLASSES["Inner"]


def with_code_of(monkeypatch, thing):
    """Let the code of a class or function be other code."""
    real = code_digest
    monkeypatch.setattr(
        fingerprints, "code_digest", lambda each: "other" if each is thing else real(each)
    )


def test_a_policy_that_is_named_in_settings_counts(monkeypatch, inner):
    named = {"burn_in_policy": {"policy": "Inner", "settings": {"dim": 5}}}
    first = cell(METHODS["tofu"].changed(named)).fingerprint
    assert first is not None
    with_code_of(monkeypatch, inner)
    assert cell(METHODS["tofu"].changed(named)).fingerprint != first


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnLaw(Bernoulli):
    """A mask law of the user's own."""


def test_a_mask_law_counts(monkeypatch):
    register_mask_law("own")(OwnLaw)
    try:
        first = cell(world={**WORLD, "masks": "own"}).fingerprint
        with_code_of(monkeypatch, OwnLaw)
        assert cell(world={**WORLD, "masks": "own"}).fingerprint != first
    finally:
        del _LAWS["own"]


def test_a_measure_counts_and_a_policy_does_not_count_for_it(monkeypatch):
    method = Method(policy="measure", settings={"measure": "subspace-error"})
    first = cell(method).fingerprint
    with_code_of(monkeypatch, AmbientOful)
    assert cell(method).fingerprint == first
    with_code_of(monkeypatch, measure_named("subspace-error"))
    assert cell(method).fingerprint != first


@pytest.mark.parametrize("library", ["numpy", "scipy", "numba"])
def test_the_versions_of_libraries_count(monkeypatch, library):
    first = cell().fingerprint
    versions = {**fingerprints.library_versions(), library: "0.1"}
    monkeypatch.setattr(fingerprints, "library_versions", lambda: versions)
    assert cell().fingerprint != first


def test_data_that_ship_with_the_package_count(monkeypatch):
    world = {"kind": "product-context", "source": "newsgroups", "dim": 30, "horizon": 12}
    (path,) = ProductContextWorld(source="newsgroups").data_paths().values()
    assert path.suffix == ".npz"
    assert path.exists()
    first = cell(world=world).fingerprint
    monkeypatch.setattr(fingerprints, "_data_digest", lambda path: "other")
    assert cell(world=world).fingerprint != first


def test_a_world_without_a_plain_form_has_no_fingerprint():
    table = TableWorld.from_arrays([[[1.0, 2.0]]], means=[[0.5]])
    assert replace(cell(), world=table).fingerprint is None


def test_a_setting_that_is_written_out_at_its_default_changes_nothing():
    assert cell(world={**WORLD, "noise_scale": 0.05}).fingerprint == cell().fingerprint
