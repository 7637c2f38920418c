"""Contracts of a policy: scores without a choice, logs, and features that enter later."""

import numpy as np

from halfseen.errors import InvalidRewardError, InvalidSettingError
from halfseen.policies.base import Policy
from halfseen.testing.check import Check, expect, expect_refusal
from halfseen.testing.rounds import Factory, offers, offers_in, state_bytes, twin_of, walk
from halfseen.values import FloatArray

_N_NEW = 2
_TOLERANCE = 1e-6


@Check
def scores_are_given_without_any_change(factory: Factory) -> None:
    """`score` returns a finite estimate and width per arm and changes nothing."""
    policy = factory()
    rounds = offers(12, policy)
    for n_rounds in (0, 4, 8):
        walk(policy, rounds[n_rounds : n_rounds + 4])
        before = state_bytes(policy)
        for table, _ in rounds[:3]:
            estimates, widths = policy.score(table)
            expect(estimates.shape == widths.shape == (len(table),), "one score per arm")
            expect(np.isfinite([estimates, widths]).all(), "a score is not finite")
        expect(state_bytes(policy) == before, "score changed the policy")


@Check
def a_log_may_come_in_any_parts(factory: Factory) -> None:
    """Logged rewards are learned, in whatever parts the log comes; bad ones change nothing."""
    policy = factory()
    table, rewards = offers(1, policy, sizes=(12,))[0]
    whole, parts = twin_of(policy), twin_of(policy)
    whole.learn_logged(table, rewards)
    for start, stop in ((0, 1), (1, 7), (7, 12)):
        parts.learn_logged(table[start:stop], rewards[start:stop].tolist())
    expect(state_bytes(parts) == state_bytes(whole), "parts taught something else than the whole")
    expect(whole.round == 12, f"12 logged rewards are {whole.round} rounds")
    before = state_bytes(whole)
    for bad in ([np.nan] * 12, rewards[:11], "rewards", None):
        expect_refusal(whole.learn_logged, table, bad, error=InvalidRewardError, what=repr(bad))
    expect(state_bytes(whole) == before, "bad rewards changed the policy")


@Check
def growing_equals_having_known_all_features(factory: Factory) -> None:
    """A policy that was widened scores as if all features had been there before, hidden."""
    made = factory()
    if not made.can("grow"):
        _expect_no_growth(made)
        return
    narrow = made.dim or 6
    grown, known = (_of_dim(made, narrow) for _ in range(2))
    known.widen(narrow + _N_NEW, levels={narrow + 1: 0})
    early, late = (
        offers_in(dim, 30, (12,), seed=seed) for dim, seed in ((narrow, 0), (narrow + _N_NEW, 1))
    )
    for table, rewards in early[:6]:
        grown.absorb(table)
        known.absorb(_padded(table))
        grown.learn_logged(table, rewards)
        known.learn_logged(_padded(table), rewards)
    one = early[6].table[:1]  # draws of random policies depend on the number of features
    ours, theirs = grown.choose(one), known.choose(_padded(one))
    grown.widen(narrow + _N_NEW, levels={narrow + 1: 0})
    grown.learn(ours, 0.5)
    known.learn(theirs, 0.5)
    expect(grown.dim == narrow + _N_NEW, f"it has {grown.dim} features")
    for table, rewards in late[:6]:
        grown.learn_logged(table, rewards)
        known.learn_logged(table, rewards)
    grown = twin_of(grown)
    for table, _ in late[6:12]:
        for part, other in zip(grown.score(table), known.score(table), strict=True):
            near = np.allclose(part, other, rtol=_TOLERANCE, atol=_TOLERANCE)
            expect(near, f"{part} instead of {other}")


def _expect_no_growth(policy: Policy) -> None:
    walk(policy, offers(4, policy))
    before = state_bytes(policy)
    wider = policy.dim + 1
    expect_refusal(policy.widen, wider, error=InvalidSettingError, what="a new feature")
    expect(state_bytes(policy) == before, "a refused feature changed the policy")


def _of_dim(policy: Policy, dim: int) -> Policy:
    return type(policy)(**policy.settings() | {"dim": dim})


def _padded(table: FloatArray) -> FloatArray:
    """Return a table with new features: hidden, and 0 where the first feature is seen."""
    hidden = np.full(len(table), np.nan)
    return np.column_stack([table, hidden, np.where(np.isnan(table[:, 0]), np.nan, 0.0)])
