"""What an agent knows about its traffic: means, shares seen, lift, and warnings."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from halfseen.checks import significant
from halfseen.errors import ArchiveError
from halfseen.frames import Encoder
from halfseen.policies.base import Policy
from halfseen.state import Array, Each, Maybe, Real, Value, Whole
from halfseen.values import LARGEST, FloatArray

LARGEST_SUM = 1e200
"""Of products of rewards and weights."""

BLOCK = 500
"""`lately` covers the latest one to two blocks of this many events."""


class Window(NamedTuple):
    """Sums of a vector: of all events before the last full block, of that block, and since.

    Attributes
    ----------
    sums : three ndarrays, shape (1 + width,)
        First what the others are divided by for a mean.
    n_events : int
        Events since the last full block.

    Examples
    --------
    >>> window = Window().added([1.0], 1).added([0.0, 1.0], 1)
    >>> window.means()["lately"]
    (2.0, array([0.5, 0.5]))
    """

    sums: tuple[FloatArray, FloatArray, FloatArray] = (np.zeros(1), np.zeros(1), np.zeros(1))
    n_events: int = 0

    def added(self, vector: Any, count: float) -> "Window":
        """Return the window with one more event."""
        before, block, since = self.sums
        since = _sum(since, np.concatenate([[float(count)], vector]))
        if self.n_events + 1 < BLOCK:
            return Window((before, block, since), self.n_events + 1)
        return Window((_sum(before, block), since, np.zeros(1)))

    def means(self) -> dict[str, tuple[float, FloatArray]]:
        """Return number and means, lately and before; all 0 if there was nothing."""
        before, block, since = self.sums
        both = {"lately": _sum(block, since), "before": before}
        return {when: (float(sums[0]), sums[1:] / max(1.0, sums[0])) for when, sums in both.items()}


def _sum(one: FloatArray, other: FloatArray) -> FloatArray:
    """Return the sum of two vectors, the shorter of which continues with zeros."""
    shorter, longer = sorted((one, other), key=len)
    total = longer.copy()
    total[: len(shorter)] += shorter
    return total


def _window(sums: Sequence[FloatArray], n_events: int) -> Window:
    if not all(map(len, sums)):
        raise ArchiveError("the sums of a window must begin with a count")
    before, block, since = sums
    return Window((before, block, since), n_events)


WINDOW = Value(
    _window,
    sums=Each(Array((None,)), 3),
    n_events=Whole(high=BLOCK - 1),
)
"""How a window is saved."""


def mean_of(rewards: Window) -> dict[str, dict[str, Any]]:
    """Return number and mean of rewards, lately and before."""
    return {
        when: {"n": int(n), "mean": float(means[0]) if n and len(means) else None}
        for when, (n, means) in rewards.means().items()
    }


def shares(seen: Window, encoder: Encoder) -> dict[str, dict[str, float | None]]:
    """Return the share of entries seen of each column, lately and before."""
    found = {}
    for when, (n, means) in seen.means().items():
        padded = np.pad(means, (0, max(0, encoder.width - len(means))))
        found[when] = {
            name: float(padded[column.features[0]]) if n else None
            for name, column in encoder.columns.items()
        }
    return found


def epochs_of(policy: Policy) -> list[dict[str, Any]]:
    """Return round, rank and scales of each epoch of a policy; nothing if it has none."""
    return [
        {"round": each.round, "rank": each.rank, "scales": dict(getattr(each, "scales", {}))}
        for each in getattr(policy, "epoch_log", ())
    ]


class Lift(NamedTuple):
    """Sums from which the lift over a uniform choice follows.

    With rewards r and weights w, the probability of the item under a uniform choice divided by the
    true one: a uniform choice would have earned Σwr / Σw.

    Attributes
    ----------
    products : ndarray, shape (4, 4)
        Σuu', where u = (1, r, w, wr).

    Examples
    --------
    >>> lift = Lift()
    >>> for reward, weight in ((1.0, 0.5), (0.0, 2.0), (1.0, 0.5)):
    ...     lift = lift.added(reward, weight)
    >>> round(lift.shown()["uniform"], 3)
    0.333
    """

    products: FloatArray = np.zeros((4, 4))

    def added(self, reward: float, weight: float) -> "Lift":
        """Return the sums with one more reward."""
        row = np.array([1.0, reward, weight, weight * reward])
        return Lift(self.products + np.outer(row, row))

    def shown(self) -> dict[str, Any]:
        """Return the mean reward, that of a uniform choice, and their difference with 95 %.

        None if there are no rewards of decisions in which every option could be chosen; the
        interval needs two.
        """
        n, total, weight, weighted = self.products[0].tolist()
        names = "mean", "uniform", "lift", "interval"
        if not n:
            return dict.fromkeys(names) | {"n": 0, "effective_n": 0.0}
        mean, uniform = total / n, weighted / weight
        # What u of a reward adds to the error of the lift, to first order.
        effect = np.array([-mean / n, 1.0 / n, uniform / weight, -1.0 / weight])
        spread = 1.96 * math.sqrt(max(0.0, effect @ self.products @ effect))
        lift = mean - uniform
        interval = [lift - spread, lift + spread] if n > 1.0 else None
        found = zip(names, (mean, uniform, lift, interval), strict=True)
        return dict(found) | {"n": int(n), "effective_n": weight**2 / float(self.products[2, 2])}


def _lift(products: FloatArray) -> Lift:
    n, _, weight, _ = products[0]
    if products.any() and not (n >= 1.0 and weight > 0.0 and products[2, 2] > 0.0):
        raise ArchiveError("the sums of a lift must be of rewards with positive weights")
    return Lift(products)


LIFT = Value(_lift, products=Array((4, 4), low=-LARGEST_SUM, high=LARGEST_SUM))
"""How a lift is saved."""

N_EQUAL = 100
"""This many equal rewards in a row are suspicious while several decisions are pending."""

_FEW = 10  # decisions that may be pending because they were made just now
_MARKS, _EVERY = 10, 100
_REFITS = 20  # refits whose times are remembered


class Signs(NamedTuple):
    """Evidence that rewards are not reported as they should be.

    Attributes
    ----------
    reward : float or None
        The last one.
    n_equal : int
        Rewards in a row that are equal to it.
    marks : tuple of int
        How many decisions waited after every hundredth one, the latest ten times.
    """

    reward: float | None = None
    n_equal: int = 0
    marks: tuple[int, ...] = ()

    def rewarded(self, reward: float) -> "Signs":
        """Return the signs after one more reward."""
        n_equal = self.n_equal + 1 if reward == self.reward else 1
        return self._replace(reward=reward, n_equal=n_equal)

    def decided(self, n_decisions: int, n_waiting: int) -> "Signs":
        """Return the signs after one more decision."""
        if n_decisions % _EVERY:
            return self
        return self._replace(marks=(*self.marks[1 - _MARKS :], n_waiting))

    def warnings(self, n_waiting: int) -> list[str]:
        """Return what looks wrong, with its remedy."""
        found = []
        if self.reward is not None and self.n_equal >= N_EQUAL and n_waiting > _FEW:
            reward = significant(self.reward, 6)
            found.append(
                f"the last {self.n_equal} rewards were all {reward}, and {n_waiting} decisions are "
                "pending: if no response means a reward of 0, set expire_after"
            )
        grows = all(one < two for one, two in zip(self.marks, self.marks[1:], strict=False))
        if len(self.marks) == _MARKS and grows:
            found.append(
                f"the number of pending decisions keeps growing, {n_waiting} now: report rewards, "
                "or set expire_after"
            )
        return found


SIGNS = Value(
    Signs,
    reward=Maybe(Real(-LARGEST, LARGEST)),
    n_equal=Whole(),
    marks=Each(Whole()),
)
"""How signs are saved."""


class Traffic(NamedTuple):
    """What an agent counts.

    Attributes
    ----------
    n_decisions, n_pending, n_forgotten, n_late : int
        Decisions; those that wait for a reward; those that were dropped because too many waited;
        rewards that came when their place took no more.
    seen, context_seen : Window
        Entries seen of each feature, per option and per context.
    rewards : Window
    lift : Lift
    signs : Signs
    refit_seconds : tuple of float
        Of the latest refits.
    """

    n_decisions: int = 0
    n_pending: int = 0
    n_forgotten: int = 0
    n_late: int = 0
    seen: Window = Window()
    context_seen: Window = Window()
    rewards: Window = Window()
    lift: Lift = Lift()
    signs: Signs = Signs()
    refit_seconds: tuple[float, ...] = ()

    def decided(self, table: FloatArray, contexts: FloatArray | None) -> "Traffic":
        """Return the counts after a decision."""
        n, n_pending = self.n_decisions + 1, self.n_pending + 1
        found = self._replace(
            n_decisions=n,
            n_pending=n_pending,
            seen=self.seen.added(n_seen(table), len(table)),
            signs=self.signs.decided(n, n_pending),
        )
        if contexts is None:
            return found
        shown = self.context_seen.added(n_seen(contexts), len(contexts))
        return found._replace(context_seen=shown)

    def rewarded(self, reward: float, weight: float | None) -> "Traffic":
        """Return the counts after a reward was learned."""
        return self._replace(
            rewards=self.rewards.added([reward], 1),
            signs=self.signs.rewarded(reward),
            lift=self.lift if weight is None else self.lift.added(reward, weight),
        )

    def observed(
        self, table: FloatArray, contexts: FloatArray | None, rewards: Sequence[float]
    ) -> "Traffic":
        """Return the counts after a log was learned."""
        seen, context_seen, window = self.seen, self.context_seen, self.rewards
        for row, reward in enumerate(rewards):
            seen = seen.added(table[row] == table[row], 1)
            if contexts is not None:
                context_seen = context_seen.added(contexts[row] == contexts[row], 1)
            window = window.added([reward], 1)
        return self._replace(seen=seen, context_seen=context_seen, rewards=window)

    def late(self) -> "Traffic":
        """Return the counts after a reward that came too late."""
        return self._replace(n_late=self.n_late + 1)

    def closed(self, n: int, *, forgotten: bool = False) -> "Traffic":
        """Return the counts after some decisions wait no more."""
        n_forgotten = self.n_forgotten + n if forgotten else self.n_forgotten
        return self._replace(n_pending=self.n_pending - n, n_forgotten=n_forgotten)

    def refitted(self, seconds: float) -> "Traffic":
        """Return the counts after a refit."""
        return self._replace(refit_seconds=(*self.refit_seconds[1 - _REFITS :], seconds))


TRAFFIC = Value(
    Traffic,
    **{f"n_{name}": Whole() for name in ("decisions", "pending", "forgotten", "late")},
    **dict.fromkeys(("seen", "context_seen", "rewards"), WINDOW),
    lift=LIFT,
    signs=SIGNS,
    refit_seconds=Each(Real(0.0)),
)
"""How traffic is saved."""


def n_seen(table: FloatArray) -> Sequence[int]:
    """Return how many entries of each feature are seen."""
    counts: Sequence[int] = np.add.reduce(table == table, axis=0)
    return counts
