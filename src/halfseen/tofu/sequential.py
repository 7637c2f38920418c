"""Estimators that follow a subspace from arm to arm: GROUSE, Oja's rule and PETRELS.

They keep a basis and no matrix of all pairs of features, so there may be many features.
"""

from abc import abstractmethod
from collections.abc import Mapping
from copy import copy
from typing import Any, ClassVar

import numpy as np

from halfseen import params
from halfseen.errors import HalfseenError
from halfseen.linear.eigen import Directions
from halfseen.seeding import stream
from halfseen.state import Array, Arrays, Maybe, Whole
from halfseen.tofu.subspace import Prob, SubspaceEstimator
from halfseen.values import LARGEST, LARGEST_POINT, BoolArray, FloatArray
from halfseen.values.slate import read_only

State = Mapping[str, FloatArray]
"""Arrays by name, whose names and shapes stay the same."""


class SequentialEstimator(SubspaceEstimator):
    """Follows the subspace of the arms: a state, changed by each round's arms in their order.

    An estimator of your own writes `start`, `update` and `directions`. The state is saved with the
    policy. Arrays in it are read-only: return new ones.

    Examples
    --------
    >>> from halfseen import TofuPov
    >>> class Power(SequentialEstimator):
    ...     '''One step of the power method per round, on zero-filled arms.'''
    ...     def start(self, dim, rank, random):
    ...         return {"basis": np.linalg.qr(random.normal(size=(dim, rank)))[0]}
    ...     def update(self, state, rows, observe_prob):
    ...         filled, basis = np.nan_to_num(rows), state["basis"]
    ...         return {"basis": np.linalg.qr(basis + filled.T @ (filled @ basis))[0]}
    ...     def directions(self, state):
    ...         return Directions(state["basis"])
    >>> TofuPov(dim=4, rank=1, observe_prob=0.5, subspace=Power()).subspace
    Power()
    """

    max_arms: ClassVar[int] = 0  # type: ignore[misc]
    has_eigenvalues = False

    @abstractmethod
    def start(self, dim: int, rank: int | None, random: np.random.Generator) -> State:
        """Return the state before any arm.

        `rank` is that of the policy. It is None if a rank rule chooses it, which takes an estimator
        that `has_eigenvalues`.
        """

    @abstractmethod
    def update(self, state: State, rows: FloatArray, observe_prob: float | FloatArray) -> State:
        """Return the state after the arms of a round, shape (n, dim), NaN where hidden.

        `observe_prob` is the probability that an entry is seen: one number or one per feature. If
        the policy does not know it, it is the share of arms so far that showed the feature.
        """

    @abstractmethod
    def directions(self, state: State) -> Directions:
        """Return orthonormal directions, with or without the variances along them."""

    def check(self, dim: int) -> None:
        """Any number of features will do."""

    def no_arms(
        self, dim: int, *, seed: int, observe_prob: Prob, rank: int | None = None
    ) -> "Followed":
        """Return a state before any arm."""
        return Followed(self, dim, seed=seed, observe_prob=observe_prob, rank=rank)

    def estimate(self, offered: "Followed", observe_prob: Any) -> tuple[Directions, float]:
        """Return the directions, and the smallest probability that an entry is seen."""
        return self.directions(offered.state), offered.smallest_prob

    def covariance(self, rows: FloatArray) -> FloatArray:
        """Return the directions after some arms as a matrix (see `Directions`)."""
        followed = self.no_arms(rows.shape[1], seed=0, observe_prob="counted", rank=None)
        followed.add(rows)
        return np.asarray(self.directions(followed.state))


