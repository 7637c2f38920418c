"""Fill in, standardise columns, add an intercept, then play in all features."""

from typing import Any, ClassVar, NamedTuple

import numpy as np

from halfseen.core.replay import Played
from halfseen.params import flag
from halfseen.policies.imputed import Imputed
from halfseen.policies.registry import register_policy
from halfseen.policies.ridge_policy import RidgePolicy
from halfseen.state import Part, Whole
from halfseen.values import LARGEST, FloatArray, Note, Slate

_CONSTANT = 1e-12  # a column whose deviation is a smaller share of its size is constant


class Scaling(NamedTuple):
    """Means and deviations of the features, each of shape (dim,)."""

    means: FloatArray
    deviations: FloatArray

    @classmethod
    def of(cls, table: FloatArray) -> "Scaling":
        """Return those of a table (n, dim) with nothing hidden; constant columns keep their unit.

        >>> Scaling.of(np.array([[1.0, 5.0], [3.0, 5.0]]))
        Scaling(means=array([2., 5.]), deviations=array([1., 1.]))
        """
        if not len(table):
            return cls(np.zeros(table.shape[1]), np.ones(table.shape[1]))
        deviations = table.std(axis=0)
        constant = deviations <= _CONSTANT * np.abs(table).max(axis=0)
        return cls(table.mean(axis=0), np.where(constant, 1.0, deviations))


@register_policy
class Standardized(Imputed):
    """The usual pipeline for a table: impute, standardise every column, add an intercept.

    Whenever the imputer is fitted, means and deviations are those of its sample, filled in; and all
    rewards so far are learned again with their arms as they are now filled in and standardised.
    Until the first fit, features are in their own units and hidden entries count as zero.

    Examples
    --------
    >>> policy = Standardized(dim=2, imputer="mean", first_fit=1, exploration="greedy")
    >>> policy.learn(policy.choose([[1.0, 400.0], [3.0, float("nan")]]), 0.5)
    >>> policy.learn(policy.choose([[5.0, 400.0]]), 0.5)
    >>> policy.shown([[4.0, float("nan")]]).tolist()
    [[2.0, 0.0, 1.0]]
    """

    STATE: ClassVar = {"_played": Part(), "_fit_round": Whole()}

    indicators: bool = flag(
        default=False, doc="Whether each feature gets another one, 1 where it is hidden, else 0."
    )

    def setup(self) -> None:
        """Start without rewards and without a scaling."""
        super().setup()
        self._played = Played(self.dim)
        self._scaling = Scaling.of(self._filler.rows)
        self._fit_round = 0
        n_columns = self.dim * (2 if self.indicators else 1) + 1
        self._inners = (self.inner_policy(n_columns),)

    def shown(self, options: Any) -> FloatArray:
        """Return options (n_arms, dim) as the inner policy sees them: an intercept comes last."""
        return self._columns(Slate.of(options, self.dim)._table)

    def _columns(self, table: FloatArray) -> FloatArray:
        scaled = (self._filler.fill(table) - self._scaling.means) / self._scaling.deviations
        parts = [np.clip(scaled, -LARGEST, LARGEST)]
        if self.indicators:
            parts.append(np.isnan(table).astype(np.float64))
        return np.hstack([*parts, np.ones((len(table), 1))])

    def _view(self, slate: Slate) -> FloatArray:
        return self._columns(slate._table)

    def _fit(self, rows: FloatArray) -> None:
        """Fit imputer and scaling, and learn all rewards so far again."""
        super()._fit(rows)
        self._scaling = Scaling.of(self._filler.fill(rows))
        self._fit_round = self._round + 1
        arms, rewards, _ = self._played.samples()
        (inner,) = self._inners
        assert isinstance(inner, RidgePolicy)
        self._inners = (inner.refitted(self._columns(arms), rewards),)

    def update(self, note: Note, reward: float) -> None:
        """Keep the reward, and pass it on with its arm as it is standardised now."""
        played = self._played.fork()
        played.append(note.round, note.arm, reward)
        self._played = played
        if note.inner is not None and note.round < self._fit_round:
            note = note._replace(inner=note.inner._replace(arm=self._columns(note.arm[None])[0]))
        super().update(note, reward)

    def restore(self, saved: dict[str, Any]) -> None:
        """Continue from a saved state, with imputer and scaling fitted to the same rows again."""
        super().restore(saved)
        self._scaling = Scaling.of(self._filler.fill(self._filler.rows))
