"""A level of rewards that moves, and rewards that a policy does not expect."""

import numpy as np
import pytest

from halfseen import Agent, LatentUcb, load
from halfseen.latent.drift import Drift, Path, moving_level
from halfseen.latent.surprise import Surprise


def played(policy, n_rounds, *, level=lambda time: 0.0, flips=False):
    """Play arms of rank 2 whose rewards share a level; return the mean share of the best reward."""
    random, directions = np.random.default_rng(0), np.random.default_rng(9).normal(size=(2, 8))
    won = 0.0
    for round in range(n_rounds):
        latent = random.normal(size=(5, 2))
        rows, paid = latent @ directions, latent[:, 0] * (-1.0 if flips and round > 500 else 1.0)
        decision = policy.choose(np.where(random.random((5, 8)) < 0.7, rows, np.nan))
        noise = 0.3 * random.normal()
        policy.learn(decision, float(paid[decision.arm] + level(round / n_rounds) + noise))
        won += paid[decision.arm] / n_rounds
    return won


def level_of(rewards):
    """Return the level of rewards that have an intercept and noise apart from it."""

    def information(columns):
        return columns.T @ columns - len(rewards) * np.outer(*2 * [columns.mean(axis=0)])

    nothing, rounds = np.zeros(len(rewards)), np.arange(1, len(rewards) + 1)
    return moving_level(rounds, rewards - rewards.mean(), nothing, nothing + 1.0, information)


def test_the_level_of_a_random_walk_is_found():
    random = np.random.default_rng(0)
    walk = np.cumsum(random.normal(size=600)) / np.sqrt(600.0) * 10.0
    path = level_of(walk + random.normal(size=600))
    errors = path.at(np.arange(1, 601)) - walk
    assert np.abs(errors - errors.mean()).mean() < 0.1 * np.ptp(walk)
    # q = 1/6, so K = .33; moves inside of a block count as noise, which makes it smaller.
    assert 0.25 * 0.33 < path.drift(n_rewards=600).gain < 0.33


def test_white_noise_has_a_fixed_level():
    """Of 200 samples none: a factor of e⁵ in favour of a walk has a probability below e⁻⁵."""
    random = np.random.default_rng(0)
    moving = [level_of(random.standard_t(3, size=300)) for _ in range(200)]
    assert sum(path is not None for path in moving) <= 6


def test_units_and_offset_of_rewards_do_not_matter_to_the_level():
    random = np.random.default_rng(0)
    y = 0.02 * np.arange(300) + random.normal(size=300)
    plain, scaled = level_of(y), level_of(-1e6 * y + 1e9)
    assert scaled.speed == plain.speed
    assert np.allclose(scaled.levels, -1e6 * plain.levels)
    assert Drift(1.0, 0.5).updated(2.0) == Drift(2.0, 0.5)


@pytest.mark.parametrize(
    "level",
    [lambda time: 20.0 * time, lambda time: 3.0 * np.sin(20.0 * time)],
    ids=["trend", "seasons"],
)
def test_a_level_that_moves_costs_little(level):
    still, moving = LatentUcb(), LatentUcb()
    assert played(moving, 300, level=level) > 0.85 * played(still, 300)
    assert still._model.drift == Drift()
    assert moving._model.drift.gain > 0.0


def labels_found(level, seed):
    """Play labels by name, given contexts; return the share of rounds with the right one."""
    random, policy, found = np.random.default_rng(seed), LatentUcb(), 0
    tastes, nothing = random.normal(size=(4, 6)), np.full((4, 1), np.nan)
    for round in range(400):
        context = random.normal(size=6)
        decision = policy.choose(nothing, context=context, items=np.arange(4))
        is_right = decision.arm == int((tastes @ context).argmax())
        noise = 0.1 * random.normal()
        policy.learn(decision, float(is_right + level(round / 400) + noise))
        found += is_right
    return found / 400


@pytest.mark.parametrize(
    ("level", "seed"),
    [(lambda time: 60.0 * time, 0), (lambda time: 10.0 * np.sin(20.0 * time), 1)],
    ids=["trend", "seasons"],
)
def test_a_level_is_not_taken_for_the_coefficients_of_labels_played_since(level, seed):
    assert labels_found(level, seed) > 0.75 * labels_found(lambda time: 0.0, seed)


def test_estimates_follow_the_level_also_after_loading(tmp_path):
    policy = LatentUcb()
    played(policy, 250, level=lambda time: 50.0 * time)
    arms = np.random.default_rng(1).normal(size=(40, 2)) @ np.random.default_rng(9).normal(
        size=(2, 8)
    )
    assert abs(policy.score(arms).estimates.mean() - 50.0) < 2.0
    policy.save(tmp_path / "policy.npz")
    twin = load(tmp_path / "policy.npz")
    assert played(twin, 30) == played(policy, 30)
    assert (twin.score(arms).estimates == policy.score(arms).estimates).all()


def test_a_taste_that_flips_is_a_surprise_and_health_says_what_to_do():
    agent = Agent()
    assert agent.health()["warnings"] == []
    for n_rounds, flips in ((620, False), (620, True)):
        policy, member = LatentUcb(), agent._member
        played(policy, n_rounds, flips=flips)
        member.state = member.state._replace(policy=policy)
        assert ["half_life" in text for text in agent.health()["warnings"]] == [True] * flips


def test_squares_that_stay_as_they_are_surprise_nobody():
    random, surprise = np.random.default_rng(0), Surprise()
    for square in random.standard_t(4, size=5000) ** 2:
        surprise = surprise.updated(float(square))
        assert not surprise.is_large


def test_the_gain_goes_with_all_rewards_and_not_with_those_that_show_the_path():
    path = Path(np.array([0.0, 1.0]), np.array([0.0, 3.0]), speed=4.0)
    q = 16.0 / 5000  # K solves K² = q(1 − K)
    level, gain = path.drift(n_rewards=5000)
    assert level == 3.0
    assert gain**2 == pytest.approx(q * (1.0 - gain))


@pytest.mark.parametrize("delay", [0, 30, 60])
def test_zeros_that_come_later_than_clicks_are_no_drift(delay):
    """At any time the latest rounds have clicks alone, and a batch that expires zeros alone."""
    policy, random, waiting = LatentUcb(), np.random.default_rng(0), []
    nothing, gains = np.full((3, 1), np.nan), []
    for round in range(500):
        decision = policy.choose(nothing, items=np.arange(3))
        policy.expect(decision)
        if random.random() < (0.1, 0.6, 0.1)[decision.arm]:
            policy.learn(decision, 1.0)
        else:
            waiting.append((round, decision))
        while round % 20 == 0 and waiting and waiting[0][0] <= round - delay:
            policy.learn(waiting.pop(0)[1], 0.0)
        gains.append(0.0 if policy._model is None else policy._model.drift.gain)
    assert max(gains) == 0.0
