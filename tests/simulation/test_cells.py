"""One cell: what is measured, and what happens if its world fails."""

from dataclasses import dataclass

import numpy as np
import pytest

from halfseen import LowRankWorld, Uniform
from halfseen.paper import ProductContextWorld
from halfseen.simulation.cells import Cell, CellKey, play, run_cell
from halfseen.simulation.methods import METHODS, Method

WORLD = LowRankWorld(dim=8, rank=2, n_arms=4, horizon=100)
MEASURE = Method(policy="measure", settings={"measure": "gram"})


def cell(method, world=WORLD):
    return Cell(key=CellKey("small", "default", 0.3, "method", 3), world=world, method=method)


def test_a_measure_has_diagnostics_and_no_regret():
    measured = run_cell(cell(MEASURE, WORLD.replace(latent="uniform")))
    assert measured.status == "ok", measured.error
    assert measured.final_regret is None
    assert measured.diagnostics != {}


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


@pytest.mark.parametrize("n_rounds", [0, 50])
def test_a_realization_that_fails_fails_its_cell(n_rounds):
    result = run_cell(cell(METHODS["uniform"], world=Ending(n_rounds=n_rounds)))
    assert result.status == "failed"
    assert "RuntimeError: the world ends" in result.error


@pytest.mark.parametrize("view", ["masked", "full"])
def test_displayed_arms_are_absorbed_after_their_round(view):
    world = LowRankWorld(dim=6, rank=2, n_arms=3, horizon=9, n_displayed=4)
    realization, heard = world.realize(0), []

    class Listening(Uniform):
        def decide(self, slate):
            heard.append(slate.table)
            return super().decide(slate)

        def absorb(self, options, **more):
            heard.append(options.table)

    play(Listening(dim=6), realization, view)
    expected = [
        each.arms if view == "full" else each.slate.table
        for pair in zip(realization.rounds(), realization.displayed(), strict=True)
        for each in pair
    ]
    assert len(heard) == 18
    for one, other in zip(heard, expected, strict=True):
        assert np.array_equal(one, other, equal_nan=True)


def test_the_unavoidable_regret_of_a_world_is_stored_with_the_policys_diagnostics():
    world = ProductContextWorld(source="newsgroups", dim=30, horizon=40)
    result = run_cell(cell(METHODS["zf-oful"], world=world))
    assert result.status == "ok", result.error
    assert result.diagnostics["irreducible"] == world.realize(3).irreducible_regret()
    assert "irreducible" not in run_cell(cell(METHODS["zf-oful"])).diagnostics
