"""The budget: what was to be reached, what was measured, and whether it was met."""

from collections.abc import Sequence
from typing import NamedTuple

from benchmarks import memory
from benchmarks.agent import Added
from benchmarks.growth import Growth
from benchmarks.harness import Compared, Quartiles
from benchmarks.large import LARGEST_PEAK, Large
from benchmarks.large import RANK as RANK_OF_LARGE
from benchmarks.latent import MOST_FULL_RANK, MOST_NEWSGROUPS, MOST_SMALL, Latent, Wide
from benchmarks.peers.contest import Standing
from benchmarks.reproduction import Reproduction
from benchmarks.rounds import Outcome

LEAST_FACTOR = 10
# Time over rounds counts as linear, and a round as independent of t, up to this much.
_SLOPE = 1.1
_FLAT = 1.5
# What a policy holds may differ this much between horizons and numbers of arms.
_HELD = 1.05


class Row(NamedTuple):
    workload: str
    measured: str
    required: str
    met: bool | None  # None: could not be measured

    def line(self) -> str:
        verdict = "–" if self.met is None else "yes" if self.met else "**no**"
        return f"| {self.workload} | {self.measured} | {self.required} | {verdict} |"


def table(rows: Sequence[Row]) -> list[str]:
    head = ["| workload | measured | required | met |", "|---|---|---|---|"]
    return [*head, *(row.line() for row in rows), ""]


def round_rows(outcome: Outcome) -> list[Row]:
    """Two rows: all rounds, and a round in the middle, which has no block product in it.

    A floor is the systems, a `Decision` and the second-moment product, so the budget is for all
    rounds; the other row shows what remains where neither side has a product.
    """
    budget, workload = outcome.case.budget, f"`TofuPov` choose + learn at {outcome.case.size}"
    rows = []
    for kind, compared, required, met in (
        ("", outcome.mean, f"≤ {budget:g} × floor", outcome.mean.ratio.median <= budget),
        (", rounds without a block product", outcome.median, "–", None),
    ):
        rows.append(
            Row(
                f"{workload}, in an epoch{kind}",
                f"{compared.ratio} × floor: {compared.ours} µs against {compared.other} µs",
                required,
                met,
            )
        )
    return rows


def lock_row(microseconds: Quartiles) -> Row:
    return Row(
        "taking and giving back a policy's lock, once per call",
        f"{microseconds} µs",
        "≤ .5 µs",
        microseconds.median <= 0.5,
    )


def peer_row(standings: Sequence[Standing]) -> Row:
    """Ours with entries hidden against the quickest peer, whatever that one needs to see.

    A peer that did not run might be quicker: without it, the budget can be missed but not met.
    """
    ours = next(each for each in standings if each.ours)
    peers = [each for each in standings if not each.ours and each.title != "yardstick"]
    timed = [each for each in peers if not each.error]
    workload = "`TofuPov` whole runs at (30, 3, 8) against the quickest peer"
    if not timed:
        return Row(workload, "no peer ran", f"≥ {LEAST_FACTOR} times as fast", None)
    best = min(timed, key=lambda each: each.time.median)
    factor = best.time.median / ours.time.median
    measured, met = f"{factor:.1f} times as fast as {best.title}", factor >= LEAST_FACTOR
    if len(timed) < len(peers):
        measured += f"; {len(timed)} of {len(peers)} peers ran"
        met = None if met else False
    return Row(workload, measured, f"≥ {LEAST_FACTOR} times as fast", met)


def ambient_row(compared: Compared) -> Row:
    return Row(
        "ambient OFUL choose + learn at dim 1000",
        f"{compared.ratio} × floor: {compared.ours} µs against {compared.other} µs",
        "≤ 1.5 × floor",
        compared.ratio.median <= 1.5,
    )


def absorbing_row(compared: Compared) -> Row:
    share = 1 / compared.ratio.median
    return Row(
        "absorbing slates, dim 1000, 100 arms",
        f"{share:.0%} of the BLAS rate: {compared.ours} ms per 1000 arms against "
        f"{compared.other} ms",
        "≥ 70 % of BLAS",
        share >= 0.7,
    )


def opening_row(compared: Compared, solver: str) -> Row:
    return Row(
        "opening an epoch at dim 1000, rank 20",
        f"{compared.ratio} × {solver}: {compared.ours} ms against {compared.other} ms",
        "≤ 1.5 × the best of LAPACK subset and Lanczos",
        compared.ratio.median <= 1.5,
    )


