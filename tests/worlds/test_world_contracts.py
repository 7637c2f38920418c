"""What every world promises, checked on all that are registered."""

import tracemalloc
from itertools import islice

import numpy as np
import pandas as pd
import pytest

from halfseen import (
    BilinearWorld,
    DisjointArmsWorld,
    InvalidSettingError,
    LabelsWorld,
    LowRankWorld,
    RealTableWorld,
    TableWorld,
)
from halfseen.paper import DigitsWorld, HardInstanceWorld, ProductContextWorld
from halfseen.testing import world_checks
from halfseen.worlds.base import _KINDS
from halfseen.worlds.masking import Blocks, ValueDependent

SMALL = {"dim": 7, "rank": 2, "n_arms": 4, "horizon": 12}
LONG = 1_000_000
WALKED = 1_500


def table_of(rounds, folder, **settings):
    rng = np.random.default_rng(0)
    arms = rng.standard_normal((rounds, 4, 5))
    arms[rng.random(arms.shape) < 0.2] = np.nan
    frame = pd.DataFrame(arms.reshape(-1, 5)).add_prefix("x")
    frame["round"], frame["mean"] = np.arange(rounds).repeat(4), rng.standard_normal(4 * rounds)
    frame.to_csv(folder / f"{rounds}.csv", index=False)
    return TableWorld(path=folder / f"{rounds}.csv", **settings)


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tables")


EXAMPLES = {
    "published": lambda folder: LowRankWorld(**SMALL),
    "uniform latents": lambda folder: LowRankWorld(**SMALL, latent="uniform"),
    "student latents": lambda folder: LowRankWorld(**SMALL, latent="student"),
    "perturbed": lambda folder: LowRankWorld(**SMALL, perturbation=0.2),
    "decaying": lambda folder: LowRankWorld(**SMALL, decay=1.0, theta="tail"),
    "full rank": lambda folder: LowRankWorld(**{**SMALL, "rank": 7}, decay=1.0),
    "large features": lambda folder: LowRankWorld(**SMALL, feature_scale=100, perturbation=0.2),
    "changing": lambda folder: LowRankWorld(**SMALL, change_round=6),
    "per feature": lambda folder: LowRankWorld(**SMALL, masks="per-feature"),
    "per arm": lambda folder: LowRankWorld(**SMALL, masks="per-arm"),
    "blocks": lambda folder: LowRankWorld(**SMALL, masks=Blocks(size=2), loadings=[0.5, 2.0]),
    "by value": lambda folder: LowRankWorld(**SMALL, masks=ValueDependent(strength=2.0)),
    "table": lambda folder: table_of(12, folder, noise_scale=0.3),
    "masked table": lambda folder: table_of(
        12, folder, noise_scale=0.3, observe_prob=0.5, shuffle=True
    ),
    "digits": lambda folder: DigitsWorld(**SMALL),
    "hard": lambda folder: HardInstanceWorld(n_arms=4, horizon=12),
    "hard, all masked": lambda folder: HardInstanceWorld(
        n_arms=4, horizon=12, masking="fully-masked"
    ),
    "images": lambda folder: ProductContextWorld(source="mnist", dim=9, horizon=12),
    "documents": lambda folder: ProductContextWorld(source="newsgroups", dim=30, horizon=12),
    "hepatitis": lambda folder: RealTableWorld(table="hepatitis", n_arms=4, horizon=12),
    "hidden wine": lambda folder: RealTableWorld(
        table="wine", n_arms=4, horizon=12, observe_prob=0.5, noise_scale=0.3
    ),
    "labels": lambda folder: LabelsWorld(table="hepatitis", horizon=12, observe_prob=0.7),
    "bilinear": lambda folder: BilinearWorld(**SMALL, context_dim=4),
    "bilinear catalogue": lambda folder: BilinearWorld(**SMALL, context_dim=4, n_items=6),
    "disjoint arms": lambda folder: DisjointArmsWorld(context_dim=4, n_arms=3, horizon=12),
    "irrelevant context": lambda folder: LowRankWorld(**SMALL, context_dim=4),
    "catalogue": lambda folder: RealTableWorld(
        table="bone-marrow", n_arms=9, horizon=12, catalogue=True, observe_prob=0.7, noise_scale=0.3
    ),
    "clicks": lambda folder: RealTableWorld(
        table="diabetes", n_arms=4, horizon=12, click_rate=0.05
    ),
}


@pytest.fixture(params=EXAMPLES, ids=str)
def world(request, folder):
    return EXAMPLES[request.param](folder)


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("check", world_checks(), ids=str)
def test_contract(name, check, folder):
    check(lambda: EXAMPLES[name](folder))


def test_every_registered_world_has_an_example_here(folder):
    """If this fails, a world was added: give it a line in EXAMPLES."""
    # Other tests register worlds of their own.
    ours = {kind for kind, world in _KINDS.items() if world.__module__.startswith("halfseen.")}
    assert {make(folder).to_dict()["kind"] for make in EXAMPLES.values()} == ours


# What only our own worlds promise


@pytest.mark.parametrize(
    "name", [name for name in EXAMPLES if not name.startswith(("hard", "clicks", "labels"))]
)
def test_noise_moves_no_means(name, folder):
    """In the hard family it does: its gaps depend on it. Clicks and labels have none."""
    world = EXAMPLES[name](folder)
    quiet, loud = (world.replace(noise_scale=scale).realize(2).rounds() for scale in (0.1, 2.0))
    for one, other in zip(quiet, loud, strict=True):
        assert np.array_equal(one.means, other.means)


def test_a_bad_seed_is_refused(world):
    for seed in (-1, 1.5, "a", None):
        with pytest.raises(InvalidSettingError, match="seed"):
            world.realize(seed)


@pytest.mark.parametrize("name", sorted(EXAMPLES.keys() - {"images", "documents"}))
def test_memory_does_not_grow_with_the_rounds(name, folder):
    """A million rounds promised, 1,500 walked: neither size is held."""
    world = EXAMPLES[name](folder)
    if isinstance(world, TableWorld):
        settings = {"noise_scale": 0.3, "observe_prob": world.observe_prob}
        world = table_of(WALKED, folder, **settings)
        world.table()  # held in memory once, and not by the walk
    else:
        world = world.replace(horizon=LONG)
    list(islice(world.realize(1).rounds(), 20))  # what is compiled or cached at first use
    tracemalloc.start()
    try:
        rounds = world.realize(0).rounds()
        for _ in islice(rounds, 500):
            pass
        early = tracemalloc.get_traced_memory()[1]
        for _ in islice(rounds, WALKED - 500):
            pass
        late = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert early < 200_000
    assert late < early + 20_000
