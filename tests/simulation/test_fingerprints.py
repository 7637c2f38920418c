"""A stored result is used again if nothing that decides it has changed, and only then."""

import importlib
import json
import runpy
import subprocess
import sys
from dataclasses import replace

import pytest

from halfseen import LowRankWorld, Uniform, simulate
from halfseen.paper import ProductContextWorld
from halfseen.policies.registry import _CLASSES, register_policy
from halfseen.simulation import cells as fingerprints
from halfseen.simulation.cells import Cell, CellKey
from halfseen.simulation.methods import METHODS, Method, OwnMethod
from halfseen.worlds.base import world_from

WORLD = {"kind": "low-rank", "dim": 5, "rank": 1, "n_arms": 3, "horizon": 12}


def cell(method=METHODS["tofu"], world=WORLD):
    key = CellKey("s", "default", 0.3, "m", 0)
    return Cell(key=key, world=world_from(world), method=method)


# The package


def test_all_that_running_a_cell_imports_is_among_the_modules_that_compute():
    script = """
import sys
from halfseen.simulation.cells import Cell, CellKey, run_cell
from halfseen.simulation.methods import METHODS
from halfseen import LowRankWorld
for key in ("tofu", "ra-tofu", "latent-ucb", "impute-mean"):
    world = LowRankWorld(dim=5, rank=1, horizon=40)
    cell = Cell(key=CellKey("s", "s", 0.3, key, 0), world=world, method=METHODS[key])
    result = run_cell(cell)
    assert result.status == "ok", result.error
print(*(m.__file__ for name, m in list(sys.modules.items()) if name.startswith("halfseen.")))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    loaded = {file.rpartition("/halfseen/")[2] for file in done.stdout.split()}
    allowed = {"log.py"}
    assert loaded, done.stderr
    assert loaded - allowed <= set(fingerprints.computing_modules())


@pytest.fixture
def package(tmp_path, monkeypatch):
    for name in ("report", "linear"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "part.py").write_text("x = 1\n")
    monkeypatch.setattr(fingerprints, "_PACKAGE", tmp_path)
    fingerprints.package_digest.cache_clear()
    yield tmp_path
    fingerprints.package_digest.cache_clear()


@pytest.mark.parametrize(("room", "counts"), [("report", False), ("linear", True)])
def test_a_changed_report_throws_nothing_away_and_changed_mathematics_does(package, room, counts):
    first = cell().fingerprint
    (package / room / "part.py").write_text("x = 2\n")
    fingerprints.package_digest.cache_clear()
    assert (cell().fingerprint != first) == counts


# The user's own files

POLICY = """
from halfseen import AmbientOful
from halfseen.policies.registry import register_policy
import helper


@register_policy
class Mine(AmbientOful):
    '''Learns something else than it was paid.'''

    def learn(self, decision, reward):
        super().learn(decision, helper.FACTOR * reward)
"""


@pytest.fixture
def home(tmp_path):
    (tmp_path / "mine.py").write_text(POLICY)
    (tmp_path / "helper.py").write_text("FACTOR = 1.0\n")
    (tmp_path / "other.py").write_text("x = 1\n")
    return tmp_path


def edit(path, before, after):
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))


@pytest.fixture
def run_anew(home, monkeypatch):
    """Return a function that imports the user's files anew, and simulates.

    It returns how many cells were run, and all regrets.
    """
    monkeypatch.syspath_prepend(home)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def run():
        for name in ("mine", "helper"):
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        importlib.import_module("mine")
        world, out = LowRankWorld(dim=6, rank=2, n_arms=5, horizon=60), home / "results"
        tables = simulate({"mine": {"policy": "Mine"}}, world, range(2), jobs=1, out=out)
        manifest = json.loads((out / "manifest.json").read_text())
        return manifest["cells_run_now"], [row["final_regret"] for row in tables.per_seed]

    yield run
    for name in ("mine", "helper"):
        sys.modules.pop(name, None)
    _CLASSES.pop("Mine", None)


@pytest.mark.parametrize(
    ("file", "before", "after"),
    [("mine.py", "helper.FACTOR", "-helper.FACTOR"), ("helper.py", "1.0", "-1.0")],
)
def test_an_edited_policy_is_run_again_and_an_unchanged_one_is_not(
    home, run_anew, file, before, after
):
    n_run, first = run_anew()
    assert n_run == 2
    (home / "other.py").write_text("x = 2\n")  # which nothing imports
    assert run_anew() == (0, first)
    edit(home / file, before, after)
    n_run, second = run_anew()
    assert n_run == 2
    assert all(new != old for new, old in zip(second, first, strict=True))


def test_a_script_counts_as_a_whole(home):
    script = home / "script.py"
    script.write_text(
        "from halfseen import AmbientOful\n"
        "from halfseen.simulation.cells import _own_files\n"
        "class Mine(AmbientOful):\n    pass\n"
        "files = list(_own_files(Mine))\n"
    )
    found = runpy.run_path(str(script), run_name="__main__")["files"]
    assert found == [script]


class Inner(Uniform):
    """Named in the settings of another policy only."""


def test_a_policy_in_the_settings_of_another_counts(monkeypatch):
    register_policy(Inner)
    asked = []
    monkeypatch.setattr(fingerprints, "_own_files", lambda each: asked.append(each) or ())
    try:
        inner = {"policy": "Inner", "settings": {"dim": 5}}
        made = cell(METHODS["tofu"].changed({"burn_in_policy": inner}))
        assert made.fingerprint is not None
    finally:
        del _CLASSES["Inner"]
    assert Inner in asked


def test_a_class_that_is_not_found_in_its_module_or_has_no_name_has_no_fingerprint():
    class Local(Uniform):
        pass

    class Nameless(LowRankWorld):
        pass

    assert replace(cell(), world=Nameless()).fingerprint is None
    assert cell(OwnMethod(policy="Uniform", make=lambda facts: Uniform(dim=5))).fingerprint is None
    for made in (Local, type("Made", (Uniform,), {})):
        register_policy(made)
        try:
            assert cell(Method(policy=made.__name__)).fingerprint is None
        finally:
            del _CLASSES[made.__name__]


# What else decides a result


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


def test_a_setting_that_is_written_out_at_its_default_changes_nothing():
    assert cell(world={**WORLD, "noise_scale": 0.05}).fingerprint == cell().fingerprint
