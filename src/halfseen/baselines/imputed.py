"""Policies that show a transformed slate to an inner policy: filled in, standardised.

scikit-learn is imported only for the iterative imputer.
"""

import sys
import warnings
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, NamedTuple

import numpy as np

from halfseen import checks
from halfseen.baselines.ambient import (
    AmbientOful,
    Greedy,
    LinearThompson,
    RidgePolicy,
)
from halfseen.errors import UnknownDecisionError
from halfseen.lazy import from_extra
from halfseen.linear.history import LARGEST_GROWTH, Played, Reservoir, next_start
from halfseen.linear.ridge import LARGEST_SCALE
from halfseen.log import logger
from halfseen.params import choice, flag, integer, real
from halfseen.policies.abilities import Exploits
from halfseen.policies.base import Policy
from halfseen.policies.optimism import EXPLORATIONS, Optimism, scale_param
from halfseen.policies.registry import InnerPolicy, register_policy
from halfseen.seeding import stream
from halfseen.state import ARMS, Built, Part, Whole
from halfseen.values import LARGEST, Choice, FloatArray, Note, Slate


class Exploring(Optimism):
    """Parameters of a policy whose inner policy explores."""

    exploration: str = choice(
        default="ucb",
        words=EXPLORATIONS,
        doc="The inner policy: `AmbientOful`, `LinearThompson` or `Greedy`.",
    )
    radius_scale: float = scale_param(
        1.0, doc='Multiplies the radius of "ucb", and the standard deviation R of "thompson".'
    )
    seed: int = integer(default=0, low=0, doc="Names all streams of random numbers.")

    def inner_policy(self, dim: int) -> Policy:
        """Return a fresh inner policy in `dim` dimensions."""
        if self.exploration == "greedy":
            return Greedy(dim=dim, ridge=self.ridge)
        if self.exploration == "thompson":
            return LinearThompson(
                dim=dim,
                ridge=self.ridge,
                noise_scale=self.noise_scale,
                scale=min(LARGEST_SCALE, self.radius_scale * self.noise_scale),
                seed=self.seed,
            )
        return AmbientOful(dim=dim, **self.optimism())


class ViewedPolicy(Exploits, Policy):
    """Shows a view of each slate to an inner policy and returns its choice.

    A decision contains the arm as it was offered. Its note also contains the inner policy's view of
    that arm, so that a late reward is learned with the view of its own round.

    A subclass sets `_inner`, which has the dimension of the view, in `setup`.
    """

    STATE: ClassVar = {"_inner": InnerPolicy()}

    _inner: Policy
    _round_slate: Slate | None = None
    _round_view: Slate

    @property
    def current_rank(self) -> int | None:
        """Number of dimensions in which the inner policy chooses."""
        return self._inner.current_rank

    @abstractmethod
    def _view(self, slate: Slate) -> FloatArray:
        """Return the view for the inner policy, shape (n_arms, its dim), without side effects.

        Entries beyond `LARGEST`, which a slate may not have, are clipped afterwards.
        """

    def shown(self, options: Any) -> FloatArray:
        """Return options (n_arms, dim) as the inner policy sees them now."""
        return self._view(Slate.of(options, self.dim))

    def _shown_to_inner(self, slate: Slate) -> Slate:
        """Return the view of a slate; that of the present round was computed by `prepare`."""
        if slate is self._round_slate:
            return self._round_view
        view = np.clip(self._view(slate), -LARGEST, LARGEST)
        return Slate.of(Slate(view, id=slate.id), self._inner.dim)

    def prepare(self, slate: Slate) -> None:
        """Let the inner policy prepare for its view."""
        self._round_view, self._round_slate = self._shown_to_inner(slate), slate
        self._inner = self._inner.fork()
        self._inner.prepare(self._round_view)

    def decide(self, slate: Slate) -> Choice:
        """Let the inner policy choose from its view."""
        return self._inner.decide(self._shown_to_inner(slate))

    def exploit(self, slate: Slate) -> Choice:
        """Let the inner policy choose from its view without exploring."""
        return self._inner.able(Exploits).exploit(self._shown_to_inner(slate))

    def appraise(self, slate: Slate) -> FloatArray:
        """Let the inner policy score its view."""
        return self._inner.appraise(self._shown_to_inner(slate))

    def advance(self, slate: Slate, arm: int) -> Note:
        """Let the inner policy count the round as well."""
        self._inner = self._inner.fork()
        inner = self._inner.advance(self._shown_to_inner(slate), arm)
        self._round_slate = None
        return super().advance(slate, arm)._replace(inner=inner)

    def update(self, note: Note, reward: float) -> None:
        """Pass the reward to the inner policy."""
        assert note.inner is not None
        self._inner = self._inner.fork()
        self._inner.update(note.inner, reward)

    def check_note(self, note: Note) -> None:
        """Raise an error if this policy cannot have made the decision of a note."""
        super().check_note(note)
        if note.inner is None:
            raise UnknownDecisionError(f"no inner policy made the decision of round {note.round}")
        self._inner.check_note(note.inner)


