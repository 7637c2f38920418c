"""Fill in what is hidden by an imputer of scikit-learn, then play in all features."""

from collections.abc import Mapping
from typing import Any

from halfseen import archive, checks
from halfseen.core.epochs import EpochSchedule
from halfseen.core.reservoir import Reservoir
from halfseen.policies.imputers import Filler, ImputerRecipe
from halfseen.policies.registry import register
from halfseen.policies.viewed import Exploration, ViewedPolicy
from halfseen.values import Decision, FloatArray, Slate


@register
class Imputed(ViewedPolicy):
    """An imputer in front of a policy in all features: what a pipeline of today does.

    The imputer is fitted after `first_fit` rounds and again whenever the rounds have grown by a
    factor, to a uniform sample of all arms offered before the round (also absorbed ones). Before
    its first fit, and for features not seen until then, what is hidden counts as zero. Rewards are
    learned on the arm as it was filled in when it was chosen.

    Parameters
    ----------
    dim : int
    imputer : "mean", "knn", "iterative", another str, or estimator
        Short for `SimpleImputer`, `KNNImputer`, and `IterativeImputer` with 2 iterations. Or the
        name of any class in `sklearn.impute`, with scikit-learn's defaults. Or an object of such a
        class, which is copied, not kept; its settings must be plain JSON values.
    imputer_settings : mapping, optional
        Arguments of the imputer's class.
    first_fit : int
        Rounds before the first fit.
    growth : float
        Factor between the rounds of two fits, above 1.
    max_rows : int
        Size of the sample that is kept.
    exploration : "ucb", "thompson" or "greedy"
        `AmbientOful`, `LinearThompson` or `Greedy` on the arms filled in.
    ridge, failure_prob, theta_bound, noise_scale : float
        λ, δ, S, R. A reward in [0, 1] has R = 0.5.
    radius_scale : float
        Multiplies the radius of "ucb", and the standard deviation R of "thompson".
    seed : int
        Of the sample, of an imputer that is random, and of "thompson".
    max_open : int
        How many decisions wait for their reward at most; the oldest is forgotten first.

    Notes
    -----
    Saved are the rows of the last fit, to which the imputer is fitted again on loading: nothing is
    pickled, and under the same scikit-learn the policy continues bit by bit.

    Examples
    --------
    >>> policy = Imputed(dim=2, imputer="mean", first_fit=1)
    >>> policy.learn(policy.choose([[1.0, 4.0], [3.0, float("nan")]]), 0.5)
    >>> decision = policy.choose([[float("nan"), 4.0]])
    >>> decision.values.tolist(), policy.fill([[float("nan"), 4.0]]).tolist()
    ([0.0, 4.0], [[2.0, 4.0]])
    """

    told = ("dim", "noise_scale", "seed")

    def __init__(
        self,
        *,
        dim: int,
        imputer: Any = "mean",
        imputer_settings: Mapping[str, Any] | None = None,
        first_fit: int = 10,
        growth: float = 1.5,
        max_rows: int = 2000,
        exploration: str = "ucb",
        ridge: float = 1.0,
        failure_prob: float = 0.05,
        theta_bound: float = 1.0,
        noise_scale: float = 0.5,
        radius_scale: float = 1.0,
        seed: int = 0,
        max_open: int = 10_000,
    ) -> None:
        self._exploration = Exploration(
            exploration=exploration,
            ridge=ridge,
            failure_prob=failure_prob,
            theta_bound=theta_bound,
            noise_scale=noise_scale,
            radius_scale=radius_scale,
            seed=seed,
            max_open=max_open,
        )
        dim = checks.integer("dim", dim, 1)
        super().__init__(dim=dim, inners=[self._exploration.policy(dim)], max_open=max_open)
        first_fit = checks.integer("first_fit", first_fit, 1)
        self._schedule = EpochSchedule(burn_in=first_fit, growth=growth)
        self._reservoir = Reservoir(dim, max_rows=max_rows, seed=seed)
        self._recipe = ImputerRecipe(imputer, imputer_settings, seed)
        self._recipe.try_out(dim)
        self._filler = Filler(self._recipe, self._reservoir.rows.copy())
        self._next_fit = first_fit + 1

    def settings(self) -> dict[str, Any]:
        """Return the constructor's arguments as plain JSON types."""
        return self._exploration.to_dict() | {
            "dim": self.dim,
            "imputer": self._recipe.name,
            "imputer_settings": dict(self._recipe.settings),
            "first_fit": self._schedule.burn_in,
            "growth": self._schedule.growth,
            "max_rows": self._reservoir.max_rows,
        }

    def fill(self, options: Any) -> FloatArray:
        """Return options (n_arms, dim) filled in as the imputer was last fitted."""
        return self._filler.fill(Slate.of(options, self.dim)._table)

    def _view(self, slate: Slate) -> FloatArray:
        return self._filler.fill(slate._table)

    def _choose(self, slate: Slate) -> Decision:
        # All that may fail comes first and changes nothing; the inner choice is the last of it.
        filler, next_fit, round = self._filler, self._next_fit, self._round + 1
        if round >= next_fit:
            filler = Filler(self._recipe, self._reservoir.rows.copy())
            next_fit = self._schedule.next_start(round)
        places = self._reservoir.reserve(slate._table)
        decision = self._pass_on(slate, filler.fill(slate._table))
        self._filler, self._next_fit = filler, next_fit
        self._reservoir.add(slate._table, places)
        return decision

    def _absorb(self, slate: Slate) -> None:
        self._reservoir.add(slate._table)

    def _state(self) -> dict[str, Any]:
        return super()._state() | {
            "reservoir": self._reservoir.state(),
            "fitted_rows": self._filler.rows,
            "next_fit": self._next_fit,
        }

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._reservoir.restore(state["reservoir"])
        rows = archive.array(state, "fitted_rows", (None, self.dim))
        self._filler = Filler(self._recipe, rows)
        self._next_fit = checks.integer("next_fit", state["next_fit"], 1)
