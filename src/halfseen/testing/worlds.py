"""The contracts of a world, one function per claim."""

import json
from collections.abc import Callable, Collection, Iterable
from itertools import zip_longest

import numpy as np

from halfseen.errors import InvalidSettingError
from halfseen.testing.policies import Check, checks_in, expect, run_checks
from halfseen.values import Slate
from halfseen.worlds.base import Facts, Round, World, world_from

Factory = Callable[[], World]


def check_world(factory: Factory, *, skip: Collection[str] = ()) -> None:
    """Check that worlds keep their contracts.

    Parameters
    ----------
    factory : callable
        Called without arguments, returns a world, always with the same settings. Its realizations
        are walked many times: a short horizon is enough.
    skip : names of checks
        Claims that the world does not make, such as `the_plain_form_survives_json`.

    Raises
    ------
    AssertionError
        A claim does not hold; the message says which one, and how it failed.

    Examples
    --------
    >>> from halfseen import LowRankWorld
    >>> check_world(lambda: LowRankWorld(dim=5, rank=2, horizon=10))
    """
    run_checks(world_checks(), factory, skip)


def world_checks() -> tuple[Check, ...]:
    """Return the individual checks; call each with a factory.

    Examples
    --------
    >>> [check.name for check in world_checks()][:2]
    ['same_seed_same_rounds', 'another_seed_is_another_realization']
    """
    return checks_in(globals())


@Check
def same_seed_same_rounds(factory: Factory) -> None:
    """Two worlds with the same settings have the same rounds for the same seed."""
    _expect_same(factory().realize(3).rounds(), factory().realize(3).rounds())


@Check
def another_seed_is_another_realization(factory: Factory) -> None:
    """Realizations of different seeds differ."""
    pairs = zip(*(factory().realize(seed).rounds() for seed in (0, 1)), strict=False)
    expect(any(_difference(*pair) for pair in pairs), "seeds 0 and 1 have the same rounds")


@Check
def rounds_can_be_walked_twice(factory: Factory) -> None:
    """Every iteration over a realization yields the same rounds, even two at a time."""
    realization = factory().realize(0)
    expected = list(factory().realize(0).rounds())
    ahead = realization.rounds()
    early = [next(ahead) for _ in range(len(expected) // 2)]
    _expect_same(realization.rounds(), expected)
    _expect_same([*early, *ahead], expected)


@Check
def rounds_belong_to_whoever_walks_them(factory: Factory) -> None:
    """Writing into the arrays of a round does not change another iteration."""
    realization = factory().realize(0)
    for round in realization.rounds():
        round.arms[:], round.means[:] = 1e9, 1e9
    _expect_same(realization.rounds(), factory().realize(0).rounds())


@Check
def slates_show_the_truth(factory: Factory) -> None:
    """Where an entry is seen, slate and arms agree."""
    for number, (slate, _, _, arms) in enumerate(factory().realize(0).rounds(), start=1):
        mask = slate.mask
        expect(np.array_equal(slate.values[mask], arms[mask]), f"round {number}: they differ")


@Check
def facts_are_true(factory: Factory) -> None:
    """Seed, dimension, number of arms and of rounds, and shapes are as in the facts."""
    realization = factory().realize(5)
    facts, rounds = realization.facts, list(realization.rounds())
    expect(isinstance(facts, Facts), f"facts must be Facts, got {type(facts).__name__}")
    expect(facts.seed == 5, f"the seed is 5, the facts say {facts.seed}")
    expect(len(rounds) == facts.horizon, f"{len(rounds)} rounds, the facts say {facts.horizon}")
    for number, round in enumerate(rounds, start=1):
        _expect_shapes(round, facts, f"round {number}")
    if facts.observe_prob is not None:
        probs = np.broadcast_to(facts.observe_prob, facts.dim)
        expect(((probs > 0) & (probs <= 1)).all(), f"observe_prob is {facts.observe_prob}")
    if facts.basis is not None:
        shape = (facts.dim, facts.rank)
        expect(facts.basis.shape == shape, f"the basis has shape {facts.basis.shape}, not {shape}")


@Check
def noise_does_not_move_arms(factory: Factory) -> None:
    """With another `noise_scale`, where there is one, the same arms are offered."""
    world = factory()
    if "noise_scale" not in world.parameters:
        return
    for scale in (0.0, 0.1):
        try:
            quiet, loud = (world.replace(noise_scale=each).realize(2) for each in (scale, 2.0))
        except InvalidSettingError:  # not every world can do without noise, or with it
            continue
        for one, other in zip(quiet.rounds(), loud.rounds(), strict=True):
            expect(_difference(one, other) not in ("slate", "arms"), "noise moved the arms")
            near = np.allclose(one.noise, scale / 2.0 * other.noise, rtol=1e-9)
            expect(near, f"{scale / 2.0} times the noise scale is not that times the noise")


@Check
def the_plain_form_survives_json(factory: Factory) -> None:
    """A world that is written to a study file and read again is an equal world."""
    world = factory()
    expect(isinstance(world, World), f"{type(world).__name__} is no subclass of World")
    plain = world.to_dict()
    again = world_from(json.loads(json.dumps(plain, allow_nan=False)))
    expect(again == world, f"{world} came back as {again}")
    expect(hash(again) == hash(world), "equal worlds have different hashes")
    expect(again.to_dict() == plain, f"{plain} came back as {again.to_dict()}")
    _expect_same(again.realize(1).rounds(), world.realize(1).rounds())


def _difference(one: Round, other: Round) -> str:
    """Return which part of two rounds differs, if one does."""
    for part in ("slate", "arms", "means", "noise"):
        ours, theirs = getattr(one, part), getattr(other, part)
        is_slate = part == "slate"
        if not (ours == theirs if is_slate else np.array_equal(ours, theirs, equal_nan=True)):
            return part
    return ""


def _expect_same(some: Iterable[Round], others: Iterable[Round]) -> None:
    for number, (one, other) in enumerate(zip_longest(some, others), start=1):
        expect(one is not None and other is not None, f"round {number} is missing")
        part = _difference(one, other)
        expect(not part, f"round {number} has another {part}")


def _expect_shapes(round: Round, facts: Facts, where: str) -> None:
    slate, means, noise, arms = round
    expect(isinstance(slate, Slate), f"{where}: the slate is a {type(slate).__name__}")
    n_arms = slate.n_arms if facts.n_arms is None else facts.n_arms
    shape = (n_arms, facts.dim)
    expect((slate.n_arms, slate.dim) == shape, f"{where}: the facts say {shape}: {slate}")
    expect(arms.shape == shape, f"{where}: arms have shape {arms.shape} instead of {shape}")
    expect(means.shape == (n_arms,), f"{where}: means have shape {means.shape}")
    expect(np.isfinite(means).all(), f"{where}: a mean is not finite")
    expect(means.dtype == arms.dtype == np.float64, f"{where}: arms and means must be doubles")
    per_arm = isinstance(noise, np.ndarray) and noise.shape == means.shape
    expect(
        isinstance(noise, float) or per_arm,
        f"{where}: noise must be a float, or one per arm, got {noise!r}",
    )
