"""The hard family of the lower bound, against the proof's own formulas.

Statistical tests use fixed seeds and reject at 5 standard errors (probability 6e-7 each).
"""

import math
from itertools import product

import numpy as np
import pytest

from halfseen.paper import HardInstanceWorld
from halfseen.theory import explicit_lower_bound, gaps_fit, hard_instance_gaps

SIGNS = list(product([1, -1], [1, -1]))
BOUNDS = {"arm_bound": 3.0, "theta_bound": 0.5, "noise_scale": 2.0}


def world_of(signs=(None, None), **settings):
    return HardInstanceWorld(reward_sign=signs[0], hidden_sign=signs[1], **settings)


def stacked(world, seed=0):
    """Return arms, masks (rows, 4) and means (rows,) of all rounds."""
    rounds = list(world.realize(seed).rounds())
    arms, masks = ([round.arms for round in rounds], [round.slate.mask for round in rounds])
    return np.concatenate(arms), np.concatenate(masks), np.concatenate([r.means for r in rounds])


@pytest.mark.parametrize("signs", SIGNS, ids=str)
def test_decision_arms_pay_by_their_label_and_side_arms_nothing(signs):
    world = world_of(signs, horizon=50, **BOUNDS)
    gaps = hard_instance_gaps(world.realize(0).problem())
    arms, _, means = stacked(world)
    a, b = np.sign(arms[:, 0]), np.sign(arms[:, 1])
    expected = a * signs[0] * gaps.reward_gap + b * signs[1] * gaps.hidden_gap
    assert means == pytest.approx(expected, rel=1e-14, abs=1e-14)
    side = a == 0
    assert (means[side] == 0.0).all()
    assert np.array_equal(np.abs(arms[~side]), np.tile([1.5, 1.5, 0, 0], ((~side).sum(), 1)))
    root = 1.5 / math.sqrt(2)
    assert np.abs(arms[side]) == pytest.approx(np.tile([0, 0, root, root], (side.sum(), 1)))
    assert (np.sign(arms[side, 2] * arms[side, 3]) == signs[1]).all()


@pytest.mark.parametrize("signs", SIGNS, ids=str)
def test_arms_lie_in_the_given_subspace_and_norms_within_the_bounds(signs):
    world = world_of(signs, horizon=50, **BOUNDS)
    realization = world.realize(3)
    arms, _, _ = stacked(world, 3)
    basis = realization.facts.basis
    assert basis.T @ basis == pytest.approx(np.eye(3), abs=1e-15)
    assert arms @ basis @ basis.T == pytest.approx(arms, abs=1e-14)
    assert np.linalg.norm(arms, axis=1).max() <= 3.0
    assert np.linalg.norm(realization.theta) <= 0.5
    assert gaps_fit(realization.problem(), realization.gaps)


def test_all_labels_are_equally_likely():
    """Chi-square of 40,000 arms in 4 labels of 1/8 and 2 side arms of 1/4.

    With 5 degrees of freedom it exceeds 37.0 with probability 6e-7.
    """
    arms, _, _ = stacked(world_of(horizon=5000))
    kinds = [tuple(row) for row in np.sign(arms).astype(int)]
    observed = {kind: kinds.count(kind) for kind in set(kinds)}
    assert len(observed) == 6
    expected = {kind: len(arms) / (8 if kind[0] else 4) for kind in observed}
    statistic = sum((observed[kind] - expected[kind]) ** 2 / expected[kind] for kind in observed)
    assert statistic < 37.0


def test_the_hidden_sign_shows_only_where_both_entries_of_a_side_arm_do():
    """Both entries give σ as the sign of their product; e_2 alone is ± alike under either sign."""
    rounds = [world_of((1, sign), horizon=2000).realize(0).rounds() for sign in (1, -1)]
    singles = {1: [], -1: []}
    for plus, minus in zip(*rounds, strict=True):
        assert np.array_equal(plus.slate.mask, minus.slate.mask)
        decision = plus.arms[:, 0] != 0
        assert np.array_equal(plus.slate.values[decision], minus.slate.values[decision])
        both = plus.slate.mask[:, 2:].all(axis=1) & ~decision
        for sign, round in ((1, plus), (-1, minus)):
            shown = round.slate.values[both][:, 2:]
            assert (np.sign(shown.prod(axis=1)) == sign).all()
            alone = round.slate.mask[:, 3] & ~round.slate.mask[:, 2] & ~decision
            singles[sign].append(np.sign(round.slate.values[alone, 3]))
    for entries in map(np.concatenate, singles.values()):
        assert abs(entries.mean()) < 5 / math.sqrt(len(entries))


def test_the_oracle_augmented_slates_hide_side_arms_only():
    world = world_of(horizon=2000, observe_prob=0.2)
    arms, masks, _ = stacked(world)
    decision = arms[:, 0] != 0
    assert masks[decision].all()
    n = masks[~decision].size
    assert abs(masks[~decision].mean() - 0.2) < 5 * math.sqrt(0.16 / n)
    assert world.realize(0).facts.observe_prob == pytest.approx((1.0 + 0.2) / 2)


def test_fully_masked_slates_hide_every_kind_of_arm():
    settings = {"horizon": 2000, "observe_prob": 0.2}
    world = world_of(masking="fully-masked", **settings)
    arms, masks, _ = stacked(world)
    assert world.realize(0).facts.observe_prob == 0.2
    augmented, other_masks, _ = stacked(world_of(**settings))
    assert np.array_equal(arms, augmented)
    for kind in (arms[:, 0] != 0, arms[:, 0] == 0):
        n = masks[kind].size
        assert abs(masks[kind].mean() - 0.2) < 5 * math.sqrt(0.16 / n)
    assert not (masks & ~other_masks).any()


def test_the_constants_are_those_of_the_arms():
    world = world_of((1, -1), horizon=5000, **BOUNDS)
    realization = world.realize(0)
    problem = realization.problem()
    assert (problem.dim, problem.rank, problem.arm_bound) == (4, 3, 3.0)
    assert (problem.theta_bound, problem.noise_scale) == (0.5, 2.0)
    exact = realization.catalogue.T @ realization.catalogue / 8
    spectrum = np.linalg.eigvalsh(exact)
    assert spectrum == pytest.approx([0, 9 / 8, 9 / 8, 9 / 8], abs=1e-14)
    assert problem.last_eigenvalue == problem.top_eigenvalue == 9 / 8
    assert explicit_lower_bound(problem, realization.gaps).total > 0


def test_signs_are_drawn_from_the_seed_unless_they_are_set():
    drawn = {
        (realization.reward_sign, realization.hidden_sign)
        for realization in map(world_of(horizon=1).realize, range(40))
    }
    assert drawn == set(SIGNS)
    fixed = [world_of((-1, 1), horizon=1).realize(seed) for seed in range(10)]
    assert {(one.reward_sign, one.hidden_sign) for one in fixed} == {(-1, 1)}
