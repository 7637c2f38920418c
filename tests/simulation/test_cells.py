"""Cells of one realization run together: each gets what it would get alone."""

import time
from dataclasses import dataclass, replace

import pytest

from halfseen import LowRankWorld, Uniform
from halfseen.paper import ProductContextWorld
from halfseen.policies.registry import _CLASSES, register_policy
from halfseen.simulation.cells import Cell, CellKey, run_together
from halfseen.simulation.methods import METHODS, Method

WORLD = LowRankWorld(dim=8, rank=2, n_arms=4, horizon=100)
MEASURE = Method(policy="measure", settings={"measure": "gram"})


def cells(*methods, world=WORLD):
    return [
        Cell(
            key=CellKey("small", "default", 0.3, f"method-{number}", 3), world=world, method=method
        )
        for number, method in enumerate(methods)
    ]


def test_every_method_gets_the_result_that_it_gets_alone():
    keys = ["tofu", "full-oful", "tofu-fh", "zf-pslb", "uniform", "latent-ucb", "oracle-full"]
    together = cells(*(METHODS[key] for key in keys))
    for cell, result in zip(together, run_together(together), strict=True):
        assert result.status == "ok", result.error
        assert replace(result, seconds=0.0) == replace(run_together([cell])[0], seconds=0.0)


def test_a_measure_is_taken_on_the_realization_that_others_play():
    together = cells(MEASURE, METHODS["uniform"], world=WORLD.replace(latent="uniform"))
    measured, played = run_together(together)
    assert measured.status == "ok", measured.error
    assert (measured.final_regret, played.diagnostics) == (None, {})
    assert measured.diagnostics == run_together(together[:1])[0].diagnostics != {}


@dataclass(frozen=True, kw_only=True)
class Ending:
    """A world whose realization raises after some rounds."""

    n_rounds: int

    @property
    def facts(self):
        return WORLD.realize(0).facts

    def realize(self, seed):
        if self.n_rounds == 0:
            raise RuntimeError("the world ends")
        return self

    def rounds(self):
        for number, round in enumerate(WORLD.realize(0).rounds()):
            if number == self.n_rounds:
                raise RuntimeError("the world ends")
            yield round


@pytest.mark.parametrize("n_rounds", [0, 1, 50])
def test_a_realization_that_fails_fails_all_its_cells(n_rounds):
    together = cells(METHODS["uniform"], METHODS["zf-oful"], world=Ending(n_rounds=n_rounds))
    for result in run_together(together):
        assert result.status == "failed"
        assert "RuntimeError: the world ends" in result.error


class Clock:
    """Time that only worlds and policies take."""

    now = 0.0


class Slow(Uniform):
    def learn(self, decision, reward):
        Clock.now += 2.0
        super().learn(decision, reward)


@dataclass(frozen=True, kw_only=True)
class SlowWorld(Ending):
    def rounds(self):
        for round in WORLD.realize(0).rounds():
            Clock.now += 1.0
            yield round


def test_seconds_are_a_cell_s_own_and_an_equal_share_of_those_for_making_rounds(monkeypatch):
    monkeypatch.setattr(time, "perf_counter", lambda: Clock.now)
    register_policy(Slow)
    try:
        together = cells(METHODS["uniform"], Method(policy="Slow"), world=SlowWorld(n_rounds=100))
        assert [result.seconds for result in run_together(together)] == [50.0, 250.0]
    finally:
        del _CLASSES["Slow"]


def test_the_unavoidable_regret_of_a_world_is_stored_with_the_policys_diagnostics():
    world = ProductContextWorld(source="newsgroups", dim=30, horizon=40)
    (result,) = run_together(cells(METHODS["zf-oful"], world=world))
    assert result.status == "ok", result.error
    assert result.diagnostics["irreducible"] == world.realize(3).irreducible_regret()
    assert "irreducible" not in run_together(cells(METHODS["zf-oful"])[:1])[0].diagnostics
