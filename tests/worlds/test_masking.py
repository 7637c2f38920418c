"""Mask laws: how often, what together, and what a policy is told.

Statistical tests use independent draws and reject at 5 standard errors (probability 6e-7 each).
"""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import norm

from halfseen import InvalidSettingError, LowRankWorld, MaskLaw, params
from halfseen.worlds.base import world_from
from halfseen.worlds.masking import (
    _LAWS,
    Bernoulli,
    Blocks,
    PerArm,
    PerFeature,
    ValueDependent,
    mask_law,
)

NORMALS = np.random.default_rng(7).standard_normal((20_000, 12))
LAWS = [
    Bernoulli(),
    PerFeature(),
    PerFeature(low=0.05, high=0.9),
    PerArm(spread=0.8),
    Blocks(size=5),
    ValueDependent(strength=2.0),
    ValueDependent(strength=-1.5, signed=True),
]


def drawn(law, observe_prob=0.3, arms=NORMALS, seed=1):
    return law.seen(np.random.default_rng(seed).random(arms.shape), arms, observe_prob)


def test_every_law_has_an_example_here():
    assert {law.law for law in LAWS} == {
        name for name, law in _LAWS.items() if law.__module__ == "halfseen.worlds.masking"
    }


@pytest.mark.parametrize("observe_prob", [0.1, 0.5, 0.8])
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_entries_are_seen_as_often_as_the_facts_state(law, observe_prob):
    """Per feature; entries of one feature are independent over the 20,000 arms."""
    shares = drawn(law, observe_prob).mean(axis=0)
    told = law.stated_prob(observe_prob, 12)
    assert np.mean(told) == pytest.approx(observe_prob, abs=1e-9)
    # Quadrature for the value-dependent law, and its scale taken from the sample, cost far less.
    tolerance = 5 * np.sqrt(told * (1 - np.asarray(told)) / len(NORMALS))
    assert (np.abs(shares - told) < tolerance).all()


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_probability_one_shows_everything(law):
    if law != PerFeature(low=0.05, high=0.9):
        assert drawn(law, 1.0).all()


# Per feature


def test_features_differ_between_low_and_high_and_evenly_so_if_the_average_is_midway():
    told = PerFeature(low=0.2, high=0.6).stated_prob(0.4, 8)
    assert np.sort(told) == pytest.approx(0.2 + 0.4 * (np.arange(8) + 0.5) / 8, abs=1e-12)


def test_an_average_outside_of_low_and_high_is_refused_with_the_remedy():
    with pytest.raises(InvalidSettingError, match=r"observe_prob .*\[0\.5, 0\.9\].* got 0\.3.*low"):
        LowRankWorld(masks={"law": "per-feature", "low": 0.5, "high": 0.9})


def test_a_world_tells_each_features_probability():
    facts = LowRankWorld(masks="per-feature").realize(0).facts
    assert np.array_equal(facts.observe_prob, PerFeature().stated_prob(0.3, 30))
    assert LowRankWorld(masks="per-arm").realize(0).facts.observe_prob == 0.3


# Per arm


def test_arms_differ_in_how_much_they_show():
    """Counts of an arm have variance dp(1−p) + d(d−1)v, with v = h²/3 of the arm's probability.

    v = (.8·.3)²/3. Estimator: the sample variance over 20,000 arms, whose own standard error is
    estimated from the sample's fourth moment.
    """
    counts = drawn(PerArm(spread=0.8)).sum(axis=1)
    expected = 12 * 0.3 * 0.7 + 12 * 11 * (0.8 * 0.3) ** 2 / 3
    squares = (counts - counts.mean()) ** 2
    assert abs(squares.mean() - expected) < 5 * squares.std() / math.sqrt(len(counts))
    assert expected > 1.5 * 12 * 0.3 * 0.7