class Followed:
    """The state of a sequential estimator, and how often each feature was seen."""

    STATE: ClassVar = {
        "n_arms": Whole(),
        "state": Arrays(low=-LARGEST_POINT, high=LARGEST_POINT),
        "_counts": Maybe(Array(("dim",), low=0.0)),
    }

    __slots__ = ("_counts", "_estimator", "_observe_prob", "_state", "dim", "n_arms")

    def __init__(
        self,
        estimator: SequentialEstimator,
        dim: int,
        *,
        seed: int,
        observe_prob: Prob,
        rank: int | None,
    ) -> None:
        self._estimator, self._observe_prob = estimator, observe_prob
        self.dim, self.n_arms = dim, 0
        self.state = estimator.start(dim, rank, stream(seed, "subspace"))
        self._counts = np.zeros(dim) if isinstance(observe_prob, str) else None

    @property
    def state(self) -> State:
        """What the estimator keeps: read-only arrays by name."""
        return self._state

    @state.setter
    def state(self, state: State) -> None:
        # One memory order, so that a loaded copy has the same bits.
        arrays = {name: np.asarray(each, np.float64, order="C") for name, each in state.items()}
        self._state = {name: read_only(array) for name, array in arrays.items()}

    def fork(self) -> "Followed":
        """Return a copy to which arms can be added; this one can still be read."""
        return copy(self)

    def add(self, table: FloatArray) -> None:
        """Add the arms of a round, NaN where hidden, shape (n, dim)."""
        n_arms, counts = self.n_arms + len(table), self._counts
        prob: Any = self._observe_prob
        if counts is not None:
            counts = counts + np.count_nonzero(table == table, axis=0)
            prob = np.maximum(counts, 1.0) / n_arms
        self.state = self._checked(self._estimator.update(self._state, table, prob))
        self.n_arms, self._counts = n_arms, counts

    def _checked(self, state: State) -> State:
        """Return a state in the order of names, after checking that its form is as before."""
        known = {name: each.shape for name, each in self._state.items()}
        found = {name: np.shape(each) for name, each in state.items()}
        if found != known or not all(np.isfinite(each).all() for each in state.values()):
            raise HalfseenError(
                f"{type(self._estimator).__name__}.update must return finite arrays with the names "
                f"and shapes {known}, got {found}"
            )
        return {name: state[name] for name in known}

    @property
    def smallest_prob(self) -> float:
        """The smallest probability that a feature is seen, of those that were seen."""
        if self._counts is None:
            return float(np.min(self._observe_prob))
        shown = self._counts[self._counts > 0]
        return float(shown.min()) / self.n_arms if len(shown) else 1.0


class ArmByArm(SequentialEstimator):
    """Changes a basis with each arm that shows more entries than the subspace has dimensions.

    The seen entries of such an arm split into what the basis explains, by least squares with
    weights w, and a residual r. An arm that shows fewer entries has no residual.
    """

    def start(self, dim: int, rank: int | None, random: np.random.Generator) -> State:
        """Return a random basis."""
        basis = np.linalg.qr(random.standard_normal((dim, rank or 1)))[0]
        return {"basis": basis, "n_arms": np.zeros(())}

    def update(self, state: State, rows: FloatArray, observe_prob: float | FloatArray) -> State:
        """Return the state after the arms of a round."""
        for row in rows:
            seen, basis = row == row, state["basis"]
            if np.count_nonzero(seen) <= basis.shape[1]:
                continue
            weights = np.linalg.lstsq(basis[seen], row[seen], rcond=None)[0]
            if weights.any():
                state = self.step(state, row, seen, weights)
        return state

    @abstractmethod
    def step(self, state: State, row: FloatArray, seen: BoolArray, weights: FloatArray) -> State:
        """Return the state after one arm, given its mask and its weights."""

    def directions(self, state: State) -> Directions:
        """Return the basis, made orthonormal."""
        return Directions(np.linalg.qr(state["basis"])[0])


def _patience(default: float) -> Any:
    doc = "Steps are half as long after `patience · dim` arms: more for arms without noise."
    return params.real(default=default, low=0.0, high=LARGEST, low_open=True, doc=doc)


class Grouse(ArmByArm):
    """GROUSE: each arm turns the subspace towards itself, along a geodesic of the Grassmannian.

    The basis U becomes U + ((cos θ − 1) Uw/‖Uw‖ + sin θ r/‖r‖) w'/‖w‖. The angle arctan(‖r‖/‖Uw‖),
    after which the subspace explains the arm, is divided by 1 + n/(patience · dim) after n arms.

    Balzano, Nowak and Recht (2010), Online identification and tracking of subspaces from highly
    incomplete information; the angle is that of Zhang and Balzano (2016), Global convergence of a
    Grassmannian gradient descent algorithm for subspace estimation.

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(60, 1)) * np.array([1.0, 2.0, -2.0])
    >>> rows[::2, 0] = np.nan
    >>> Grouse().covariance(rows).round(2).tolist()  # of a unit vector along (1, 2, -2)
    [[0.11, 0.22, -0.22], [0.22, 0.44, -0.44], [-0.22, -0.44, 0.44]]
    """

    patience: float = _patience(10.0)

    def step(self, state: State, row: FloatArray, seen: BoolArray, weights: FloatArray) -> State:
        """Return the state after one arm."""
        basis, n_arms = state["basis"], state["n_arms"]
        explained = basis @ weights
        outside = np.where(seen, row - explained, 0.0)
        length, rest = np.linalg.norm(explained), np.linalg.norm(outside)
        angle = np.arctan2(rest, length) / (1.0 + n_arms / (self.patience * len(basis)))
        turn = (np.cos(angle) - 1.0) / length * explained + np.sin(angle) / (rest or 1.0) * outside
        basis = basis + np.outer(turn, weights / np.linalg.norm(weights))
        return {"basis": basis, "n_arms": n_arms + 1.0}