IMPUTERS = ("zero", "mean", "gaussian", "iterative")

# Errors that overflow inside an imputer can raise.
_FAILURES = (ValueError, ArithmeticError, np.linalg.LinAlgError)

_LEAST_NOISE = 1e-9  # of correlations


def _iterative_imputer(seed: int) -> Any:
    """Return an imputer of scikit-learn, not fitted, that keeps the shape of a slate."""
    with from_extra("paper"):
        from sklearn import impute
        from sklearn.experimental import enable_iterative_imputer

    assert enable_iterative_imputer  # importing it adds IterativeImputer to sklearn.impute
    # Each iteration goes through all features: about 15 ms per choice with 30 features (measured).
    # In the main study at p = .3 the regrets of seeds 0 and 1 were 24.9 and 18.1 with one
    # iteration, 17.9 and 15.4 with two, and the same with three.
    state = int(stream(seed, "imputer").integers(2**31))
    return impute.IterativeImputer(max_iter=2, random_state=state, keep_empty_features=True)


class GaussianImputer:
    """Fills in E[x | seen entries] under the Gaussian that has the moments of rows.

    Means, deviations and correlations are those of the entries, and pairs of entries, that are
    seen. The most negative eigenvalue of such correlations tells how noisy they are: as much is
    added to their diagonal, so that the matrix is one of correlations and its inverse is tame.

    >>> rows = np.array([[1.0, 1.0], [-1.0, -1.0], [np.nan, 5.0], [5.0, np.nan]])
    >>> GaussianImputer(rows).transform(np.array([[2.0, np.nan]])).shape
    (1, 2)
    """

    def __init__(self, rows: FloatArray) -> None:
        seen = (~np.isnan(rows)).astype(np.float64)
        counts = np.maximum(seen.sum(axis=0), 1.0)
        self._means = np.where(seen, rows, 0.0).sum(axis=0) / counts
        centred = np.where(seen, rows - self._means, 0.0)
        sizes = np.abs(centred).max(axis=0, initial=0.0)
        sizes[sizes == 0.0] = 1.0  # squares of sizes might overflow
        self._scales = sizes * np.sqrt(((centred / sizes) ** 2).sum(axis=0) / counts)
        self._scales[self._scales == 0.0] = 1.0
        scaled = centred / self._scales
        self._correlations = scaled.T @ scaled / np.maximum(seen.T @ seen, 1.0)
        noise = max(0.0, -float(np.linalg.eigvalsh(self._correlations)[0]))
        self._correlations += (noise + _LEAST_NOISE) * np.eye(rows.shape[1])

    def transform(self, table: FloatArray) -> FloatArray:
        """Return a table (n, dim) with nothing hidden."""
        scaled = (table - self._means) / self._scales
        for row in scaled:  # one by one: rounding must not depend on an arm's position
            hidden = np.isnan(row)
            seen = ~hidden
            among = self._correlations[np.ix_(seen, seen)]
            row[hidden] = self._correlations[np.ix_(hidden, seen)] @ np.linalg.solve(
                among, row[seen]
            )
        filled: FloatArray = self._means + self._scales * scaled
        return filled


