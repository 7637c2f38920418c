"""One regression per item on the context: the usual contextual bandit."""

import sys
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from halfseen import checks
from halfseen.linear.drawing import win_shares
from halfseen.linear.history import Played, Reservoir, next_start
from halfseen.linear.ridge import Ridge
from halfseen.params import choice
from halfseen.policies.abilities import Draws, Exploits, UsesContext, UsesItems
from halfseen.policies.base import Policy
from halfseen.policies.optimism import ridge_param, scale_param
from halfseen.policies.registry import register_policy
from halfseen.state import Array, Levels, Part, Real, Sizes, Value, Whole
from halfseen.values import LARGEST, LARGEST_POINT, Choice, FloatArray, Note, Slate
from halfseen.values.rows import NO_ITEM, item_keys, widened_rows

_GROWTH = 1.25  # between the rounds of two fits
_CONSTANT = 1e-12  # a column whose deviation is a smaller share of its mean is constant
_MOST_CONTEXTS = 5000  # from which means and deviations are computed


class _Scaling(NamedTuple):
    """How contexts become points.

    Attributes
    ----------
    means : ndarray, shape (context_dim,)
        Of the seen entries of each column.
    factors : ndarray, shape (context_dim,)
        One over the deviation of the filled column; 0 for a column that has been constant so far.
    """

    means: FloatArray
    factors: FloatArray

    @classmethod
    def of(cls, rows: FloatArray) -> "_Scaling":
        """Return that of contexts (n, context_dim), NaN where hidden."""
        seen, n = rows == rows, max(1, len(rows))
        means = np.where(seen, rows, 0.0).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
        deviations = np.sqrt((np.where(seen, rows - means, 0.0) ** 2).sum(axis=0) / n)
        varies = deviations > _CONSTANT * np.abs(means)
        return cls(means, np.where(varies, 1.0 / np.where(varies, deviations, 1.0), 0.0))

    def points(self, contexts: FloatArray) -> FloatArray:
        """Return filled and standardised columns, indicators of hidden entries, an intercept."""
        hidden = np.isnan(contexts)
        scaled = np.where(hidden, 0.0, (contexts - self.means) * self.factors)
        ones = np.ones((len(contexts), 1))
        return np.hstack([np.clip(scaled, -LARGEST, LARGEST), hidden.astype(np.float64), ones])


class _ByItem(NamedTuple):
    """The field of regressions, or of rewards, by item."""

    part: Part

    def dump(self, value: Mapping[int, Any]) -> list[list[Any]]:
        """Return pairs of keys and states."""
        return [[key, self.part.dump(each)] for key, each in value.items()]

    def load(self, name: str, plain: Any, sizes: Sizes) -> dict[int, Any]:
        """Return what was saved after checking it."""
        return {
            checks.integer("key", key, 0, 2**64 - 1): self.part.load(name, saved, sizes)
            for key, saved in plain
        }


class ItemPolicy(Exploits, UsesContext, UsesItems, Draws, Policy):
    """A baseline that learns about each item by itself, in its context."""

    needs: ClassVar[tuple[str, ...]] = ("dim", "seed")