def latent_rows(latent: Latent) -> list[Row]:
    """Rows in processor time; the budget for full rank is for columns that are independent."""
    small, run, tofu = latent.small, latent.newsgroups, latent.newsgroups_tofu
    wide = "`LatentUcb()`, 100 columns of full rank, 20 % hidden, 10 arms, 2000 rounds"
    return [
        Row(
            "`LatentUcb()`, whole run at (30, 3, 8), 400 rounds",
            f"{small} µs of processor time per round (`TofuPov` with full history: "
            f"{latent.small_tofu} µs)",
            f"≤ {MOST_SMALL:.0f} µs",
            small.median <= MOST_SMALL,
        ),
        Row(
            f"`LatentUcb()`, {run.n_rounds} rounds of the newsgroups study",
            f"{run.seconds:.1f} s of processor time, regret {run.regret:.0f} (`TofuPov`: "
            f"{tofu.seconds:.1f} s, {tofu.regret:.0f})",
            f"≤ {MOST_NEWSGROUPS:.0f} s",
            run.seconds <= MOST_NEWSGROUPS,
        ),
        Row(
            f"{wide}, independent columns",
            _wide(latent.full_rank),
            f"≤ {MOST_FULL_RANK:.0f} µs",
            latent.full_rank.microseconds.median <= MOST_FULL_RANK,
        ),
        Row(f"{wide}, eigenvalues fall like 1/j", _wide(latent.decaying), "–", None),
    ]


def _wide(found: Wide) -> str:
    return f"{found.microseconds} µs of processor time per round, latent rank {found.rank}"


def agent_rows(found: Sequence[Added]) -> list[Row]:
    return [
        Row(
            f"added by an agent to choose + learn, 8 × 30, {each.name}",
            f"{each.microseconds} µs",
            f"≤ {each.most:g} µs",
            each.microseconds.median <= each.most,
        )
        for each in found
    ]


def large_rows(found: list[Large]) -> list[Row]:
    """Rows of sizes at which a matrix of dim² is out of the question."""
    return [
        Row(
            f"`{each.title}` at dim {each.dim}, given its rank {RANK_OF_LARGE}",
            f"{each.seconds:.0f} s, peak {each.peak / 2**30:.2f} GiB, distance to the true "
            f"subspace {each.distance:.2g}, regret {each.regret:.0f} (uniform {each.uniform:.0f})",
            f"peak < {LARGEST_PEAK / 2**30:.0f} GiB",
            each.peak < LARGEST_PEAK,
        )
        for each in found
    ]


def reproduction_row(found: Reproduction) -> Row:
    return Row(
        f"`reproduce synthetic`, the {found.n_cells} cells of TOFU with full replay, two processes",
        f"{found.ratio:.1f} times as fast: {found.ours:.2f} s against {found.yardstick:.2f} s "
        f"(same regrets; making rounds takes {found.worlds_alone:.2f} s of one core either way)",
        "–",
        None,
    )


def growth_rows(growth: Growth) -> list[Row]:
    return [
        Row(
            f"total time over T = 10³ … {growth.rounds[-1]:,} rounds",
            f"slope {growth.slope:.2f} on log-log axes",
            f"linear (slope ≤ {_SLOPE})",
            growth.slope <= _SLOPE,
        ),
        Row(
            "a round in an epoch, whatever t",
            f"dearest / cheapest {growth.flatness:.2f}",
            f"independent of t (≤ {_FLAT})",
            growth.flatness <= _FLAT,
        ),
    ]


def memory_rows(found: dict[str, tuple[int, int]]) -> list[Row]:
    first, *others = (held for name, (held, _) in found.items() if name != memory.ALL_REPLAYED)
    most = max(others) / first
    each, arm = memory.bytes_per_played_arm(found), 8 * (memory.DIM + 2)
    return [
        Row(
            "memory held at 10 T and at 10 K, nothing replayed",
            f"at most {most:.3f} times as much",
            f"flat (≤ {_HELD})",
            most <= _HELD,
        ),
        Row(
            "memory of a played arm, all rewards replayed",
            f"{each:.0f} bytes; arm, reward and round are {arm}",
            "only what replay needs (≤ 2 ×: room doubles)",
            each <= 2 * arm,
        ),
    ]
