"""Fill in hidden entries with a scikit-learn imputer, then play in all features."""

import sys
from collections.abc import Mapping
from typing import Any, ClassVar

from halfseen import checks
from halfseen.core.epochs import EpochSchedule
from halfseen.core.reservoir import Reservoir
from halfseen.params import custom, integer, real
from halfseen.policies.imputers import Filler, ImputerRecipe
from halfseen.policies.registry import register_policy
from halfseen.policies.viewed import Exploring, ViewedPolicy
from halfseen.state import Built, Part, Whole
from halfseen.values import Choice, FloatArray, Slate


@register_policy
class Imputed(Exploring, ViewedPolicy):
    """An imputer in front of a policy in all features: the usual pipeline.

    The imputer is fitted after `first_fit` rounds, and again each time the rounds have grown by a
    factor. It is fitted to a uniform sample of all arms offered or absorbed before the round. Until
    its first fit, hidden entries count as zero; later, those of features it has never seen do.
    A reward is learned with the arm as it was filled in when it was chosen.

    Notes
    -----
    A saved policy contains the rows of the last fit. Loading fits the imputer to them again:
    nothing is pickled, and with the same version of scikit-learn the policy continues bit for bit.

    Examples
    --------
    >>> policy = Imputed(dim=2, imputer="mean", first_fit=1)
    >>> policy.learn(policy.choose([[1.0, 4.0], [3.0, float("nan")]]), 0.5)
    >>> decision = policy.choose([[float("nan"), 4.0]])
    >>> decision.values.tolist(), policy.fill([[float("nan"), 4.0]]).tolist()
    ([0.0, 4.0], [[2.0, 4.0]])
    """

    STATE: ClassVar = {
        "_reservoir": Part(),
        "_filler": Built(Filler),
        "_next_fit": Whole(1, sys.maxsize),
    }

    needs = ("dim", "noise_scale", "seed")

    imputer: Any = custom(
        default="mean",
        check=lambda name, value: value,
        kind="str or estimator",
        doc="""\"zero\", \"mean\", \"knn\" and \"iterative\" are short for `SimpleImputer` with
    zeros or means, `KNNImputer`, `IterativeImputer` with 2 iterations. Or the name of any class in
    `sklearn.impute`, with scikit-learn's defaults. Or an object of such a class, which is copied;
    its settings must be plain JSON values.""",
    )
    imputer_settings: Mapping[str, Any] | None = custom(
        default=None,
        check=lambda name, value: value,
        plain=dict,
        kind="mapping",
        doc="Arguments of the imputer's class.",
    )
    first_fit: int = integer(
        default=10, low=1, high=checks.LARGEST_HORIZON, doc="Rounds before the first fit."
    )
    growth: float = real(default=1.5, doc="Factor between the rounds of two fits, above 1.")
    max_rows: int = integer(default=2000, low=1, doc="Size of the sample that is kept.")

    def setup(self) -> None:
        """Start with an empty sample and an imputer that is not fitted."""
        super().setup()
        self._schedule = EpochSchedule(burn_in=self.first_fit, growth=self.growth)
        self._reservoir = Reservoir(self.dim, max_rows=self.max_rows, seed=self.seed)
        self._recipe = ImputerRecipe(self.imputer, self.imputer_settings, self.seed)
        self._recipe.try_out(self.dim)
        self._filler = Filler(self._recipe, self._reservoir.rows.copy())
        self._next_fit = self.first_fit + 1
        self._inners = (self.inner_policy(self.dim),)

    def settings(self) -> dict[str, Any]:
        """Return the constructor's arguments as plain JSON types."""
        recipe = {"imputer": self._recipe.name, "imputer_settings": dict(self._recipe.settings)}
        return super().settings() | recipe

    def fill(self, options: Any) -> FloatArray:
        """Return options (n_arms, dim) filled in by the imputer as last fitted."""
        return self._filler.fill(Slate.of(options, self.dim)._table)

    def _view(self, slate: Slate) -> FloatArray:
        return self._filler.fill(slate._table)

    def decide(self, slate: Slate) -> Choice:
        """Fit the imputer if it is due, then let the inner policy choose from the filled slate."""
        self._prepare(slate)
        return super().decide(slate)

    def exploit(self, slate: Slate) -> Choice:
        """Do as `decide`, but without exploring."""
        self._prepare(slate)
        return super().exploit(slate)

    def _prepare(self, slate: Slate) -> None:
        round = self._round + 1
        if round >= self._next_fit:
            self._fit(self._reservoir.rows.copy())
            self._next_fit = self._schedule.next_start(round)
        self.observe(slate)

    def _fit(self, rows: FloatArray) -> None:
        """Fit the imputer to rows (n, dim)."""
        self._filler = Filler(self._recipe, rows)

    def observe(self, slate: Slate) -> None:
        """Add the slate to the sample."""
        reservoir = self._reservoir.fork()
        reservoir.add(slate._table)
        self._reservoir = reservoir