@register_policy
class PerArmRidge(ItemPolicy):
    """Disjoint LinUCB: one ridge regression of rewards on the context for each item.

    Hidden entries of a context are filled in by the mean of their column, columns are standardised,
    indicators of hidden entries and an intercept are added, and the mean of all rewards is
    subtracted. All this is fitted again in rounds 2, 3, 4, 5, 7, 9, … (factor 1.25), and all
    rewards are learned again. An item that was never played is expected to pay the mean of all
    rewards. Ties are broken at random. Features of arms do not matter; where items have no numbers,
    arms with equal values and equal masks are the same item. It keeps all rewards, so its memory
    grows: it is a baseline for simulations.

    Examples
    --------
    >>> policy = PerArmRidge(dim=1, radius=0.5)
    >>> names = [[float("nan")], [float("nan")]]
    >>> for visitor in (-1.0, 1.0) * 10:
    ...     decision = policy.choose(names, context=[visitor, float("nan")], items=[0, 1])
    ...     policy.learn(decision, float(decision.arm == (visitor > 0)))
    >>> [policy.choose(names, context=[visitor, 0.0], items=[0, 1]).arm for visitor in (-1.0, 1.0)]
    [0, 1]
    """

    STATE: ClassVar = {
        "_contexts": Part(),
        "_scaling": Value(
            _Scaling,
            means=Array(("context_dim",), low=-LARGEST, high=LARGEST),
            factors=Array(("context_dim",), low=0.0, high=LARGEST_POINT),
        ),
        "_played": _ByItem(Part(lambda sizes: sizes.owner._unplayed())),
        "_centre": Real(-LARGEST, LARGEST),
        "_models": _ByItem(Part(lambda sizes: sizes.owner._fresh())),
        "_levels": Levels("context_dim"),
        "_next_fit": Whole(1, sys.maxsize),
    }

    radius: float = scale_param(0.3, doc="Multiple of the width in a score; 0 does not explore.")
    exploration: str = choice(
        default="ucb",
        words=("ucb", "thompson"),
        doc="""Whether a score adds the width, or the width times a standard normal draw for each
    item: Thompson sampling.""",
    )
    ridge: float = ridge_param()

    def setup(self) -> None:
        """Start without contexts and rewards."""
        self._contexts = Reservoir(
            max(1, self.context_dim), max_rows=_MOST_CONTEXTS, seed=self.seed
        )
        self._played: Mapping[int, Played] = {}
        self._scaling = _Scaling.of(np.empty((0, self.context_dim)))
        self._centre = 0.0
        self._models: Mapping[int, Ridge] = {}
        self._levels: Mapping[int, int] = {}
        self._next_fit = 2

    def decide(self, slate: Slate) -> Choice:
        """Choose the item with the largest estimate plus width."""
        return self._choice(slate, self.radius)

    def exploit(self, slate: Slate) -> Choice:
        """Choose the item with the largest estimate."""
        return self._choice(slate, 0.0)

    def prepare(self, slate: Slate) -> None:
        """Fit anew if it is due, and keep the context."""
        if self.round + 1 >= self._next_fit:
            self._fit()
            self._next_fit = next_start(self.round + 1, _GROWTH)
        self.collect(slate)

    def _choice(self, slate: Slate, radius: float) -> Choice:
        parts = self._parts(slate, radius)
        if self.exploration == "thompson" and radius:
            return self._drawn(slate, parts)
        best = np.flatnonzero(parts[0] == parts[0].max())
        if len(best) == 1:
            return Choice(int(best[0]), parts)
        law = np.zeros(slate.n_arms)
        law[best] = 1.0 / len(best)
        place = self.stream(slate, "ties").integers(len(best))
        return Choice(int(best[place]), parts, probabilities=law)

    def _drawn(self, slate: Slate, parts: FloatArray) -> Choice:
        """Choose the item with the largest draw."""
        keys, white = item_keys(slate.table, slate.items), np.diag(parts[2])
        random = self.stream(slate, "thompson")
        items, copies = np.unique(keys, return_inverse=True)
        parts[2] *= random.standard_normal(len(items))[copies]
        np.add(parts[1], parts[2], out=parts[0])
        arm = int(parts[0].argmax())
        return Choice(arm, parts, probabilities=win_shares(keys, parts[1], white, arm, random))

    def appraise(self, slate: Slate) -> FloatArray:
        """Return estimates and widths under the present fit."""
        return self._parts(slate, self.radius)

    def _parts(self, slate: Slate, radius: float) -> FloatArray:
        context = np.full(self.context_dim, np.nan) if slate.context is None else slate.context
        point = self._scaling.points(context[None])
        unknown, keys = self._fresh(), item_keys(slate.table, slate.items).tolist()
        known = {key: self._models.get(key, unknown).predict(point) for key in set(keys)}
        parts = np.empty((3, slate.n_arms))
        for arm, key in enumerate(keys):
            estimate, width = known[key]
            parts[1:, arm] = self._centre + estimate[0], radius * width[0]
        np.add(parts[1], parts[2], out=parts[0])
        return parts

    def _unplayed(self) -> Played:
        return Played(len(self._scaling.means))

    def _fresh(self) -> Ridge:
        return Ridge(2 * len(self._scaling.means) + 1, ridge=self.ridge)

    def _fit(self) -> None:
        """Fit means and deviations, and learn all rewards again."""
        if self.context_dim:
            self._scaling = _Scaling.of(self._contexts.rows)
        rewards = [each.columns.rewards for each in self._played.values()]
        self._centre = float(np.concatenate(rewards).mean()) if rewards else 0.0
        self._learn_again()

    def _learn_again(self) -> None:
        models = {key: self._fresh() for key in self._played}
        for key, played in self._played.items():
            contexts, rewards, _ = played.samples()
            models[key].insert(self._scaling.points(contexts), rewards - self._centre)
        self._models = models

    def collect(self, slate: Slate) -> None:
        """Add the context to those from which means and deviations are computed."""
        context = slate.context
        if context is not None and (context == context).any():
            self._contexts = self._contexts.fork()
            self._contexts.add(context[None])

    def update(self, note: Note, reward: float) -> None:
        """Keep the reward, and add it to the regression of its item."""
        given = np.empty(0) if note.context is None else note.context
        context = widened_rows(given[None], len(self._scaling.means), self._levels)[0]
        item = NO_ITEM if note.item is None else note.item
        key = int(item_keys(note.arm[None], np.array([item]))[0])
        played = self._played[key].fork() if key in self._played else self._unplayed()
        played.append(note.round, context, reward)
        self._played = {**self._played, key: played}
        model = self._models[key].fork() if key in self._models else self._fresh()
        model.update(self._scaling.points(context[None])[0], reward - self._centre)
        self._models = {**self._models, key: model}

    def grow_context(self, dim: int, levels: Mapping[int, int]) -> None:
        """Let contexts have more features; nothing is known of these until the next fit."""
        kept, new = self._contexts.rows[:, : self.context_dim], np.zeros(dim - self.context_dim)
        self._levels = {**self._levels, **levels}
        self._contexts = self._contexts.widened(widened_rows(kept, dim, levels), _MOST_CONTEXTS)
        wider = {key: Played(dim) for key in self._played}
        for key, each in self._played.items():
            contexts = widened_rows(each.columns.arms, dim, levels)
            wider[key].columns = each.columns._replace(arms=contexts)
        self._played = wider
        means, factors = self._scaling
        self._scaling = _Scaling(np.append(means, new), np.append(factors, new))
        self._learn_again()
