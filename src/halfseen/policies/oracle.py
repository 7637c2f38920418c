"""OFUL in the true subspace: the level to reach."""

from bisect import bisect_right
from typing import Any

import numpy as np

from halfseen import checks
from halfseen.errors import InvalidSettingError
from halfseen.linear.eigen import checked_basis
from halfseen.linear.lift import Lift, checked_impute_ridge
from halfseen.params import custom, real
from halfseen.policies.imputed import Exploring, ViewedPolicy
from halfseen.policies.registry import register_policy
from halfseen.values import LARGEST, FloatArray, Slate


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

    needs = ("basis", "basis_changes", "latent_variances", "noise_scale", "seed")

    basis: Any = custom(
        check=checked_basis,
        plain=lambda basis: basis.tolist(),
        kind="array_like, shape (dim, rank)",
        doc="Orthonormal columns.",
    )
    basis_changes: Any = custom(
        default=(),
        check=lambda name, value: _checked_changes(value),
        plain=lambda changes: [[round, basis.tolist()] for round, basis in changes],
        kind="sequence of (round, array_like)",
        doc="""From that round on (counted from 1) the policy uses this basis, of any rank, with a
    fresh regression in its coordinates. A late reward goes to the regression of the round in which
    it was earned.""",
    )
    latent_variances: Any = custom(
        default=1.0,
        check=lambda name, value: _checked_variances(value),
        plain=lambda variances: variances.tolist(),
        kind="float or array_like, shape (rank,)",
        doc="D's diagonal: one for all columns of every basis, or one per column.",
    )
    entry_noise: float = real(
        default=1e-8,
        low=0.0,
        high=LARGEST,
        low_open=True,
        doc="σ², at least 1e-10 of the mean of D.",
    )

    def setup(self) -> None:
        """Start with an empty regression for each basis."""
        super().setup()
        bases = [self.basis, *(basis for _, basis in self.basis_changes)]
        self._starts = [1, *(round for round, _ in self.basis_changes)]
        for index, basis in enumerate(bases[1:]):
            if len(basis) != self.dim:
                raise InvalidSettingError(
                    f"basis_changes[{index}][1] must have {self.dim} rows, got {len(basis)}"
                )
        _check_one_per_column(self.latent_variances, bases)
        self._lifts = [self._lift(basis) for basis in bases]
        self._inners = tuple(self.inner_policy(basis.shape[1]) for basis in bases)

    @property  # type: ignore[misc]
    def dim(self) -> int:  # type: ignore[override]
        """Number of features: rows of the basis."""
        return len(self.basis)

    def _turn(self, round: int) -> int:
        return bisect_right(self._starts, round) - 1

    def _lift(self, basis: FloatArray) -> Lift:
        mean = float(self.latent_variances.mean())
        try:
            checked_impute_ridge(self.entry_noise / mean)
        except InvalidSettingError:
            raise InvalidSettingError(
                f"entry_noise must be at least 1e-10 of the latent variances' mean {mean:g}, got "
                f"{self.entry_noise}"
            ) from None
        variances = np.broadcast_to(self.latent_variances, basis.shape[1])
        return Lift.posterior_mean(basis, variances, self.entry_noise)

    def _view(self, slate: Slate) -> FloatArray:
        lift = self._lifts[self._turn(self._round + 1)]
        return lift.coordinates(slate._table)


def _checked_changes(changes: Any) -> tuple[tuple[int, FloatArray], ...]:
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
        checked.append((round, checked_basis(f"basis_changes[{index}][1]", value)))
    return tuple(checked)


def _checked_variances(value: Any) -> FloatArray:
    try:
        variances = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        variances = np.empty((0, 0))
    if variances.ndim > 1:
        raise InvalidSettingError(
            f"latent_variances must be one number or one per column, got {value!r}"
        )
    for variance in variances.ravel().tolist():
        checks.real("latent_variances", variance, 1 / LARGEST, LARGEST)
    return variances


def _check_one_per_column(variances: FloatArray, bases: list[FloatArray]) -> None:
    ranks = {basis.shape[1] for basis in bases}
    if variances.ndim and {len(variances)} != ranks:
        raise InvalidSettingError(
            "latent_variances must be one number, or one per column of every basis (ranks "
            f"{sorted(ranks)}), got {variances.tolist()}"
        )
