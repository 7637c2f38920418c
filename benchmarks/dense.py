"""What costs dim² at dim 1000: ambient OFUL, absorbing slates, opening an epoch."""

import tempfile
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import eigsh

import halfseen
from benchmarks import floors
from benchmarks.harness import Advance, Compared, Plan, in_turns, seconds
from benchmarks.rotation import NOISE, OBSERVE_PROB, Rotation, Size, rotation_of
from benchmarks.rounds import play_round
from halfseen import AmbientOful, TofuPov

DIM, RANK = 1000, 20
AMBIENT_ARMS = 4
ABSORBED_ARMS = 100
# Matrices of 8 MB in rotation: together beyond the cache.
_N_MATRICES = 8
# A policy holds half of such a matrix.
_N_POLICIES = 16
# From then on the regression runs in all dimensions.
_FILLED = DIM // 4 + 10
_CATALOGUE = 2000


def compare_ambient(plan: Plan, advance: Advance = lambda: None) -> tuple[Compared, float]:
    """Compare AmbientOful, choose + learn, with a rank-one update of a full matrix, in µs.

    The second value is the floor's bandwidth, bytes read and written per second.
    """
    rotation = rotation_of(Size(DIM, RANK, AMBIENT_ARMS), 4e6)
    ours = cycle(ambient_policies(rotation))
    slates = rotation.endless()
    matrices = cycle(np.zeros((_N_MATRICES, DIM, DIM)))
    point = np.nan_to_num(rotation.tables[0, 0])
    floors.add_outer(next(matrices), point, 1.0)
    runs = {
        "floor": lambda: _mean_microseconds(
            lambda: floors.add_outer(next(matrices), point, 1.0), _N_MATRICES
        ),
        "ours": lambda: _mean_microseconds(lambda: play_round(next(ours), slates), _N_POLICIES),
    }
    taken = in_turns(runs, plan.pick(21, 7), advance)
    compared = Compared.of(taken["ours"], taken["floor"])
    return compared, 2 * 8 * DIM**2 / (compared.other.median * 1e-6)


def ambient_policies(rotation: Rotation) -> list[AmbientOful]:
    """Return policies whose regression runs in all dimensions."""
    first = AmbientOful(dim=DIM, noise_scale=NOISE)
    slates = rotation.endless()
    for _ in range(_FILLED):
        play_round(first, slates)
    return [first, *(AmbientOful.from_tree(first.to_tree()) for _ in range(_N_POLICIES - 1))]


def _mean_microseconds(call: Callable[[], object], times: int) -> float:
    return seconds(lambda: [call() for _ in range(times)]) / times * 1e6


def compare_absorbing(plan: Plan, advance: Advance = lambda: None) -> Compared:
    """Compare `absorb` of ten slates with one BLAS product of the same arms, in ms."""
    rotation = rotation_of(Size(DIM, RANK, ABSORBED_ARMS))
    policy = TofuPov(dim=DIM, rank=RANK, observe_prob=OBSERVE_PROB)
    tables = cycle(rotation.tables)
    blocks = cycle(np.nan_to_num(rotation.tables[:80]).reshape(8, 10 * ABSORBED_ARMS, DIM))
    product = np.empty((DIM, DIM))

    def multiply() -> None:
        block = next(blocks)
        np.dot(block.T, block, product)

    def absorb() -> None:
        for _ in range(10):
            policy.absorb(next(tables))

    for _ in range(2):
        absorb(), multiply()
    runs = {"blas": lambda: seconds(multiply) * 1e3, "ours": lambda: seconds(absorb) * 1e3}
    taken = in_turns(runs, plan.pick(15, 5), advance)
    return Compared.of(taken["ours"], taken["blas"])


def compare_opening(plan: Plan, advance: Advance = lambda: None) -> tuple[Compared, str]:
    """Compare the round that opens an epoch with the better eigensolver, in ms; name the latter.

    The policy is restored from a file before each opening, so that every one starts alike: from a
    catalogue that is summed up already.
    """
    rotation = rotation_of(Size(DIM, RANK, AMBIENT_ARMS), 4e6)
    catalogue = rotation_of(Size(DIM, RANK, _CATALOGUE), seed=1).tables[0]
    covariance = _covariance(catalogue)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "policy"
        _save_before_epoch(path, catalogue, rotation)

        def opening() -> float:
            policy = halfseen.load(path)
            return seconds(lambda: policy.choose(rotation.tables[1])) * 1e3

        solvers = {
            "LAPACK subset": lambda: _lapack(covariance),
            "Lanczos": lambda: _lanczos(covariance),
        }
        runs = {name: _milliseconds(call) for name, call in solvers.items()}
        taken = in_turns({**runs, "ours": opening}, plan.pick(7, 3), advance)
    best = min(runs, key=lambda name: float(np.median(taken[name])))
    return Compared.of(taken["ours"], taken[best]), best


def _milliseconds(call: Callable[[], object]) -> Callable[[], float]:
    return lambda: seconds(call) * 1e3


def _save_before_epoch(path: Path, catalogue: np.ndarray, rotation: Rotation) -> None:
    policy = TofuPov(dim=DIM, rank=RANK, observe_prob=OBSERVE_PROB, burn_in=1)
    policy.absorb(catalogue)
    play_round(policy, rotation.endless())
    policy.save(path)


def _covariance(catalogue: np.ndarray) -> np.ndarray:
    filled = np.nan_to_num(catalogue)
    covariance = filled.T @ filled / (len(filled) * OBSERVE_PROB**2)
    covariance.ravel()[:: DIM + 1] *= OBSERVE_PROB
    return covariance


def _lapack(covariance: np.ndarray) -> None:
    eigh(covariance, subset_by_index=(DIM - RANK, DIM - 1), driver="evr", check_finite=False)


def _lanczos(covariance: np.ndarray) -> None:
    start = np.random.default_rng(0).standard_normal(DIM)
    eigsh(covariance, k=RANK, which="LA", v0=start, tol=1e-12)
