"""Chooses the rank of the latent model by evidence, and fits it from the best starts."""

from halfseen.core.factors import (
    TOLERANCE,
    Arms,
    Factors,
    Fit,
    Spectrum,
    fit_factors,
    step_work,
)

# With fewer arms the search begins at rank 0, and every fit is compared with one from a fresh
# start: a fit to few arms may be wrong.
FEW_ARMS = 400
_FRESH_START_ARMS = 1000
# With a mean noise below this share of the variance, a fresh start cannot do better.
_NEGLIGIBLE = 1e-4
# The search ends after this many ranks in a row without improvement, at its beginning and later:
# two directions of equal variance may help only together.
_FIRST_PATIENCE = 3
_PATIENCE = 2
# Large ranks are tried in steps of this share: evidence hardly changes between neighbours.
_STEP_SHARE = 1 / 8
# After this much work, as counted by `step_work`, a search returns the best rank so far, from which
# the next one goes on: about .4 seconds on one core.
_MOST_WORK = 4e9


class Search:
    """Fits of growing rank to the same arms.

    The evidence averages the likelihood over all loadings, which a larger rank has more of. So it
    falls when another direction explains less than it costs, and there is no need to hold out
    entries: every entry is used for the fit, and no order of features or arms matters.

    Parameters
    ----------
    arms : Arms
    last : Factors, optional
        The previous model, from which the fit of its rank starts, too.
    """

    def __init__(self, arms: Arms, last: Factors | None = None) -> None:
        self._arms, self._last = arms, last
        self._spectrum = Spectrum(arms)
        self._fits: dict[int, Fit] = {}
        self._work = 0.0

    def fit(self, rank: int) -> Fit:
        """Return the fit of a rank: from a fresh start, from the last model, or the likelier."""
        if rank not in self._fits:
            self._fits[rank] = self._likelier(rank)
        return self._fits[rank]

    def _likelier(self, rank: int) -> Fit:
        known = None
        if self._last is not None and self._last.rank == rank:
            known = self._counted(fit_factors(self._arms, self._last))
            if not self._may_gain(known):
                return known
        start = self._spectrum.start(rank)
        common = self._counted(fit_factors(self._arms, start, common_noise=True))
        fresh = self._counted(fit_factors(self._arms, common.model))
        # Below the tolerance of EM the two are equally likely. The known one is taken then, so that
        # rounding does not decide.
        least = TOLERANCE * self._arms.n_entries
        return fresh if known is None or fresh.objective > known.objective + least else known

    def run(self) -> Fit:
        """Return the fit with the largest evidence."""
        highest = self.affordable(None)
        last_rank = 0 if self._last is None else self._last.rank
        first = 0 if len(self._arms) < FEW_ARMS else min(max(0, last_rank - 1), highest)
        best = self.fit(first)
        misses = 0
        rank = first
        while rank < highest:
            rank = min(highest, rank + max(1, int(_STEP_SHARE * rank)))
            fit = self.fit(rank)
            misses = 0 if fit.evidence > best.evidence else misses + 1
            best = fit if misses == 0 else best
            patience = _FIRST_PATIENCE if best.model.rank == 0 else _PATIENCE
            if misses == patience or fit.model.explains_all or self._work > _MOST_WORK:
                break
        while best.model.rank == first > 0 and self._work <= _MOST_WORK:
            first -= max(1, int(_STEP_SHARE * first))
            fit = self.fit(first)
            best = fit if fit.evidence >= best.evidence else best
        return best

    def affordable(self, rank: int | None) -> int:
        """Return a rank, or less if its model would have more loadings than there are entries."""
        arms = self._arms
        n = arms.n_features
        most = min(n - 1, len(arms) - 1, arms.n_entries // (n + 1))
        return max(0, most if rank is None else min(most, rank))

    def _may_gain(self, fit: Fit) -> bool:
        noise = fit.model.noise[fit.model.scale > 0.0]
        return len(self._arms) < _FRESH_START_ARMS and bool(noise.mean() > _NEGLIGIBLE)

    def _counted(self, fit: Fit) -> Fit:
        rank = max(1, fit.model.rank)
        self._work += (1 + fit.n_steps) * step_work(len(self._arms), self._arms.dim, rank)
        return fit
