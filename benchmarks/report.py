"""`benchmarks/report.md`: what was measured, in tables that stand for themselves."""

from pathlib import Path

from benchmarks import budget, memory, plots, prose, real_tables, rounds, service, speed, startup
from benchmarks.findings import Findings
from benchmarks.harness import Plan
from benchmarks.machine import description
from benchmarks.peers.contest import WORLD, Standing

REPORT = Path(__file__).parent / "report.md"


def write(found: Findings, plan: Plan, path: Path = REPORT) -> list[budget.Row]:
    """Draw the plots, write the report, and return the rows of the budget."""
    plots.draw_floors(found.rounds)
    plots.draw_growth(found.growth)
    plots.draw_contest(found.contest)
    plots.draw_service(found.service)
    rows = budget_rows(found)
    lines = [
        *_head(found, plan),
        *_budget(rows),
        *_contest(found.contest),
        *_real_tables(found),
        *_floors(found),
        *_whole_runs(found),
        *_growth(found),
        *_service(found),
        *_profiles(found),
    ]
    path.write_text("\n".join(lines).rstrip() + "\n")
    return rows


def budget_rows(found: Findings) -> list[budget.Row]:
    rows = [row for outcome in found.rounds for row in budget.round_rows(outcome)]
    return [
        *rows,
        budget.lock_row(found.lock),
        budget.peer_row(found.contest),
        budget.ambient_row(found.ambient),
        budget.absorbing_row(found.absorbing),
        budget.opening_row(found.opening, found.solver),
        *budget.latent_rows(found.latent),
        *service.budget_rows(found.service),
        *budget.agent_rows(found.agent),
        *budget.large_rows(found.large),
        budget.reproduction_row(found.reproduction),
        *budget.growth_rows(found.growth),
        *budget.memory_rows(found.memory),
    ]


def _head(found: Findings, plan: Plan) -> list[str]:
    return [
        "# Benchmarks",
        "",
        prose.HEAD + (prose.QUICK if plan.quick else ""),
        "",
        f"Machine: {description()}.",
        "",
        *found.rates.lines(),
    ]


def _budget(rows: list[budget.Row]) -> list[str]:
    return ["## Budget", "", *budget.table(rows)]


def _contest(standings: list[Standing]) -> list[str]:
    lines = [
        "## Other libraries",
        "",
        f"{WORLD.n_arms} arms with {WORLD.dim} features each, {WORLD.horizon} rounds; "
        + prose.CONTEST,
        "",
        "| | sees | µs per round | against TofuPov | regret, mean ± SE | runs |",
        "|---|---|---|---|---|---|",
    ]
    ours = next(each for each in standings if each.ours).time.median
    for each in sorted(standings, key=_order):
        lines.append(_standing(each, ours))
    return [*lines, "", "![regret over time per round](plots/peers.png)", ""]


def _order(each: Standing) -> tuple[bool, float]:
    return bool(each.error), 0.0 if each.error else each.time.median


def _standing(each: Standing, ours: float) -> str:
    sees = "everything" if each.sees == "all" else "30 %"
    if each.error:
        return f"| {each.title} | {sees} | {each.short_error} | | | 0 |"
    n = len(each.regrets)
    mean = sum(each.regrets) / n
    regret = f"{mean:.1f}"
    if n > 1:
        variance = sum((value - mean) ** 2 for value in each.regrets) / (n - 1)
        regret += f" ± {(variance / n) ** 0.5:.1f}"
    if not each.finished:
        regret += f" after {min(each.n_rounds)} rounds, then out of time"
    factor = each.time.median / ours
    return f"| {each.title} | {sees} | {each.time} | {factor:.3g} × | {regret} | {n} |"


def _real_tables(found: Findings) -> list[str]:
    return ["## Real tables", "", prose.REAL_TABLES, "", *real_tables.lines(found.real_tables)]


def _floors(found: Findings) -> list[str]:
    copy = found.rates.copy.median
    bandwidth = found.ambient_bandwidth
    return [
        "## Floors",
        "",
        prose.FLOORS,
        "",
        *rounds.floor_lines(found.rounds, found.rates.product),
        prose.SHAPES,
        "",
        f"Ambient OFUL, rank-one update of a full matrix of side 1000, matrices rotated beyond the "
        f"cache: {bandwidth / 1e9:.1f} GB/s, {bandwidth / copy:.0%} of a plain copy (which has to "
        "fetch its target as well).",
        "",
        "![floors](plots/floors.png)",
        "",
    ]


def _whole_runs(found: Findings) -> list[str]:
    return [
        "## Whole runs beside a plain implementation",
        "",
        prose.WHOLE_RUNS,
        "",
        *speed.lines(found.whole_runs),
    ]


def _growth(found: Findings) -> list[str]:
    return [
        "## Growth",
        "",
        "TofuPov with full replay at (30, 3, 8), no horizon given.",
        "",
        *found.growth.lines(),
        "![growth](plots/growth.png)",
        "",
        prose.MEMORY,
        "",
        *memory.lines(found.memory),
        *startup.lines(*found.start),
    ]


def _service(found: Findings) -> list[str]:
    return [
        "## Long service",
        "",
        prose.SERVICE,
        "",
        *service.lines(found.service),
        "![time of rounds](plots/service.png)",
        "",
    ]


def _profiles(found: Findings) -> list[str]:
    """Show where the time goes in each workload; watching makes Python look dearer than it is."""
    titles = {str(o.case.size): f"`TofuPov` at {o.case.size}, in an epoch" for o in found.rounds}
    titles["ambient"] = "ambient OFUL at dim 1000"
    titles["cells"] = "cells of `reproduce synthetic`"
    titles["latent"] = "`LatentUcb`, newsgroups size"
    profiles = {**found.profiles, "latent": found.latent.profile}
    lines = [
        "## Where the time goes",
        "",
        prose.PROFILES,
        "",
    ]
    for key, title in titles.items():
        share = profiles[key].compiled_share
        lines += [f"{title}: {share:.0%} in BLAS or compiled loops.", "", *profiles[key].table()]
    return lines
