"""Warnings of Algorithm 1 where the premises of its regret theorem do not hold."""

import math
import warnings

import numpy as np

from halfseen import checks, theory
from halfseen.errors import InvalidSettingError
from halfseen.tofu.parameters import TofuParams
from halfseen.tofu.rank import FixedRank
from halfseen.values import FloatArray

_ROUNDING = 1e-9


class PremiseWarning(UserWarning):
    """A premise of the regret theorem does not hold, so that its bound is not proved.

    Examples
    --------
    >>> import warnings
    >>> from halfseen import TofuPov
    >>> small = {"dim": 30, "rank": 3, "observe_prob": 0.5, "n_arms": 8, "last_eigenvalue": 0.1}
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     policy = TofuPov.algorithm_1(arm_bound=1.0, **small)
    >>> print(caught[0].message)
    the regret theorem does not apply: the theorem needs p of at least 24.1, and p is 0.5
    """


def warn_of_settings(settings: TofuParams, *, incoherence: float, stacklevel: int) -> None:
    """Warn once of all premises that the settings do not meet, for μ = `incoherence`."""
    unmet = [premise.text for premise in _premises(settings, incoherence) if not premise.holds]
    if unmet:
        message = f"the regret theorem does not apply: {'; '.join(unmet)}"
        warnings.warn(message, PremiseWarning, stacklevel=stacklevel)


def warn_of_long_arms(arm_bound: float, arms: FloatArray) -> bool:
    """Warn if the seen entries alone make an arm longer than B_X, and return whether they do."""
    longest = math.sqrt(float(np.nansum(arms * arms, axis=1).max(initial=0.0)))
    if longest <= arm_bound * (1 + _ROUNDING):
        return False
    message = (
        f"the regret theorem does not apply: an arm has a length of at least {longest:.3g}, and "
        f"arm_bound is {arm_bound:.3g}"
    )
    warnings.warn(message, PremiseWarning, stacklevel=2)
    return True


def _premises(settings: TofuParams, incoherence: float) -> list[theory.Premise]:
    """Return the premises that can be judged; what is unknown is taken as favourable as can be."""
    rank = settings.rank.rank if isinstance(settings.rank, FixedRank) else 1
    widest = math.sqrt(settings.dim / rank)
    checks.real("incoherence", incoherence, 1.0, widest * (1 + _ROUNDING))
    least_prob = theory.observe_prob_condition(
        dim=settings.dim,
        rank=rank,
        n_arms=settings.n_arms or 1,
        horizon=settings.horizon or 1,
        incoherence=incoherence,
        failure_prob=settings.lemma_failure_prob,
    )
    prob = settings.observe_prob
    if isinstance(prob, str):
        text = f"the theorem needs p of at least {least_prob:.3g}, and no p is above 1"
        return [theory.Premise("condition on p", least_prob, 1.0, text)]
    masks = theory.mask_premise(needed=least_prob, observe_prob=float(np.min(prob)))
    if settings.n_arms is None or settings.last_eigenvalue is None:
        return [masks]
    try:
        needed: float = settings.theory_burn_in()
    except InvalidSettingError:  # more rounds than there can be
        needed = math.inf
    return [masks, theory.burn_in_premise(needed=needed, burn_in=settings.schedule.burn_in)]
