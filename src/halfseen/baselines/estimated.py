"""ε-greedy with an estimator of scikit-learn: what practitioners build first.

scikit-learn is imported only when an estimator is fitted.
"""

import sys
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from halfseen import checks
from halfseen.baselines.per_arm import ItemPolicy
from halfseen.lazy import from_extra
from halfseen.linear.drawing import drawn
from halfseen.linear.history import Columns, Played, next_start
from halfseen.params import choice, real
from halfseen.policies.registry import register_policy
from halfseen.seeding import stream
from halfseen.state import Part, Whole
from halfseen.values import Choice, FloatArray, Note, Slate
from halfseen.values.rows import NO_ITEM, item_keys, widened_rows

ESTIMATORS = ("boosted-trees", "forest")

_GROWTH = 2.0  # between the rounds of two fits
_FEWEST = 2  # rewards to which an estimator is fitted
_MOST_ROWS = 10_000  # latest rewards that are kept for sure
_LARGEST = 1e30  # a forest computes with numbers of 32 bits


def fresh_estimator(name: str, seed: int) -> Any:
    """Return a regressor of scikit-learn, not fitted, that takes NaN as it is."""
    with from_extra("paper"):
        from sklearn import ensemble

    state = int(stream(seed, "estimator").integers(2**31))
    if name == "forest":
        return ensemble.RandomForestRegressor(50, min_samples_leaf=3, random_state=state)
    return ensemble.HistGradientBoostingRegressor(
        early_stopping=False, min_samples_leaf=5, random_state=state
    )


def predicted(model: Any, rows: FloatArray) -> FloatArray:
    """Return what a fitted estimator expects of rows, shape (n,)."""
    if not hasattr(model, "estimators_"):
        return np.asarray(model.predict(rows))
    # A forest checks its input and starts a pool for every call, which takes five times as long.
    rows = rows.astype(np.float32)
    trees = [tree.tree_.predict(rows)[:, 0] for tree in model.estimators_]
    return np.asarray(np.mean(trees, axis=0))


