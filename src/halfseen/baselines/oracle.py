"""OFUL in the true subspace: the level to reach."""

from typing import Any

import numpy as np

from halfseen import checks
from halfseen.baselines.imputed import Exploring, ViewedPolicy
from halfseen.errors import InvalidSettingError
from halfseen.linear.eigen import checked_basis
from halfseen.linear.lift import Lift
from halfseen.params import custom, real
from halfseen.policies.registry import register_policy
from halfseen.values import LARGEST, FloatArray, Slate


def _variances(name: str, value: Any) -> FloatArray:
    try:
        variances = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidSettingError(f"must be numbers, got {value!r}", name=name) from None
    for variance in variances.ravel().tolist():
        checks.real(name, variance, 1 / LARGEST, LARGEST)
    return variances


@register_policy
class Oracle(Exploring, ViewedPolicy):
    """Explores in the coordinates of the true subspace, from the seen entries of the arms.

    With arms x = Ua, prior a ~ N(0, D) and noise of variance σ² on every entry, the posterior mean
    of a given the seen entries is (G + σ²D⁻¹)⁻¹b with G = U_Ω'U_Ω and b = U_Ω'x_Ω. For tiny σ² it
    is the least-squares solution if the seen entries determine one, and the likeliest solution
    otherwise. If nothing is hidden, the coordinates are U'x.

    Examples
    --------
    >>> policy = Oracle(basis=[[0.6], [0.8]])
    >>> decision = policy.choose([[0.6, float("nan")], [float("nan"), 1.6]])
    >>> decision.arm, policy.dim, policy.current_rank
    (1, 2, 1)
    """

    needs = ("basis", "latent_variances", "noise_scale", "seed")

    basis: Any = custom(
        check=checked_basis,
        plain=lambda basis: basis.tolist(),
        kind="array_like, shape (dim, rank)",
        doc="Orthonormal columns.",
    )
    latent_variances: Any = custom(
        default=1.0,
        check=_variances,
        plain=lambda variances: variances.tolist(),
        kind="float or array_like, shape (rank,)",
        doc="D's diagonal: one for all columns of the basis, or one per column.",
    )
    entry_noise: float = real(
        default=1e-8,
        low=0.0,
        high=LARGEST,
        low_open=True,
        doc="σ²; raised to 1e-10 of the mean of D if smaller.",
    )

    def setup(self) -> None:
        """Start with an empty regression in the coordinates of the basis."""
        rank, variances = self.basis.shape[1], self.latent_variances
        if variances.shape not in ((), (rank,)):
            raise InvalidSettingError(
                f"latent_variances must be one number, or one for each of {rank} columns, got "
                f"{variances.tolist()}"
            )
        each = np.broadcast_to(variances, rank)
        self._lift = Lift.posterior_mean(self.basis, each, self.entry_noise)
        self._inner = self.inner_policy(rank)

    @property  # type: ignore[misc]
    def dim(self) -> int:  # type: ignore[override]
        """Number of features: rows of the basis."""
        return len(self.basis)

    def _view(self, slate: Slate) -> FloatArray:
        return self._lift.coordinates(slate.table)