def test_the_first_entry_of_an_arm_says_no_more_of_the_others_than_any_entry():
    """Its uniform serves twice. Entries i ≠ j have covariance v; standard error at most 1/(4√n)."""
    mask = drawn(PerArm(spread=0.8)).astype(float)
    covariance = np.cov(mask.T)
    variance = (0.8 * 0.3) ** 2 / 3
    assert np.abs(covariance[0, 1:] - variance).max() < 5 * 0.25 / math.sqrt(len(mask))
    assert np.abs(covariance[3, 4:] - variance).max() < 5 * 0.25 / math.sqrt(len(mask))


# Blocks


def test_blocks_move_together_and_apart_from_each_other():
    mask = drawn(Blocks(size=5))
    blocks = [mask[:, 0:5], mask[:, 5:10], mask[:, 10:12]]
    assert all((block == block[:, :1]).all() for block in blocks)
    agree = (mask[:, 0] == mask[:, 5]).mean()
    chance = 0.3**2 + 0.7**2
    assert abs(agree - chance) < 5 * math.sqrt(chance * (1 - chance) / len(mask))


def test_a_block_of_one_is_the_bernoulli_law():
    assert np.array_equal(drawn(Blocks(size=1)), drawn(Bernoulli()))


# By value


def test_the_chance_of_a_value_is_the_documented_one():
    """All entries equal 2: the share seen is 1/(1 + exp(−c − 1)), c by other people's tools."""

    def average(c):
        return quad(lambda z: 2 * norm.pdf(z) / (1 + math.exp(-c - z)), 0, 10)[0]

    c = brentq(lambda c: average(c) - 0.3, -10, 10)
    expected, n = 1 / (1 + math.exp(-c - 1)), NORMALS.size
    share = drawn(ValueDependent(), arms=np.full_like(NORMALS, 2.0)).mean()
    assert abs(share - expected) < 5 * math.sqrt(expected * (1 - expected) / n)


def test_the_scale_of_the_arms_does_not_matter():
    assert np.array_equal(drawn(ValueDependent()), drawn(ValueDependent(), arms=NORMALS * 1e6))


@pytest.mark.parametrize("strength", [-20.0, 20.0])
def test_zero_and_missing_values_do_no_harm(strength):
    law = ValueDependent(strength=strength)
    assert drawn(law, arms=np.zeros((50, 12))).shape == (50, 12)
    holes = np.where(NORMALS[:50] > 0, np.nan, NORMALS[:50])
    assert not drawn(law, arms=holes)[np.isnan(holes)].any()
    assert not drawn(law, arms=np.full((50, 12), np.nan)).any()


def test_a_law_of_ones_own_may_depend_on_the_round_and_leaves_the_rest_of_the_world_alone():
    class Fading(MaskLaw):
        law = "fading"
        fast: float = params.real(default=0.1)

        def seen(self, uniforms, arms, observe_prob, round):
            return uniforms < observe_prob / (1 + self.fast * round)

    plain = LowRankWorld(n_arms=40, horizon=30, observe_prob=0.9)
    fading = plain.replace(masks={"law": "fading", "fast": 0.2})
    assert world_from(fading.to_dict()) == fading
    pairs = list(zip(plain.realize(3).rounds(), fading.realize(3).rounds(), strict=True))
    assert all(np.array_equal(one.arms, other.arms) for one, other in pairs)
    shares = [other.slate.mask.mean() for _, other in pairs]
    assert shares[0] == pytest.approx(0.9 / 1.2, abs=0.07)  # five standard errors
    assert shares[-1] == pytest.approx(0.9 / 7, abs=0.05)


# As data


@pytest.mark.parametrize(
    ("plain", "says"),
    [
        ("at-random", r"masks\.law must be one of 'bernoulli', .* got 'at-random'"),
        ({}, r"masks\.law .* got None"),
        (0.3, r"masks\.law .* got 0.3"),
        ({"law": "blocks", "width": 3}, "width is not a parameter of Blocks, which takes size"),
        ({"law": "per-feature", "low": 0.5, "high": 0.4}, r"high .* got 0\.4"),
    ],
    ids=str,
)
def test_a_bad_law_is_refused_by_key_and_value(plain, says):
    with pytest.raises(InvalidSettingError, match=says):
        mask_law("masks", plain)
