"""What someone would play who was told the true subspace: the level to reach."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np

from halfseen import checks
from halfseen.core.latent import Lift, checked_impute_ridge
from halfseen.errors import InvalidSettingError
from halfseen.policies.registry import register
from halfseen.policies.viewed import Exploration, ViewedPolicy
from halfseen.values import LARGEST, FloatArray, Slate

FEATURES = ("posterior-mean", "least-squares")
# The default of TofuPov: what differs from it is the subspace, and nothing else.
_LEAST_SQUARES_RIDGE = 1e-5
_ORTHONORMAL_TOLERANCE = 1e-8


@register
class Oracle(ViewedPolicy):
    """Explores in the coordinates of the true subspace, on arms as they are seen.

    With arms x = Ua, prior a ~ N(0, D) and entries that carry noise of variance σ², the posterior
    mean of a given the seen entries is (G + σ²D⁻¹)⁻¹b with G = U_Ω'U_Ω and b = U_Ω'x_Ω. For tiny σ²
    it is the solution of least squares where the seen entries determine one, and the likeliest
    solution where they do not. On a slate with nothing hidden the coordinates are U'x.

    Parameters
    ----------
    basis : array_like, shape (dim, rank)
        Orthonormal columns.
    basis_changes : sequence of (round, array_like)
        From that round on (counted from 1) another basis, of any rank, and a fresh regression in
        its coordinates. A late reward goes to the regression in whose basis it was earned.
    features : "posterior-mean" or "least-squares"
        "least-squares" is what TofuPov does in its estimated subspace: D = I, σ² = 1e-5.
    latent_variances : float or array_like, shape (rank,)
        D's diagonal, for "posterior-mean": one for all columns of every basis, or one per column.
    entry_noise : float
        σ², for "posterior-mean"; at least 1e-10 of the mean of D.
    exploration : "ucb", "thompson" or "greedy"
        `AmbientOful`, `LinearThompson` or `Greedy` in the coordinates.
    ridge, failure_prob, theta_bound, noise_scale : float
        λ, δ, S, R. A reward in [0, 1] has R = 0.5.
    radius_scale : float
        Multiplies the radius of "ucb", and the standard deviation R of "thompson".
    seed : int
        Of "thompson"; nothing else is random.
    max_open : int
        How many decisions wait for their reward at most; the oldest is forgotten first.

    Examples
    --------
    >>> policy = Oracle(basis=[[0.6], [0.8]])
    >>> decision = policy.choose([[0.6, float("nan")], [float("nan"), 1.6]])
    >>> decision.arm, policy.dim, policy.current_rank
    (1, 2, 1)
    """

    told = ("basis", "basis_changes", "latent_variances", "noise_scale", "seed")

    def __init__(
        self,
        *,
        basis: Any,
        basis_changes: Sequence[tuple[int, Any]] = (),
        features: str = "posterior-mean",
        latent_variances: Any = 1.0,
        entry_noise: float = 1e-8,
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
        self.features = checks.one_of("features", features, FEATURES)
        first = _checked_basis("basis", basis)
        changes = _checked_changes(basis_changes, len(first))
        self._bases = [first, *(basis for _, basis in changes)]
        self._starts = [1, *(round for round, _ in changes)]
        self.entry_noise = checks.real("entry_noise", entry_noise, 0.0, LARGEST, low_open=True)
        self._variances = _checked_variances(latent_variances, self._bases)
        self._lifts = [self._lift(basis) for basis in self._bases]
        inners = [self._exploration.policy(basis.shape[1]) for basis in self._bases]
        super().__init__(dim=len(first), inners=inners, max_open=max_open)

    def settings(self) -> dict[str, Any]:
        """Return the constructor's arguments as plain JSON types."""
        later = zip(self._starts[1:], self._bases[1:], strict=True)
        return self._exploration.to_dict() | {
            "basis": self._bases[0].tolist(),
            "basis_changes": [[round, basis.tolist()] for round, basis in later],
            "features": self.features,
            "latent_variances": self._variances.tolist(),
            "entry_noise": self.entry_noise,
        }

    def _turn(self, round: int) -> int:
        return bisect_right(self._starts, round) - 1

    def _lift(self, basis: FloatArray) -> Lift:
        if self.features == "least-squares":
            return Lift.least_squares(basis, _LEAST_SQUARES_RIDGE)
        mean = float(self._variances.mean())
        try:
            checked_impute_ridge(self.entry_noise / mean)
        except InvalidSettingError:
            raise InvalidSettingError(
                f"entry_noise must be at least 1e-10 of the latent variances' mean {mean:g}, got "
                f"{self.entry_noise}"
            ) from None
        variances = np.broadcast_to(self._variances, basis.shape[1])
        return Lift.posterior_mean(basis, variances, self.entry_noise)

    def _view(self, slate: Slate) -> FloatArray:
        lift = self._lifts[self._turn(self._round + 1)]
        return lift.coordinates(slate._table)


def _checked_basis(name: str, value: Any) -> FloatArray:
    """Return a copy of orthonormal columns."""
    try:
        basis = np.array(value, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        basis = np.empty(0)
    if basis.ndim != 2 or 0 in basis.shape:
        raise InvalidSettingError(
            f"{name} must be a table of numbers with shape (dim, rank), got {value!r}"
        )
    with np.errstate(all="ignore"):
        error = float(np.abs(basis.T @ basis - np.eye(basis.shape[1])).max())
    if not error <= _ORTHONORMAL_TOLERANCE:
        raise InvalidSettingError(
            f"{name} must have orthonormal columns, got some that miss it by {error:g}: take Q of "
            "its QR factorisation"
        )
    return basis


def _checked_changes(changes: Any, dim: int) -> list[tuple[int, FloatArray]]:
    checked: list[tuple[int, FloatArray]] = []
    try:
        pairs = [(round, basis) for round, basis in changes]
    except (TypeError, ValueError):
        raise InvalidSettingError(
            f"basis_changes must be pairs of a round and a basis, got {changes!r}"
        ) from None
    for index, (round, value) in enumerate(pairs):
        earliest = checked[-1][0] + 1 if checked else 2
        round = checks.integer(f"basis_changes[{index}][0]", round, earliest)
        basis = _checked_basis(f"basis_changes[{index}][1]", value)
        if len(basis) != dim:
            raise InvalidSettingError(
                f"basis_changes[{index}][1] must have {dim} rows, got {len(basis)}"
            )
        checked.append((round, basis))
    return checked


def _checked_variances(value: Any, bases: list[FloatArray]) -> FloatArray:
    """Return one variance for all columns, shape (), or one per column of every basis."""
    try:
        variances = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        variances = np.empty(0)
    ranks = {basis.shape[1] for basis in bases}
    if variances.ndim and {variances.shape} != {(rank,) for rank in ranks}:
        raise InvalidSettingError(
            "latent_variances must be one number, or one per column of every basis (ranks "
            f"{sorted(ranks)}), got {value!r}"
        )
    for variance in variances.ravel().tolist():
        checks.real("latent_variances", variance, 1 / LARGEST, LARGEST)
    return variances