class Filler:
    """Fills in tables as rows suggest; deterministic, and seen entries stay.

    A hidden entry becomes 0 if no row shows its feature, or if the imputer fails: the iterative one
    fails on very large numbers or on numbers of very different size.

    Parameters
    ----------
    imputer : str
        One of `IMPUTERS`.
    rows : ndarray, shape (n, dim)
        NaN where hidden. Without rows every hidden entry becomes 0.
    seed : int
    """

    def __init__(self, imputer: str, rows: FloatArray, seed: int) -> None:
        self.rows = rows
        seen = ~np.isnan(rows)
        self._known = seen.any(axis=0)
        self._constants = np.zeros(rows.shape[1])
        self._imputer: Any = None
        if imputer == "mean":
            sums = np.where(seen, rows, 0.0).sum(axis=0)
            self._constants = _cut_off(sums / np.maximum(seen.sum(axis=0), 1))
        elif imputer == "iterative":
            unfitted = _iterative_imputer(seed)
            if self._known.any():
                with _quiet():
                    self._imputer = unfitted.fit(rows)
        elif imputer == "gaussian" and self._known.any():
            with _quiet():
                self._imputer = GaussianImputer(rows)

    def fill(self, table: FloatArray) -> FloatArray:
        """Return a table (n_arms, dim) with nothing hidden."""
        hidden = np.isnan(table)
        filled = np.where(hidden, self._constants, table)
        rows = np.flatnonzero((hidden & self._known).any(axis=1))
        if self._imputer is None or not len(rows):
            return filled
        # Equal arms are filled in once: rounding may depend on an arm's position in the table.
        places: dict[bytes, int] = {}
        which = [places.setdefault(table[row].tobytes(), len(places)) for row in rows]
        firsts = rows[np.unique(which, return_index=True)[1]]
        guesses = np.zeros((len(firsts), table.shape[1]))
        with _quiet():
            guesses = np.asarray(self._imputer.transform(table[firsts]), dtype=np.float64)
        guesses = _cut_off(guesses)
        guessed = hidden[rows] & self._known
        filled[rows] = np.where(guessed, guesses[which], filled[rows])
        return filled


def _cut_off(guesses: FloatArray) -> FloatArray:
    return np.clip(np.nan_to_num(guesses, nan=0.0), -LARGEST, LARGEST)


