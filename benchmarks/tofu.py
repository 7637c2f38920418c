"""`TofuPov` and ambient OFUL beside their floors, in turns on the same slates."""

import copy
import tempfile
import time
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import eigsh

import halfseen
from benchmarks import floors
from benchmarks.measuring import Compared, Row, in_turns, seconds
from halfseen import AmbientOful, Decision, Note, TofuPov

OBSERVE_PROB = 0.3
NOISE = 0.05
BURN_IN = 60
# Twice the last cache of the machines we know.
_BEYOND_CACHE = 64e6
# So large that no further epoch opens while we measure.
_GROWTH = 1e4
# Arms of one second-moment product in the floor, as in the package.
_BLOCK = 1024
_ABSORBED = 100  # arms of a slate
_CATALOGUE = 2000  # arms absorbed before an epoch opens


class Size(NamedTuple):
    dim: int
    rank: int
    n_arms: int

    def __str__(self) -> str:
        return f"({self.dim}, {self.rank}, {self.n_arms})"


WIDE = Size(1000, 20, 4)


class Slates(NamedTuple):
    """Half-seen slates, by default so many that they do not fit into a cache."""

    size: Size
    basis: np.ndarray  # (dim, rank)
    tables: np.ndarray  # (n, n_arms, dim), NaN where hidden
    rewards: list[list[float]]

    @classmethod
    def draw(cls, size: Size, n_bytes: float = _BEYOND_CACHE, seed: int = 0) -> "Slates":
        random = np.random.default_rng(seed)
        n_tables = max(2, int(n_bytes / (8 * size.n_arms * size.dim)))
        basis = np.linalg.qr(random.standard_normal((size.dim, size.rank)))[0]
        latent = random.standard_normal((n_tables, size.n_arms, size.rank))
        tables = latent @ basis.T
        tables[random.random(tables.shape) >= OBSERVE_PROB] = np.nan
        theta = random.standard_normal(size.rank)
        theta /= np.linalg.norm(theta)
        rewards = latent @ theta + NOISE * random.standard_normal(latent.shape[:2])
        return cls(size, basis, tables, rewards.tolist())

    def endless(self):
        """Yield table and rewards, again from the first after the last."""
        return cycle(zip(self.tables, self.rewards, strict=True))