class Oja(ArmByArm):
    """Oja's rule: each arm, filled in by the present subspace, is added to the basis a little.

    With the filled arm x̂ = Uw + r, the basis U becomes an orthonormal basis of U + η x̂w'/‖w‖², with
    η = 1/(1 + n/(patience · dim)) after n arms.

    Oja (1982), A simplified neuron model as a principal component analyzer; with missing entries as
    in Balzano, Chi and Lu (2018), Streaming PCA and subspace tracking: the missing data case.

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(60, 1)) * np.array([1.0, 2.0, -2.0])
    >>> rows[::2, 0] = np.nan
    >>> Oja(patience=5).covariance(rows).round(2).tolist()  # of a unit vector along (1, 2, -2)
    [[0.11, 0.22, -0.22], [0.22, 0.44, -0.44], [-0.22, -0.44, 0.44]]
    """

    patience: float = _patience(10.0)

    def step(self, state: State, row: FloatArray, seen: BoolArray, weights: FloatArray) -> State:
        """Return the state after one arm."""
        basis, n_arms = state["basis"], state["n_arms"]
        filled, size = np.where(seen, row, basis @ weights), np.linalg.norm(weights)
        rate = 1.0 / (1.0 + n_arms / (self.patience * len(basis)))
        basis = np.linalg.qr(basis + rate * np.outer(filled / size, weights / size))[0]
        return {"basis": basis, "n_arms": n_arms + 1.0}


class Petrels(ArmByArm):
    """PETRELS: recursive least squares for each feature, with the weights of all arms so far.

    Row j of U, for a feature j that is seen, moves by (δI + R_j)⁻¹ w r_j, where R_j is the sum of
    ww' over the arms that showed the feature, older ones discounted. Arms are divided by the
    largest norm of one's seen entries so far: δ does not depend on their scale.

    Chi, Eldar and Calderbank (2013), PETRELS: parallel subspace estimation and tracking by
    recursive least squares from partial observations.

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(60, 1)) * np.array([1.0, 2.0, -2.0])
    >>> rows[::2, 0] = np.nan
    >>> Petrels().covariance(rows).round(2).tolist()  # of a unit vector along (1, 2, -2)
    [[0.11, 0.22, -0.22], [0.22, 0.44, -0.44], [-0.22, -0.44, 0.44]]
    """

    penalty: float = params.real(default=0.03, low=1e-10, high=LARGEST, doc="δ > 0.")
    discount: float = params.real(
        default=0.98,
        low=0.0,
        high=1.0,
        low_open=True,
        doc="Weight of an arm relative to the next one: weights of the first arms are poor.",
    )

    def start(self, dim: int, rank: int | None, random: np.random.Generator) -> State:
        """Return a random basis, and no sums."""
        size = rank or 1
        sums = {"sums": np.zeros((dim, size, size)), "scale": np.zeros(())}
        return {**super().start(dim, rank, random), **sums}

    def step(self, state: State, row: FloatArray, seen: BoolArray, weights: FloatArray) -> State:
        """Return the state after one arm."""
        scale = np.maximum(state["scale"], np.linalg.norm(row[seen]))
        shown, weights = row[seen] / scale, weights / scale
        basis, sums = state["basis"].copy(), state["sums"]
        sums = sums * (self.discount * (state["scale"] / scale) ** 2)
        sums[seen] += np.outer(weights, weights)
        penalized = sums[seen] + self.penalty * np.eye(len(weights))
        gains = np.linalg.solve(penalized, weights[:, None])[:, :, 0]
        basis[seen] += gains * (shown - basis[seen] @ weights)[:, None]
        return {"basis": basis, "sums": sums, "scale": scale, "n_arms": state["n_arms"] + 1.0}
