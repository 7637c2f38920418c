"""`benchmarks/report.md`: what was measured, in tables that stand for themselves."""

from pathlib import Path

from rich.console import Console

from benchmarks import agent, evaluating, imputing, latent, openings
from benchmarks.measuring import Row, machine
from benchmarks.peers import contest
from benchmarks.peers.contest import WORLD, Standing

REPORT = Path(__file__).parent / "report.md"

_HEAD = """\
# Benchmarks

Written by `make bench`, all in one run on one machine. One thread unless stated; always through \
the public API, arrays with NaN, validation included; p = .3. What is compared is measured in \
turns, so that noise hits both sides. Numbers are medians (quartiles) over repeats."""

_BUDGET = """
## Budget

| workload | measured | required | met |
|---|---|---|---|"""

_CONTEST = f"""
## Other libraries

{WORLD.n_arms} arms with {WORLD.dim} features each, {WORLD.horizon} rounds; choose + learn per \
round by each library's documented online path with its default settings, all on the same rounds \
in turns, whole runs with burn-in and epoch openings. Those that cannot do with holes see every \
entry, the others 30 % of them. A library that takes one context for all arms gets the whole \
slate as that context.

| | sees | µs per round | regret, mean ± SE | runs |
|---|---|---|---|---|"""

_SERVICE = """
## Long service

`LatentUcb()`, choose + learn, arms that never come back, 40 % seen, the first 100 rounds left \
out; processor time. The median is that of the last tenth of the rounds. What the policy holds is \
the size of its pickle.

| dim, arms | rounds | median, µs | 99 %, ms | 99.9 %, ms | slowest, ms | holds, MB | file, MB | \
save / load, s |
|---|---|---|---|---|---|---|---|---|"""

_IMPUTING = """
## Imputation

Root mean square error on hidden entries, in deviations of their columns, and processor time to \
fit and fill. Of public tables half of the entries are hidden at random; means over three masks, \
for libraries other than scikit-learn one of them. All have their default settings. Those that \
depend on units get columns standardised by their seen entries, `IterativeImputer` the columns \
themselves.
"""


def write(quick: bool, peers: bool, console: Console, path: Path = REPORT) -> list[Row]:
    """Measure everything, write the report, and return the rows of the budget."""
    console.print("measuring: other libraries (the first time they are installed)")
    standings = contest.hold(quick, peers)
    console.print("measuring: LatentUcb")
    service = latent.measure_service(quick)
    rows = [contest.peer_row(standings), latent.whole_run_row(quick)]
    rows += [*latent.service_rows(service), *openings.rows(quick)]
    console.print("measuring: agents")
    rows += agent.rows(quick)
    console.print("measuring: imputers")
    imputed = imputing.measure(quick, peers)
    rows += [*imputing.rows(imputed), evaluating.row(quick)]
    head = _HEAD + (" This was a quick run: fewer repeats, shorter horizons." if quick else "")
    lines = [head, f"\nMachine: {machine()}.", _BUDGET, *map(str, rows)]
    lines += [_CONTEST, *contest_lines(standings), _SERVICE, *map(str, service)]
    lines += [_IMPUTING, *imputing.lines(imputed)]
    path.write_text("\n".join(lines) + "\n")
    return rows


def contest_lines(standings: list[Standing]) -> list[str]:
    """Return a row for each contestant, the fastest first and those that failed last."""
    ordered = sorted(standings, key=lambda each: (each.error, *each.microseconds[:1]))
    sees = {"all": "everything", "some": "30 %"}
    return [f"| {each.title} | {sees[each.sees]} | {each.cells()} |" for each in ordered]