class Floor:
    """All systems of a slate in one compiled call, a `Decision`, BLAS for the second moment."""

    def __init__(self, slates: Slates) -> None:
        size, basis = slates.size, slates.basis
        latent = self.latent = np.empty((size.rank, size.n_arms))
        if size.rank == 3:
            pairs = [basis[:, a] * basis[:, b] for a in range(3) for b in range(a, 3)]
            given = np.ascontiguousarray([*pairs, *basis.T]), np.empty((9, size.n_arms)), latent
            self.solve = lambda table: floors.solve_rank_3(table, *given)
        else:
            self.solve = lambda table: floors.solve_wide(table, basis, latent)
        self.parts = np.zeros((3, size.n_arms))
        self.slates_per_block = max(1, _BLOCK // size.n_arms)
        self.block = np.nan_to_num(slates.tables[: self.slates_per_block].reshape(-1, size.dim))
        self.product = np.empty((size.dim, size.dim))

    def play(self, slates, n_rounds: int) -> None:
        for n in range(1, n_rounds + 1):
            table, _ = next(slates)
            self.solve(table)
            Decision("Floor", 0, Note(n, 0, table[0]), self.parts)
            if n % self.slates_per_block == 0:
                np.dot(self.block.T, self.block, self.product)


def play(policy, slates, n_rounds: int = 1) -> None:
    for _ in range(n_rounds):
        table, rewards = next(slates)
        decision = policy.choose(table)
        policy.learn(decision, rewards[decision.arm])


def tofu_in_epoch(size: Size, slates) -> TofuPov:
    """Return a policy that has just entered an epoch which lasts as long as we measure."""
    policy = TofuPov(
        dim=size.dim,
        rank=size.rank,
        observe_prob=OBSERVE_PROB,
        burn_in=BURN_IN,
        growth=_GROWTH,
        noise_scale=NOISE,
    )
    play(policy, slates, BURN_IN + 1)
    return policy


def compare_rounds(size: Size, n_rounds: int, repeats: int, n_bytes=_BEYOND_CACHE) -> Compared:
    """Compare choose + learn inside an epoch with the floor of a round, in µs."""
    drawn = Slates.draw(size, n_bytes)
    floor, slates = Floor(drawn), drawn.endless()
    policy = tofu_in_epoch(size, slates)
    return _compare(
        lambda: play(policy, slates, n_rounds),
        lambda: floor.play(slates, n_rounds),
        repeats,
        1e6 / n_rounds,
    )


def compare_ambient(repeats: int) -> Compared:
    """Compare choose + learn of AmbientOful with a rank-one update of a full matrix, in µs."""
    drawn = Slates.draw(WIDE, 4e6)
    slates = drawn.endless()
    first = AmbientOful(dim=WIDE.dim, noise_scale=NOISE)
    play(first, slates, BURN_IN)
    # A policy holds a triangle of 4 MB, the floor a matrix of 8 MB: both lots are beyond the cache.
    policies = [first, *(copy.deepcopy(first) for _ in range(15))]
    matrices = np.zeros((8, WIDE.dim, WIDE.dim))
    point = np.nan_to_num(drawn.tables[0, 0])

    def update() -> None:
        for matrix in (*matrices, *matrices):
            floors.add_outer(matrix, point, 1.0)

    update()
    return _compare(
        lambda: [play(policy, slates) for policy in policies], update, repeats, 1e6 / 16
    )


def compare_absorbing(repeats: int) -> Compared:
    """Compare `absorb` of ten slates with one BLAS product of the same arms, in ms."""
    drawn = Slates.draw(WIDE._replace(n_arms=_ABSORBED))
    policy = TofuPov(dim=WIDE.dim, rank=WIDE.rank, observe_prob=OBSERVE_PROB)
    tables = cycle(drawn.tables)
    blocks = cycle(np.nan_to_num(drawn.tables[:80]).reshape(8, 10 * _ABSORBED, WIDE.dim))
    product = np.empty((WIDE.dim, WIDE.dim))

    def multiply() -> None:
        block = next(blocks)
        np.dot(block.T, block, product)

    def absorb() -> None:
        for _ in range(10):
            policy.absorb(next(tables))

    for _ in range(2):
        absorb(), multiply()
    return _compare(absorb, multiply, repeats, 1e3)


def compare_opening(repeats: int) -> Compared:
    """Compare the round that opens an epoch with the faster of two eigensolvers, in ms.

    The policy is loaded anew for each opening, so that all start alike: from a catalogue whose
    second moments are known.
    """
    slates = Slates.draw(WIDE, 4e6)
    catalogue = Slates.draw(WIDE._replace(n_arms=_CATALOGUE), seed=1).tables[0]
    filled = np.nan_to_num(catalogue)
    covariance = filled.T @ filled / (_CATALOGUE * OBSERVE_PROB**2)
    covariance.ravel()[:: WIDE.dim + 1] *= OBSERVE_PROB
    start = np.random.default_rng(0).standard_normal(WIDE.dim)
    top = (WIDE.dim - WIDE.rank, WIDE.dim - 1)

    def lapack() -> None:
        eigh(covariance, subset_by_index=top, check_finite=False)

    def lanczos() -> None:
        eigsh(covariance, k=WIDE.rank, which="LA", v0=start, tol=1e-12)

    policy = TofuPov(dim=WIDE.dim, rank=WIDE.rank, observe_prob=OBSERVE_PROB, burn_in=1)
    policy.absorb(catalogue)
    play(policy, slates.endless())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "policy"
        policy.save(path)

        def opening() -> float:
            loaded = halfseen.load(path)
            return 1e3 * _taken(lambda: loaded.choose(slates.tables[1]))

        taken = in_turns(
            {
                "ours": opening,
                "LAPACK": lambda: 1e3 * _taken(lapack),
                "Lanczos": lambda: 1e3 * _taken(lanczos),
            },
            repeats,
        )
    return Compared.of(taken["ours"], min(taken["LAPACK"], taken["Lanczos"], key=np.median))


def _taken(call: Callable[[], object]) -> float:
    """Return seconds of the processor: what else the machine does counts less."""
    return seconds(call, time.process_time)


def _compare(ours, floor, repeats: int, scale: float) -> Compared:
    runs = {"floor": lambda: scale * _taken(floor), "ours": lambda: scale * _taken(ours)}
    taken = in_turns(runs, repeats)
    return Compared.of(taken["ours"], taken["floor"])


class Case(NamedTuple):
    """Something with a floor."""

    workload: str
    compare: Callable[[int], Compared]  # given how often to repeat
    unit: str
    repeats: int
    budget: float  # ours may take this many times the floor

    def row(self, quick: bool) -> Row:
        found = self.compare(5 if quick else self.repeats)
        return Row(
            self.workload,
            f"{found.ratio} × floor: {found.ours} {self.unit} against {found.floor} {self.unit}",
            f"≤ {self.budget:g} × floor",
            found.ratio.median <= self.budget,
        )


def _rounds(size: Size, n_rounds: int, *plan) -> Case:
    workload = f"`TofuPov` choose + learn at {size}, in an epoch"
    return Case(workload, lambda repeats: compare_rounds(size, n_rounds, repeats), "µs", *plan)


CASES = (
    _rounds(Size(30, 3, 8), 512, 21, 6.0),
    _rounds(Size(30, 3, 1000), 24, 21, 2.0),
    _rounds(WIDE, 256, 9, 2.0),
    Case("ambient OFUL choose + learn at dim 1000", compare_ambient, "µs", 21, 1.5),
    Case("absorbing 1000 arms in slates of 100, dim 1000", compare_absorbing, "ms", 15, 1.4),
    Case("opening an epoch at dim 1000, rank 20", compare_opening, "ms", 7, 1.5),
)
