"""Chooses the rank by held-out entries: hide some seen entries and predict them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen import archive, checks
from halfseen.core.latent import Lift
from halfseen.core.likelihood import MAX_STEPS, Arms, Ppca, Spectrum, fit_arms, step_work
from halfseen.core.rank import RankRule, register_rule, store
from halfseen.lazy import LazyModule
from halfseen.values import LARGEST_VARIANCE, FloatArray

_kernels = LazyModule("halfseen.kernels.likelihood")

# Loadings are square roots of variances.
LARGEST_LOADING = LARGEST_VARIANCE**0.5
# Errors below this share of the squares count as zero, and then no larger rank is tried.
_NEGLIGIBLE = 1e-4
# With fewer arms every decision starts afresh, because a fit to few arms may be wrong.
_SMALL_SAMPLE = 400
# From this many arms on, a subspace that explains new arms completely is not there by chance.
_SETTLED_SAMPLE = 200
# Enough steps to see whether a fit from a good start still holds.
_FEW_STEPS = 5
# Enough steps to see that one direction fewer is not enough.
_FEWER_STEPS = 2
# The search ends after this many ranks in a row without improvement, at its beginning and later:
# two directions of equal variance may help only together.
_FIRST_PATIENCE = 3
_PATIENCE = 2
# After this much work, as counted by `step_work`, a search returns the best rank so far: about 5
# seconds on one core.
_MOST_WORK = 6e10
# Fits kept for the next decision: those of ranks this close to the chosen one.
_NEIGHBOURS = 2


class Ranking(NamedTuple):
    """A chosen rank, and the fits from which the next choice starts.

    Attributes
    ----------
    rank : int
        0 if no rank predicts better than zeros.
    n_arms : int
        Arms offered before the decision.
    fits : mapping
        Models by rank, fitted to entries that were not held out.
    is_settled : bool
        Whether the previous decision's fit, almost unchanged, explains enough arms completely.
    """

    rank: int
    n_arms: int
    fits: Mapping[int, Ppca]
    is_settled: bool = False

    def state(self) -> dict[str, Any]:
        """Return the ranking as numbers and arrays."""
        fits = [[rank, model.loadings, model.noise] for rank, model in self.fits.items()]
        return {
            "rank": self.rank,
            "n_arms": self.n_arms,
            "fits": fits,
            "is_settled": self.is_settled,
        }

    @classmethod
    def restored(cls, state: dict[str, Any], dim: int) -> "Ranking":
        """Return the ranking that `state` described."""
        fits = {}
        for rank, loadings, noise in state["fits"]:
            rank = checks.integer("rank", rank, 1, dim)
            loadings = archive.array(
                {"loadings": loadings},
                "loadings",
                (dim, rank),
                low=-LARGEST_LOADING,
                high=LARGEST_LOADING,
            )
            fits[rank] = Ppca(loadings, checks.real("noise", noise, 0.0, LARGEST_VARIANCE))
        rank = checks.integer("rank", state["rank"], 0, dim)
        n_arms = checks.integer("n_arms", state["n_arms"], 0, checks.LARGEST_HORIZON)
        return cls(rank, n_arms, fits, checks.boolean("is_settled", state["is_settled"]))


@register_rule
@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOutRank(RankRule):
    """Keep the smallest rank that predicts hidden entries within one standard error of the best.

    A share of the seen entries is held out, models of growing rank are fitted to the rest by
    maximum likelihood, and the squared errors on the held-out entries are compared arm by arm. The
    search starts at the last chosen rank, so that it follows a growing subspace, and ends when
    several ranks in a row bring no improvement. The same entries of an arm are always held out, so
    that fits of earlier decisions, from which later ones start, have never used them.

    Parameters
    ----------
    share : float
        Share of the seen entries that is held out.
    growth : float
        Up to 400 arms every epoch decides again; beyond that, an epoch decides again once the
        number of arms has grown by this factor.
    max_rank : int, optional
        By default dim − 1.
    max_arms : int
        Arms used for a decision.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> table = random.normal(size=(80, 2)) @ random.normal(size=(2, 9))
    >>> table[random.random(table.shape) < 0.4] = np.nan
    >>> HeldOutRank().decide(table, n_arms=80).rank
    2
    """

    share: float = 0.2
    growth: float = 2.0
    max_rank: int | None = None
    max_arms: int = 1000

    def __post_init__(self) -> None:
        share = checks.real("share", self.share, 0.0, 0.9, low_open=True)
        store(self, share=share, growth=checks.real("growth", self.growth, 1.0))
        if self.max_rank is not None:
            store(self, max_rank=checks.integer("max_rank", self.max_rank, 1))
        store(self, max_arms=checks.integer("max_arms", self.max_arms, 1))

    def check(self, dim: int) -> None:
        """Do nothing: the search never reaches a rank that is too large."""

    def is_due(self, n_arms: int, last: Ranking | None) -> bool:
        """Return whether there are enough new arms for another decision."""
        if last is None or n_arms <= _SMALL_SAMPLE:
            return True
        return n_arms >= self.growth * last.n_arms

    def decide(
        self,
        table: FloatArray,
        *,
        n_arms: int,
        numbers: NDArray[np.int64] | None = None,
        last: Ranking | None = None,
    ) -> Ranking:
        """Return the rank for a sample of arms.

        Parameters
        ----------
        table : ndarray, shape (n, dim)
            A sample of the arms, NaN where hidden; the first `max_arms` are used.
        n_arms : int
            Arms offered so far.
        numbers : ndarray of int, shape (n,), optional
            Positions of the sample among all arms, counted from 0; by default the first n.
        last : Ranking, optional
            The previous decision.
        """
        if numbers is None:
            numbers = np.arange(len(table))
        used = slice(self.max_arms)
        search = _Search(table[used], numbers[used], self.share, last)
        rank = search.run(self._highest(search))
        fits = {
            each: model
            for each, model in search.fits.items()
            if abs(each - max(1, rank)) <= _NEIGHBOURS
        }
        return Ranking(rank, n_arms, fits, search.is_settled and rank == search.last.rank)

    def _highest(self, search: "_Search") -> int:
        """Return the largest rank whose model has fewer loadings than there are entries."""
        arms = search.arms
        most: int = min(arms.dim - 1, len(arms) - 1, arms.n_entries // (arms.dim + 1))
        return most if self.max_rank is None else min(most, self.max_rank)


class _Search:
    """Errors on held-out entries by rank; models are fitted when needed."""

    def __init__(
        self,
        table: FloatArray,
        numbers: NDArray[np.int64],
        share: float,
        last: Ranking | None,
    ) -> None:
        self._table = np.ascontiguousarray(table)
        self._held = np.empty(table.shape, dtype=np.bool_)
        self._rest = np.empty(table.shape)
        self._n_marked: int = _kernels.hold_out(
            np.ascontiguousarray(numbers), self._table, share, self._held, self._rest
        )
        self.arms = Arms(self._rest)
        self.last = Ranking(0, 0, {}) if last is None else last
        self._spectrum = Spectrum(self.arms)
        self.is_settled = False
        self.fits: dict[int, Ppca] = {}
        self._is_rough: set[int] = set()
        self._errors: dict[int, FloatArray] = {}
        self._work = 0.0

    def errors(self, rank: int) -> FloatArray:
        """Return the squared error on held-out entries of every arm that has any."""
        if rank not in self._errors:
            if rank > 0 and rank not in self.fits:
                self._fit(rank)
            model = self.fits[rank] if rank > 0 else Ppca(np.empty((self.arms.dim, 0)), 1.0)
            loadings = np.ascontiguousarray(model.loadings)
            points = Lift(loadings, model.noise, np.ones(rank)).coordinates(self._rest)
            errors = np.empty(self._n_marked)
            _kernels.held_out_errors(
                self._table, self._held, points, loadings, self.arms.unit, errors
            )
            self._errors[rank] = errors
        return self._errors[rank]

    def run(self, highest: int) -> int:
        """Return the smallest rank whose errors are within a standard error of the best."""
        if self._n_marked < 2 or highest < 1 or not self.errors(0).any():
            return 0
        rank = min(self.last.rank, highest)
        if rank in self.last.fits and self._still_explains_all(rank):
            best = rank
            self.is_settled = len(self.arms) >= _SETTLED_SAMPLE
        else:
            known = len(self.arms) >= _SMALL_SAMPLE
            best = self._best_upwards(max(1, rank) if known else 1, highest)
        return self._smallest_as_good(best)

    def _fit(self, rank: int) -> None:
        """Fit from a fresh start and, if there is one, from the last decision's fit."""
        starts = [self._spectrum.start(rank)]
        if rank in self.last.fits:
            starts.append(self.last.fits[rank])
        self.fits[rank] = self._fitted(starts)

    def _fitted(self, starts: list[Ppca], max_steps: int = MAX_STEPS) -> Ppca:
        fit = fit_arms(self.arms, starts, max_steps=max_steps)
        work = step_work(len(self.arms), self.arms.dim, fit.model.rank)
        self._work += (fit.n_steps + len(starts)) * work
        return fit.model

    @property
    def _is_over(self) -> bool:
        return self._work > _MOST_WORK

    def _still_explains_all(self, rank: int) -> bool:
        """Return whether the last fit, almost unchanged, explains the new arms completely, too."""
        model = self._fitted([self.last.fits[rank]], _FEW_STEPS)
        if self._leaves_nothing(model):
            self.fits[rank] = model
            return True
        return False

    def _leaves_nothing(self, model: Ppca) -> bool:
        return model.noise <= _NEGLIGIBLE * self.arms.unit**2

    def _best_upwards(self, first: int, highest: int) -> int:
        best, misses = 0, 0
        for rank in range(first, highest + 1):
            if not self._within_error(best, rank):
                best, misses = rank, 0
            else:
                misses += 1
            patience = _FIRST_PATIENCE if best == 0 else _PATIENCE
            if misses == patience or self._leaves_nothing(self.fits[rank]) or self._is_over:
                break
        return best

    def _smallest_as_good(self, best: int) -> int:
        """Go down from the best rank while errors stay within a standard error of the best."""
        rank = best
        while rank > 0 and (self._is_as_good(rank - 1, best) or self._refit_is(rank - 1, best)):
            rank -= 1
            if self._is_over:
                break
        return rank

    def _is_as_good(self, rank: int, best: int) -> bool:
        if rank > 0 and rank not in self.fits:
            start = self.fits[rank + 1].truncated(rank)
            self.fits[rank] = self._fitted([start], _FEWER_STEPS)
            self._is_rough.add(rank)
        return self._within_error(rank, best)

    def _within_error(self, rank: int, other: int) -> bool:
        """Return whether a rank is at most a standard error worse than another."""
        excess = self.errors(rank) - self.errors(other)
        error = float(excess.std()) / np.sqrt(len(excess))
        return bool(excess.mean() <= error + _NEGLIGIBLE * self.errors(0).mean())

    def _refit_is(self, rank: int, best: int) -> bool:
        """Return whether a rank is as good after a full fit, if a short fit was not enough."""
        if rank not in self._is_rough or self._leaves_nothing(self.fits[best]):
            return False
        self.fits[rank] = self._fitted([self.fits[rank]])
        del self._errors[rank]
        return self._is_as_good(rank, best)