@contextmanager
def _quiet() -> Iterator[None]:
    """Log a failure, and silence warnings about convergence and overflows, which are clipped."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", UserWarning)  # ConvergenceWarning is one
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            yield
        except _FAILURES as error:
            logger.warning("the imputer failed, hidden entries become 0: %s", error)


@register_policy
class Imputed(Exploring, ViewedPolicy):
    """Imputation, then a linear policy in all features: the common pipeline.

    The imputer is fitted after `first_fit` rounds, and again each time the rounds have grown by a
    factor. It is fitted to a uniform sample of all arms offered or absorbed before the round. Until
    its first fit, hidden entries count as zero; later, only those of features it never saw do. A
    reward is learned with the arm as it was filled in when it was chosen.

    Notes
    -----
    A saved policy contains the rows of the last fit. Loading fits the imputer to them again:
    nothing is pickled, and with the same version of scikit-learn the policy continues bit for bit.

    Examples
    --------
    >>> policy = Imputed(dim=2, imputer="mean", first_fit=1)
    >>> policy.learn(policy.choose([[1.0, 4.0], [3.0, float("nan")]]), 0.5)
    >>> decision = policy.choose([[float("nan"), 4.0]])
    >>> decision.values.tolist(), policy.shown([[float("nan"), 4.0]]).tolist()
    ([0.0, 4.0], [[2.0, 4.0]])
    """

    STATE: ClassVar = {
        "_reservoir": Part(),
        "_filler": Built(lambda policy, rows: policy._filled_by(rows), rows=ARMS),
        "_next_fit": Whole(1, sys.maxsize),
    }

    needs = ("dim", "noise_scale", "seed")

    imputer: str = choice(
        default="mean",
        words=IMPUTERS,
        doc="""What fills in: zeros, means, the expectation given the seen entries under a
    Gaussian, or `IterativeImputer` of scikit-learn with 2 iterations.""",
    )
    first_fit: int = integer(
        default=10, low=1, high=checks.LARGEST_HORIZON, doc="Rounds before the first fit."
    )
    growth: float = real(
        default=1.5,
        low=1.0,
        high=LARGEST_GROWTH,
        low_open=True,
        doc="Factor between the rounds of two fits.",
    )
    max_rows: int = integer(default=2000, low=1, doc="Size of the sample that is kept.")

    def setup(self) -> None:
        """Start with an empty sample and an imputer that is not fitted."""
        self._reservoir = Reservoir(self.dim, max_rows=self.max_rows, seed=self.seed)
        self._filler = self._filled_by(self._reservoir.rows.copy())
        self._next_fit = self.first_fit + 1
        self._inner = self.inner_policy(self.dim)

    def _filled_by(self, rows: FloatArray) -> Filler:
        return Filler(self.imputer, rows, self.seed)

    def _view(self, slate: Slate) -> FloatArray:
        return self._filler.fill(slate.table)

    def prepare(self, slate: Slate) -> None:
        """Fit the imputer if it is due, and add the slate to the sample."""
        round = self.round + 1
        if round >= self._next_fit:
            self._fit(self._reservoir.rows.copy())
            self._next_fit = next_start(round, self.growth)
        self.collect(slate)
        super().prepare(slate)

    def _fit(self, rows: FloatArray) -> None:
        """Fit the imputer to rows (n, dim)."""
        self._filler = self._filled_by(rows)

    def collect(self, slate: Slate) -> None:
        """Add the slate to the sample."""
        self._reservoir = self._reservoir.fork()
        self._reservoir.add(slate.table)


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
    """The common pipeline for a table: impute, standardise every column, add an intercept.

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
        self._inner = self.inner_policy(n_columns)

    def _columns(self, table: FloatArray) -> FloatArray:
        scaled = (self._filler.fill(table) - self._scaling.means) / self._scaling.deviations
        parts = [np.clip(scaled, -LARGEST, LARGEST)]
        if self.indicators:
            parts.append(np.isnan(table).astype(np.float64))
        return np.hstack([*parts, np.ones((len(table), 1))])

    def _view(self, slate: Slate) -> FloatArray:
        return self._columns(slate.table)

    def _fit(self, rows: FloatArray) -> None:
        """Fit imputer and scaling, and learn all rewards so far again."""
        super()._fit(rows)
        self._scaling = Scaling.of(self._filler.fill(rows))
        self._fit_round = self.round + 1
        arms, rewards, _ = self._played.samples()
        assert isinstance(self._inner, RidgePolicy)
        self._inner = self._inner.refitted(self._columns(arms), rewards)

    def update(self, note: Note, reward: float) -> None:
        """Keep the reward, and pass it on with its arm as it is standardised now."""
        self._played = self._played.fork()
        self._played.append(note.round, note.arm, reward)
        if note.inner is not None and note.round < self._fit_round:
            note = note._replace(inner=note.inner._replace(arm=self._columns(note.arm[None])[0]))
        super().update(note, reward)

    def after_loading(self) -> None:
        """Fit the scaling to the same rows again."""
        self._scaling = Scaling.of(self._filler.fill(self._filler.rows))