@register_policy
class EpsilonGreedy(ItemPolicy):
    """Trees fitted to the latest rewards; a small share of the rounds is played at random.

    Each item with an id has its own estimator, on arm and context; all other arms share one.
    Estimators are fitted again each time the rounds have doubled. Until it is fitted, and for new
    items, an estimate is the mean of all rewards. Ties are broken at random. Of 20,000 rewards the
    latest 10,000 are kept, and estimators are fitted to them.

    Notes
    -----
    Loading a saved policy fits its estimators again: nothing is pickled, and with the same version
    of scikit-learn the policy continues bit for bit.

    Examples
    --------
    >>> policy = EpsilonGreedy(dim=1, estimator="forest", epsilon=0.0)
    >>> policy.learn_logged([[-1.0], [0.0], [1.0]] * 10, [1.0, 0.0, 1.0] * 10)
    >>> policy.choose([[0.1], [0.9]]).arm
    1
    """

    STATE: ClassVar = {
        "_played": Part(lambda sizes: sizes.owner._none_played(sizes.owner.context_dim)),
        "_n_fitted": Whole(),
        "_next_fit": Whole(1, sys.maxsize),
    }

    estimator: str = choice(
        default="boosted-trees",
        words=ESTIMATORS,
        doc="`HistGradientBoostingRegressor`, or `RandomForestRegressor` with 50 trees.",
    )
    epsilon: float = real(
        default=0.05,
        low=0.0,
        high=1.0,
        doc="Share of the rounds in which all arms are equally likely.",
    )

    def setup(self) -> None:
        """Start without rewards."""
        self._played = self._none_played(self.context_dim)
        self._n_fitted, self._next_fit = 0, 2
        self._fit(0)

    def _none_played(self, context_dim: int) -> Played:
        return Played(1 + self.dim + context_dim)  # the first column has the item ids

    def prepare(self, slate: Slate) -> None:
        """Fit the estimators if it is due."""
        if self.round + 1 >= self._next_fit:
            self._fit(len(self._played))
            self._next_fit = next_start(self.round + 1, _GROWTH)

    def decide(self, slate: Slate) -> Choice:
        """Choose the largest estimate, or any arm."""
        return self._choice(slate, self.epsilon)

    def exploit(self, slate: Slate) -> Choice:
        """Choose the largest estimate."""
        return self._choice(slate, 0.0)

    def _choice(self, slate: Slate, epsilon: float) -> Choice:
        parts = self.appraise(slate)
        best = parts[0] == parts[0].max()
        law = epsilon / slate.n_arms + (1.0 - epsilon) * best / np.count_nonzero(best)
        keys = item_keys(slate.table, slate.items)
        arm = drawn(law, parts[1], keys, self.stream(slate, "epsilon"))
        return Choice(arm, parts, probabilities=law)

    def appraise(self, slate: Slate) -> FloatArray:
        """Return estimates; there are no widths."""
        rows = self._rows(slate.table, slate.items, slate.context)
        items, parts = rows[:, 0], np.full((3, slate.n_arms), self._mean)
        parts[2] = 0.0
        for item in set(items.tolist()) & self._models.keys():
            arms = items == item
            guesses = predicted(self._models[item], np.clip(rows[arms, 1:], -_LARGEST, _LARGEST))
            parts[:2, arms] = self._mean + self._unit * guesses
        return parts

    def _rows(self, arms: FloatArray, items: Any, context: FloatArray | None) -> FloatArray:
        """Return item, arm and context side by side, a row for each arm, NaN where hidden."""
        rows = np.full((len(arms), self._played.dim), np.nan)
        rows[:, 0], rows[:, 1 : 1 + self.dim] = NO_ITEM if items is None else items, arms
        if context is not None:
            rows[:, 1 + self.dim : 1 + self.dim + len(context)] = context
        return rows

    def _fit(self, n: int) -> None:
        """Fit an estimator for each item to the first rewards that came."""
        rows, rewards, _ = (column[:n] for column in self._played.columns)
        self._n_fitted, self._models = n, dict[int, Any]()
        self._mean = float(rewards.mean()) if n else 0.0
        self._unit = float(np.abs(rewards - self._mean).max(initial=0.0)) or 1.0
        for item in np.unique(rows[:, 0]).tolist():
            own = rows[:, 0] == item
            inputs = np.clip(rows[own, 1:], -_LARGEST, _LARGEST)
            inputs[:, np.isnan(inputs).all(axis=0)] = 0.0  # boosted trees refuse empty columns
            if len(inputs) >= _FEWEST:
                model = fresh_estimator(self.estimator, self.seed)
                model.fit(inputs, (rewards[own] - self._mean) / self._unit)
                self._models = {**self._models, int(item): model}

    def update(self, note: Note, reward: float) -> None:
        """Keep the reward for the next fit."""
        self._played = played = self._played.fork()
        row = self._rows(note.arm[None], note.item, note.context)[0]
        played.append(note.round, row, reward)
        if len(played) == 2 * _MOST_ROWS:
            arms, rewards, rounds = played.columns
            latest = slice(_MOST_ROWS, None)
            self._played = self._none_played(self.context_dim)
            self._played.columns = Columns(arms[latest], rewards[latest], rounds[latest])
            self._fit(_MOST_ROWS)

    def grow_context(self, dim: int, levels: Mapping[int, int]) -> None:
        """Let contexts have more features; the estimators are fitted to them at once."""
        wider, first = self._none_played(dim), 1 + self.dim
        further = {first + level: first + other for level, other in levels.items()}
        kept = self._played.columns
        wider.columns = kept._replace(arms=widened_rows(kept.arms, wider.dim, further))
        self._played = wider
        self._fit(self._n_fitted)

    def after_loading(self) -> None:
        """Fit the estimators to the same rewards again."""
        self._fit(checks.integer("n_fitted", self._n_fitted, 0, len(self._played)))
