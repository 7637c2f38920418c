"""The start of an epoch: earlier rewards in its coordinates, their scales, and the fallback."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from halfseen.core.latent import Lift
from halfseen.core.replay import Played
from halfseen.core.ridge import Ridge
from halfseen.core.scales import UNKNOWN, Scales, estimate_scales, without_hidden
from halfseen.policies.contest import Contest
from halfseen.policies.tofu_params import TofuParams
from halfseen.policies.tofu_subspace import Subspace
from halfseen.values import FloatArray

if TYPE_CHECKING:
    from halfseen.policies.tofu_epoch import Epoch


class Rewards(NamedTuple):
    """A regression on replayed rewards.

    Attributes
    ----------
    model : Ridge
    ridge, theta_bound, noise_scale : float
        λ, S, R, as set or as estimated.
    fallback : bool
        Whether the regression is on zero-filled arms, because low rank does not help.
    contest : Contest
    lift : Lift or None
        From arms to the regression's coordinates; None if it is on zero-filled arms or does not
        exist.
    unit : float
        Zero-filled arms are divided by it.
    n_skipped : int
        Rewards whose arms are not identified.
    """

    model: Ridge
    ridge: float
    theta_bound: float
    noise_scale: float
    fallback: bool
    contest: Contest
    lift: Lift | None = None
    unit: float = 1.0
    n_skipped: int = 0

    @classmethod
    def replayed(
        cls,
        settings: TofuParams,
        subspace: Subspace,
        played: Played | None,
        last: "Epoch | None",
    ) -> "Rewards":
        """Return the regression that an epoch starts from."""
        contest = Contest() if last is None else last.contest
        arms, rewards = played.samples()[:2] if played else _no_samples(settings.dim)
        if subspace.rank == 0:
            if settings.may_fall_back:
                return _zero_filled(settings, arms, rewards, contest)
            return cls(
                Ridge(1, ridge=_given(settings.ridge, 1.0)), *_numbers(settings, UNKNOWN),
                False, contest,
            )  # fmt: skip
        lift = subspace.lift(settings)
        latent = lift.coordinates(arms)
        identified = ~np.isnan(latent[:, 0])
        if settings.may_fall_back and contest.is_due(len(rewards)):
            contest = contest.after(np.nan_to_num(latent), _filled(arms)[0], rewards)
        if settings.may_fall_back and contest.zero_filled_wins:
            return _zero_filled(settings, arms, rewards, contest)
        n_skipped = int(np.count_nonzero(~identified))
        if n_skipped:
            arms, latent, rewards = arms[identified], latent[identified], rewards[identified]
        scales = _scales(settings, lift, arms, latent, rewards)
        numbers = _numbers(settings, scales)
        model = Ridge(lift.rank, ridge=numbers[0])
        if len(rewards):
            model.insert(latent, rewards)
        return cls(model, *numbers, False, contest, lift, n_skipped=n_skipped)


def _no_samples(dim: int) -> tuple[FloatArray, FloatArray]:
    return np.empty((0, dim)), np.empty(0)


def _given(value: float | str, estimated: float) -> float:
    return estimated if isinstance(value, str) else value


def _numbers(settings: TofuParams, scales: Scales) -> tuple[float, float, float]:
    """Return λ, S and R, as set or else as estimated."""
    return (
        _given(settings.ridge, scales.ridge),
        _given(settings.theta_bound, scales.theta_bound),
        _given(settings.noise_scale, scales.noise_scale),
    )


def _scales(
    settings: TofuParams, lift: Lift, arms: FloatArray, latent: FloatArray, rewards: FloatArray
) -> Scales:
    if not settings.estimates_scales:
        return UNKNOWN
    scales, theta = estimate_scales(latent, rewards)
    return without_hidden(scales, lift.hidden_variances(arms, theta)) if rewards.any() else scales


def _filled(arms: FloatArray, *, in_own_units: bool = False) -> tuple[FloatArray, float]:
    """Return zero-filled arms in units of the root of their mean square, and that unit."""
    filled = np.where(arms == arms, arms, 0.0)
    largest = float(np.abs(filled).max(initial=0.0))
    if largest == 0.0 or in_own_units:
        return filled, 1.0
    share = filled / largest
    unit = largest * float(np.sqrt((share * share).mean()))
    return filled / unit, unit


def _zero_filled(
    settings: TofuParams, arms: FloatArray, rewards: FloatArray, contest: Contest
) -> Rewards:
    """Return the regression on zero-filled arms."""
    # A λ set by the user applies to arms in their own units.
    points, unit = _filled(arms, in_own_units=not isinstance(settings.ridge, str))
    scales = UNKNOWN
    if settings.estimates_scales and len(rewards):
        scales = estimate_scales(points, rewards)[0]
    numbers = _numbers(settings, scales)
    model = Ridge.fitted(points, rewards, ridge=numbers[0])
    return Rewards(model, *numbers, True, contest, unit=unit)
