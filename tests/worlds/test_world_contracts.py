"""What every world promises, checked on all that are registered."""

import json
import pickle
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from halfseen import DigitsWorld, HardInstanceWorld, InvalidSettingError, LowRankWorld, TableWorld
from halfseen.worlds.mask_laws import Blocks, ValueDependent
from halfseen.worlds.product_context import ProductContextWorld
from halfseen.worlds.registry import kind_of, world_from, world_kinds, world_to_dict

SMALL = {"dim": 7, "rank": 2, "n_arms": 4, "horizon": 12}
LONG = 1_000_000
WALKED = 20_000


def table_of(rounds, folder, **settings):
    rng = np.random.default_rng(0)
    arms = rng.standard_normal((rounds, 4, 5))
    arms[rng.random(arms.shape) < 0.2] = np.nan
    world = TableWorld.from_arrays(arms, means=rng.standard_normal((rounds, 4)), **settings)
    return world.save(folder / f"{rounds}.npz")


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
        12, folder, noise_scale=0.3, observe_prob=0.5, masks="blocks", shuffle=True
    ),
    "digits": lambda folder: DigitsWorld(**SMALL),
    "digits, blocks": lambda folder: DigitsWorld(**SMALL, masks="blocks"),
    "hard": lambda folder: HardInstanceWorld(n_arms=4, horizon=12),
    "hard, all masked": lambda folder: HardInstanceWorld(
        n_arms=4, horizon=12, masking="fully-masked"
    ),
    "images": lambda folder: ProductContextWorld(source="mnist", dim=9, horizon=12),
    "documents": lambda folder: ProductContextWorld(source="newsgroups", dim=30, horizon=12),
}


@pytest.fixture(params=EXAMPLES, ids=str)
def world(request, folder):
    return EXAMPLES[request.param](folder)


def assert_same(one, other):
    assert one.slate == other.slate
    assert np.array_equal(one.means, other.means)
    assert one.noise == other.noise
    assert np.array_equal(one.arms, other.arms, equal_nan=True)


def test_every_registered_world_has_an_example_here(folder):
    """If this fails, a world was added: give it a line in EXAMPLES."""
    assert {kind_of(make(folder)) for make in EXAMPLES.values()} == set(world_kinds())


def test_same_seed_same_rounds(world):
    walks = [world.realize(3).rounds() for _ in range(2)]
    for one, other in zip(*walks, strict=True):
        assert_same(one, other)


def test_another_seed_is_another_realization(world):
    one, other = (
        [(round.noise, round.arms.tobytes()) for round in world.realize(seed).rounds()]
        for seed in (0, 1)
    )
    assert one != other


def test_walking_twice_or_interleaved_gives_the_same_rounds(world):
    realization = world.realize(0)
    expected = list(world.realize(0).rounds())
    ahead, behind = realization.rounds(), realization.rounds()
    early = [next(ahead) for _ in range(5)]
    for index, round in enumerate(behind):
        assert_same(round, expected[index])
        if index >= 5:
            assert_same(next(ahead), expected[index])
    for round, other in zip(early, realization.rounds(), strict=False):
        assert_same(round, other)


def test_the_rounds_of_a_consumer_who_writes_into_them_are_nobody_elses(world):
    realization = world.realize(0)
    expected = [
        round._replace(means=round.means.copy(), arms=round.arms.copy())
        for round in realization.rounds()
    ]
    for round in realization.rounds():
        round.arms[:], round.means[:] = 1e9, 1e9
    for round, other in zip(realization.rounds(), expected, strict=True):
        assert_same(round, other)


def test_slates_show_the_truth_where_something_is_seen(world):
    for slate, _, _, arms in world.realize(0).rounds():
        assert np.array_equal(slate.values[slate.mask], arms[slate.mask])
        assert not np.isnan(arms[slate.mask]).any()


def test_facts_are_true(world):
    realization = world.realize(5)
    facts, rounds = realization.facts, list(realization.rounds())
    assert facts.seed == 5
    assert len(rounds) == facts.horizon == 12
    for slate, means, noise, arms in rounds:
        assert (slate.n_arms, slate.dim) == arms.shape == (facts.n_arms, facts.dim)
        assert means.shape == (facts.n_arms,)
        assert (means.dtype, arms.dtype, type(noise)) == (np.float64, np.float64, float)
    probs = np.broadcast_to(facts.observe_prob, facts.dim)
    assert ((probs > 0) & (probs <= 1)).all()
    if facts.basis is not None:
        assert facts.basis.shape == (facts.dim, facts.rank)


def test_noise_does_not_move_arms(world):
    """In the hard family it moves means, whose gap depends on it; elsewhere not even those."""
    quiet, loud = (replace(world, noise_scale=scale).realize(2).rounds() for scale in (0.1, 2.0))
    for one, other in zip(quiet, loud, strict=True):
        assert one.slate == other.slate
        assert np.array_equal(one.arms, other.arms, equal_nan=True)
        assert 20 * one.noise == pytest.approx(other.noise, rel=1e-12)
        if not isinstance(world, HardInstanceWorld):
            assert np.array_equal(one.means, other.means)


def test_a_world_survives_the_way_through_json(world):
    text = json.dumps(world_to_dict(world), allow_nan=False)
    again = world_from(json.loads(text))
    assert again == world
    assert hash(again) == hash(world)
    assert world_to_dict(again) == world_to_dict(world)
    for one, other in zip(world.realize(1).rounds(), again.realize(1).rounds(), strict=True):
        assert_same(one, other)


def test_a_world_travels_between_processes(world):
    assert pickle.loads(pickle.dumps(world)) == world


def test_a_world_cannot_be_changed(world):
    with pytest.raises(AttributeError):
        world.horizon = 3


@pytest.mark.parametrize("seed", [-1, 1.5, "a", None])
def test_a_bad_seed_is_refused(world, seed):
    with pytest.raises(InvalidSettingError, match="seed"):
        world.realize(seed)


def test_an_unknown_setting_is_refused_by_name(world):
    with pytest.raises(InvalidSettingError, match="colour is not a setting of the"):
        world_from(world_to_dict(world) | {"colour": "red"})


def test_defaults_stay_out_of_the_plain_form():
    assert world_to_dict(LowRankWorld()) == {"kind": "low-rank"}
    assert world_to_dict(LowRankWorld(masks="bernoulli")) == {"kind": "low-rank"}
    assert world_to_dict(HardInstanceWorld()) == {"kind": "hard-instance"}


def test_a_bad_mask_law_is_refused_by_its_key():
    with pytest.raises(InvalidSettingError, match=r"masks\.size .* got 0"):
        world_from({"kind": "low-rank", "masks": {"law": "blocks", "size": 0}})


@pytest.mark.parametrize("name", sorted(EXAMPLES.keys() - {"images", "documents"}))
def test_memory_does_not_grow_with_the_rounds(name, folder):
    """A million rounds promised, 20,000 walked (2,000 of variants): neither size is held."""
    n_walked = WALKED if name in ("published", "masked table", "hard") else WALKED // 10
    world = EXAMPLES[name](folder)
    if isinstance(world, TableWorld):
        settings = {"noise_scale": 0.3, "observe_prob": world.observe_prob, "masks": world.masks}
        world = table_of(n_walked, folder, **settings)
        world.table()  # held in memory once, and not by the walk
    else:
        world = replace(world, horizon=LONG)
    list(islice(world.realize(1).rounds(), 20))  # what is compiled or cached at first use
    tracemalloc.start()
    try:
        rounds = world.realize(0).rounds()
        for _ in islice(rounds, 500):
            pass
        early = tracemalloc.get_traced_memory()[1]
        for _ in islice(rounds, n_walked - 500):
            pass
        late = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert early < 200_000
    assert late < early + 20_000


@pytest.mark.parametrize("name", ["published", "hard"])
def test_rounds_are_drawn_when_they_are_asked_for(name, folder):
    world = replace(EXAMPLES[name](folder), horizon=10**15)
    first, second = islice(world.realize(0).rounds(), 2)
    assert first.noise != second.noise


def test_worlds_load_neither_pandas_nor_what_draws():
    program = "import halfseen.worlds, sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert not loaded & {"pandas", "matplotlib", "sklearn", "joblib", "rich", "typer"}
