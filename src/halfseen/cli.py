"""The commands; what a command needs is imported when it runs."""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

import halfseen
from halfseen.errors import HalfseenError, InvalidSettingError, StudyError
from halfseen.lazy import from_extra

if TYPE_CHECKING:
    from halfseen.paper.published import SeedComparison, SummaryComparison
    from halfseen.paper.study import Study
    from halfseen.report.report import Report
    from halfseen.simulation.results import Results

RESULTS = Path("results")
_LOADING = "loading (compiling takes some seconds the first time)"
_MOST_SEEDS = 1_000_000

_EXAMPLES = (
    "halfseen serve shop.db --id sku  # a web service with a dashboard",
    "halfseen inspect offers.csv --reward paid  # rank, missingness, what is worth measuring",
    "halfseen evaluate log.parquet --context hour  # what policies would have earned on a log",
    "halfseen compare offers.csv --methods latent-ucb,uniform  # compare policies on your table",
    "halfseen reproduce synthetic  # the paper's main study",
    "halfseen reproduce all --scale smoke  # every study, in minutes",
    "halfseen verify synthetic  # compare our regrets with the published ones",
)

app = typer.Typer(
    help="Contextual bandits for tables with missing values.",
    epilog="\n\n".join(("Examples:", *_EXAMPLES)),
    no_args_is_help=True,
    add_completion=False,
)

Scale = Annotated[str, typer.Option(help="paper: full size. smoke: a test that takes seconds.")]
Seeds = Annotated[
    str | None, typer.Option(help="Seeds instead of the study's own: 100:120 or 3,5,7.")
]
Probs = Annotated[
    str | None, typer.Option("--p", help="Only these observation probabilities: .2,.3")
]
Methods = Annotated[
    str | None,
    typer.Option(help="Only these methods, for example tofu,zf-oful; may include your own."),
]
Jobs = Annotated[
    int | None, typer.Option("--jobs", "-j", min=1, help="Processes; all cores by default.")
]
Out = Annotated[
    Path | None, typer.Option("--out", "-o", help="Folder for results; results/STUDY by default.")
]
Import = Annotated[
    list[str] | None,
    typer.Option(
        "--import",
        help="A Python file or module with your own policies and worlds; may be repeated.",
    ),
]
Folder = Annotated[Path, typer.Argument(help="Folder with the results of studies.")]


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"halfseen {halfseen.__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """Contextual bandits for tables with missing values."""


@app.command()
def studies() -> None:
    """List the studies of the package."""
    from halfseen.paper.studies import ORDER, study_named

    console = Console(highlight=False)
    for name in ORDER:
        study = study_named(name)
        console.print(f"{name:15} {study.title} ({study.n_cells} cells)")


@app.command()
def reproduce(
    names: Annotated[list[str], typer.Argument(help="Studies (see `halfseen studies`), or all.")],
    scale: Scale = "paper",
    seeds: Seeds = None,
    p: Probs = None,
    methods: Methods = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="One more method: mine=tofu,subspace=Grouse (a key, what it changes, settings), "
            "or a JSON file of methods; may be repeated.",
        ),
    ] = None,
    jobs: Jobs = None,
    cluster: Annotated[
        str | None, typer.Option(help="Run on this Dask scheduler: tcp://10.0.0.1:8786.")
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option(help="Only this part of the cells: 3/20. `merge` joins the folders."),
    ] = None,
    out: Out = None,
    imports: Import = None,
) -> None:
    """Run studies of the paper and write figures, tables and a report with verdicts."""
    with _explained() as console:
        with console.status(_LOADING):
            from halfseen.paper.studies import ORDER
        _import_plugins(imports)
        names = list(ORDER) if names == ["all"] else names
        several, failed = len(names) > 1, False
        # All of them before the first is run, so that a wrong option is reported at once.
        own = {key: each for text in method or () for key, each in parse_method(text).items()}
        studies = [_part_of(name, scale, seeds, p, methods, own) for name in names]
        part = parse_shard(shard)
        with _workers(cluster, jobs):
            for each, study in zip(names, studies, strict=True):
                folder = _folder_for(each, scale, out / each if several and out else out)
                if shard is not None:
                    folder /= "shard-{}-of-{}".format(*part)
                results = _run(study, folder, console, jobs=jobs, shard=part)
                if shard is None:
                    failed |= not _show_report(study.report(results), console)
                else:
                    failed |= not _show_failures(results, folder, console)
        if shard is None and (several or out is None):
            _write_page(folder.parent, console)
        if failed:
            raise typer.Exit(1)


@app.command()
def merge(
    out: Annotated[Path, typer.Argument(help="Folder for all results.")],
    folders: Annotated[list[Path], typer.Argument(help="Folders that `reproduce --shard` wrote.")],
) -> None:
    """Join the finished cells of several folders; exit with 1 if shards are missing.

    Then the command without --shard writes tables and the report, and runs what is missing.
    """
    with _explained() as console:
        from halfseen.simulation.store import Store, missing_shards

        store = Store(out)
        n_new, n_damaged = store.merge(folders)
        console.print(f"{n_new} new cells in {out}", soft_wrap=True, markup=False)
        if n_damaged:
            console.print(f"left out, because they are damaged: {n_damaged} lines")
        missing = missing_shards(folders)
        for study, n_shards, places in missing:
            listed = ", ".join(map(str, places))
            console.print(f"[red]missing shards[/] of {study}: {listed} of {n_shards}")
        if missing:
            raise typer.Exit(1)


@app.command()
def compare(
    file: Annotated[Path, typer.Argument(help="A table: one row per offered option.")],
    seeds: Annotated[str, typer.Option(help="5 (the first five), 100:120 or 3,5,7.")] = "5",
    methods: Annotated[str, typer.Option(help="Policies to compare.")] = (
        "latent-ucb,ra-tofu-fh,zf-oful,impute-mean,uniform"
    ),
    rank: Annotated[
        int | None, typer.Option(min=1, help="Rank, for methods that need one.")
    ] = None,
    noise: Annotated[
        float | None, typer.Option(min=0.0, help="Standard deviation of rewards around the means.")
    ] = None,
    round_column: Annotated[str, typer.Option("--round", help="The column of rounds.")] = "round",
    reward: Annotated[str, typer.Option(help="The column of rewards.")] = "reward",
    mean: Annotated[str, typer.Option(help="Or the column of mean rewards.")] = "mean",
    context: Annotated[
        str | None,
        typer.Option(help="Columns that describe the round, not an option: age,country."),
    ] = None,
    id_column: Annotated[str | None, typer.Option("--id", help="The column with item ids.")] = None,
    jobs: Jobs = None,
    out: Out = None,
    imports: Import = None,
) -> None:
    """Compare policies on a table with the reward of every option, and write a report."""
    with _explained() as console:
        with console.status(_LOADING):
            from halfseen.simulation.simulate import simulate
            from halfseen.worlds.recorded import TableWorld
        _import_plugins(imports)
        world = TableWorld(
            path=str(file),
            round_column=round_column,
            id_column=id_column,
            context_columns=tuple(_words(context) or ()),
            mean_column=mean,
            reward_column=reward,
            noise_scale=noise,
            rank=rank,
            shuffle=True,
        )
        world.shares()  # a mistake in the table is reported before any run
        chosen = parse_seeds(f"0:{seeds}" if seeds.isdigit() else seeds)
        folder = out or RESULTS / file.stem
        results = simulate(
            _words(methods) or (),
            world,
            chosen,
            name=file.name,
            out=folder,
            jobs=jobs,
            progress=True,
        )
        from halfseen.report.report import Report

        if not _show_report(Report.of(results), console):
            raise typer.Exit(1)


@app.command()
def inspect(
    file: Annotated[Path, typer.Argument(help="A table: CSV or Parquet, one row per option.")],
    reward: Annotated[str | None, typer.Option(help="The column of rewards.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Also write the report to this HTML file.")
    ] = None,
) -> None:
    """Describe a table: rank, missingness, and what is worth measuring."""
    with _explained() as console:
        from halfseen.tools.inspection import inspect

        found = inspect(file, reward, progress=True)
        console.print(str(found), soft_wrap=True, markup=False)
        if out is not None:
            console.print(f"page: {found.write(out)}", soft_wrap=True, markup=False)


@app.command()
def evaluate(
    log: Annotated[
        str,
        typer.Argument(help="One row per decision: Parquet, CSV, dsjson, or an agent's database."),
    ],
    item: Annotated[str, typer.Option(help="The column of the chosen item.")] = "item",
    propensity: Annotated[
        str, typer.Option(help="The column of the probability with which it was chosen.")
    ] = "propensity",
    reward: Annotated[str, typer.Option(help="The column of rewards.")] = "reward",
    context: Annotated[
        str | None,
        typer.Option(help="Columns that describe the decision, not an option: age,country."),
    ] = None,
    offered: Annotated[
        str | None, typer.Option(help="The column with the list of offered items.")
    ] = None,
    always: Annotated[str | None, typer.Option(help="Items, each as a policy: hat,coat.")] = None,
    adaptive: Annotated[
        bool, typer.Option("--adaptive", help="The policy that made the log learned from it.")
    ] = False,
    figure: Annotated[
        Path | None, typer.Option(help="Also draw policies with intervals into this file.")
    ] = None,
) -> None:
    """Estimate what items, a uniform choice and an agent would have earned on a log."""
    with _explained() as console:
        with console.status(_LOADING):
            from halfseen.agent.agent import Agent
            from halfseen.tools.evaluate import evaluate
        with console.status("evaluating; long logs take minutes, Ctrl-C stops"):
            result = evaluate(
                log,
                [*(_words(always) or ()), "uniform", Agent()],
                item=item,
                propensity=propensity,
                reward=reward,
                context=_words(context) or (),
                offered=offered,
                adaptive=adaptive,
            )
        console.print(str(result), soft_wrap=True, markup=False)
        if figure is not None:
            result.plot().figure.savefig(figure, dpi=200)


@app.command()
def serve(
    storage: Annotated[
        str | None, typer.Argument(help="A file for SQLite, or postgresql://….")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the agent in the database.")] = None,
    id: Annotated[str | None, typer.Option(help="The column with item ids.")] = None,
    host: Annotated[
        str | None, typer.Option(help="Address to bind to; by default this machine.")
    ] = None,
    port: Annotated[int | None, typer.Option(help="By default 8000.")] = None,
    workers: Annotated[int | None, typer.Option(help="Processes; by default one.")] = None,
    uniform_share: Annotated[
        float | None, typer.Option(help="Share of random choices; by default .05.")
    ] = None,
    expire_after: Annotated[
        float | None,
        typer.Option(help="Seconds after which a missing reward counts as 0; by default 1800."),
    ] = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file of settings.")] = None,
) -> None:
    """Serve an agent: /rank, /reward, /health, /metrics, /log and a dashboard at /.

    Settings can also come from environment variables, such as HALFSEEN_API_KEY, or from the file
    given by --config (docs/web-page.md). Without an API key, the service only accepts connections
    from this machine.
    """
    flags = {key: value for key, value in locals().items() if key != "config"}
    with _explained(stderr=True):
        with from_extra("service"):
            from halfseen.service.serving import serve as run
            from halfseen.service.settings import Settings
        run(Settings.of(flags, file=config))


@app.command()
def page(folder: Folder = RESULTS) -> None:
    """Write index.html, one page for all studies in a folder, without running anything."""
    with _explained() as console:
        _write_page(folder, console)


@app.command()
def claims(
    folder: Folder = RESULTS,
    out: Annotated[Path, typer.Option("--out", "-o", help="The Markdown file to write.")] = Path(
        "claims.md"
    ),
) -> None:
    """Write all claims of the paper with their verdicts, from results on disk."""
    with _explained() as console:
        with console.status(_LOADING):
            from halfseen.paper.claims import write_claims
            from halfseen.report.report import counted
        texts = [counted(outcome, n) for outcome, n in write_claims(folder, out).items()]
        console.print(f"{', '.join(texts)}: {out}", markup=False)


@app.command()
def verify(
    name: Annotated[str, typer.Argument(help="A study with published results.")],
    seeds: Seeds = None,
    p: Probs = None,
    methods: Methods = None,
    jobs: Jobs = None,
    out: Out = None,
) -> None:
    """Compare a study with the published results; exit with 1 if they differ.

    Regrets per seed are compared cell by cell. Where only means over seeds are published, the
    regret in excess of the irreducible part and the chosen ranks are compared.
    """
    with _explained() as console:
        with console.status(_LOADING):
            from rich.markdown import Markdown

            from halfseen.paper import published
            from halfseen.paper.studies import study_named
            from halfseen.report.report import PUBLISHED, Report, render
        whole, cells = study_named(name), published.published(name)
        means = published.published_summary(name)
        if not cells and not means:
            raise StudyError(
                f"no results are published for {name!r}, neither per seed nor as means"
            )
        if not cells:  # means over other seeds cannot be compared
            listed = f"0:{max(mean.n for mean in means)}"
            if seeds not in (None, listed):
                raise StudyError(
                    f"--seeds must be left out: only means over {listed} are published, got {seeds}"
                )
            seeds = listed
        known = {key.method for key in cells} | {mean.method for mean in means}
        known |= {f"{key}{published.PUBLISHED_FORM}" for key in known}
        # The ranks of a method are compared where it has the published threshold.
        asked = [
            key
            for word in _words(methods) or whole.methods
            for key in (word, f"{word}{published.PUBLISHED_FORM}")
            if key in known and key in whole.methods
        ]
        if not asked:
            raise StudyError(f"methods must be among the published {sorted(known)}, got {methods}")
        study = _part_of(name, "paper", seeds, p, ",".join(dict.fromkeys(asked)))
        folder = _folder_for(name, "paper", out)
        results = _run(study, folder, console, jobs=jobs, write=False)
        comparison: SeedComparison | SummaryComparison
        if cells:
            comparison = published.compare_seeds(results)
            shown = Report(results=results, published=comparison.groups)
        else:
            comparison = published.compare_means(results)
            shown = Report(results=results, published_means=comparison)
        console.print(Markdown(render(PUBLISHED, report=shown)))
        for each in dict.fromkeys((each.method, each.p) for each in comparison.missing):
            console.print(f"[red]no result[/]: {each[0]}, p = {each[1]:g}")
        verdict = "agrees with the published results" if comparison.agrees else "DIFFERS"
        if cells and not any(group.telling for group in shown.published):
            verdict = f"has too few seeds: at least {published.FEWEST_SEEDS} are needed"
        console.print(f"[bold]{name} {verdict}[/]")
        if not comparison.agrees:
            raise typer.Exit(1)


# Parsing options


def parse_seeds(text: str) -> tuple[int, ...]:
    """Return seeds from a string such as "0:20" or "3,5,7".

    >>> parse_seeds("0:3"), parse_seeds("3,5")
    ((0, 1, 2), (3, 5))
    """
    try:
        first, colon, end = text.partition(":")
        listed: Sequence[int]
        listed = range(int(first or 0), int(end)) if colon else [int(x) for x in text.split(",")]
        # A range may be longer than memory.
        seeds = () if listed[_MOST_SEEDS:] else tuple(listed)
    except ValueError:
        seeds = ()
    if not seeds or min(seeds) < 0 or len(set(seeds)) < len(seeds):
        raise StudyError(
            "seeds must be at most a million distinct non-negative integers, such as 0:20 or 3,5, "
            f"got {text!r}"
        )
    return seeds


def parse_shard(text: str | None) -> tuple[int, int]:
    """Return which part of how many is meant; without a text the whole.

    >>> parse_shard("3/20"), parse_shard(None)
    ((3, 20), (1, 1))
    """
    place, _, n_shards = (text or "1/1").partition("/")
    if place.isdecimal() and n_shards.isdecimal() and 1 <= int(place) <= int(n_shards):
        return int(place), int(n_shards)
    raise StudyError(f"--shard must be a part of all, from 1/20 to 20/20, got {text!r}")


def parse_method(text: str) -> dict[str, dict[str, Any]]:
    """Return methods by key, each with what it changes and its settings.

    >>> parse_method("mine=tofu,subspace=Grouse,subspace.patience=5,burn_in=4")
    {'mine': {'method': 'tofu', 'subspace': {'rule': 'Grouse', 'patience': 5}, 'burn_in': 4}}
    """
    if "=" not in text:
        found = json.loads(Path(text).read_text("utf-8"))
        if not isinstance(found, dict) or not all(
            isinstance(each, dict) for each in found.values()
        ):
            raise InvalidSettingError(
                f"{text} must have an object of settings by key, got {found!r:.60}"
            )
        return found
    (key, base), *changes = (part.strip().partition("=")[::2] for part in text.split(","))
    settings: dict[str, Any] = {"method": base}
    for name, value in changes:
        outer, _, inner = name.partition(".")
        if inner:
            rule = settings.get(outer, {})
            settings[outer] = ({"rule": rule} if isinstance(rule, str) else rule) | {
                inner: _plain(value)
            }
        else:
            settings[name] = _plain(value)
    return {key: settings}


def _plain(text: str) -> Any:
    """Return the number, True, False or None that a word of JSON stands for, or the word."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _words(text: str | None) -> list[str] | None:
    """Return the parts of a comma-separated list."""
    return None if text is None else [part.strip() for part in text.split(",") if part.strip()]


def _numbers(text: str | None) -> list[float] | None:
    """Return the numbers of a comma-separated list."""
    try:
        return None if text is None else [float(part) for part in _words(text) or ()]
    except ValueError:
        raise StudyError(
            f"--p must be numbers separated by commas, such as .2,.3, got {text!r}"
        ) from None


def _part_of(
    name: str,
    scale: str,
    seeds: str | None,
    p: str | None,
    methods: str | None,
    own: dict[str, Any] | None = None,
) -> "Study":
    """Return the part of a study that the options ask for."""
    from halfseen.paper.studies import study_named

    study = study_named(name, scale)
    keys = _words(methods)
    if own:
        given: Any = dict.fromkeys(study.methods if keys is None else keys) | own
    else:
        given = keys
    return study.narrowed(
        seeds=None if seeds is None else parse_seeds(seeds),
        observe_probs=_numbers(p),
        methods=given,
    )


def _import_plugins(names: list[str] | None) -> None:
    from halfseen.simulation.simulate import load_plugin

    for name in names or ():
        load_plugin(name)


@contextmanager
def _explained(*, stderr: bool = False) -> Iterator[Console]:
    """Yield a console; an error of halfseen, files or memory becomes one line and exit code 2."""
    console = Console(stderr=stderr, highlight=False)
    try:
        yield console
    except (HalfseenError, OSError, MemoryError) as error:
        text = str(error) or "there is not enough memory"
        if isinstance(error, OSError) and error.filename:
            text = f"{error.strerror}: {error.filename}"
        console.print(f"[bold red]error:[/] {escape(text)}", soft_wrap=True)
        raise typer.Exit(2) from None


# Running and reporting


def _folder_for(name: str, scale: str, out: Path | None) -> Path:
    """Return where results go: a smoke run never overwrites those at full size."""
    if out is not None:
        return out
    return RESULTS / name if scale == "paper" else RESULTS / scale / name


def _workers(cluster: str | None, jobs: int | None) -> AbstractContextManager[None]:
    """Return what makes a Dask cluster run all cells, if there is one."""
    if cluster is None:
        return nullcontext()
    if jobs is not None:
        raise StudyError(f"--jobs must be left out: a cluster has its own workers, got {jobs}")
    from halfseen.simulation.cluster import connected

    return connected(cluster)


def _run(study: "Study", folder: Path, console: Console, **how: Any) -> "Results":
    """Run what is missing of a study with a progress bar, and write its tables.

    After Ctrl-C a message says how to continue; finished cells are kept.
    """
    from halfseen.paper.study import run_study
    from halfseen.simulation.store import Store

    console.print(f"[bold]{study.name}[/]: {escape(study.title)} ({study.n_cells} cells)")
    # Workers inherit it: one thread each, whatever BLAS they find.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    try:
        return run_study(study, Store(folder), progress=True, **how)
    except KeyboardInterrupt:
        console.print(
            f"interrupted: finished cells are kept in {escape(str(folder))}; the same command "
            "continues from there",
            soft_wrap=True,
        )
        raise typer.Exit(130) from None


def _show_report(report: "Report", console: Console) -> bool:
    """Write the report, print the table, and return whether all cells succeeded."""
    from rich.markdown import Markdown

    from halfseen.report.report import TABLE, render

    with console.status("drawing figures"):
        written = report.write()
    console.print(Markdown(render(TABLE, report=report)))
    if report.not_from_paper:
        console.print(f"not from the paper: {'; '.join(report.not_from_paper)}", markup=False)
    console.print(f"report: {written}", soft_wrap=True, markup=False)
    return _show_failures(report.results, report.folder, console)


def _show_failures(results: "Results", folder: Path, console: Console) -> bool:
    """Print how many cells failed, and return whether all succeeded."""
    failures = results.failures
    if failures:
        key, error = failures[0]
        example = f"{tuple(key)}: {error.strip().splitlines()[-1]}"
        console.print(
            f"[bold red]{len(failures)} of {len(results.per_seed)} cells failed[/], for example "
            f"{escape(example)}\ntracebacks: {escape(str(folder / 'failures.txt'))}",
            soft_wrap=True,
        )
    return not failures


def _write_page(home: Path, console: Console) -> None:
    """Write the page over all studies whose results lie in a folder, and say where it is."""
    from halfseen.paper.studies import ORDER, report_on
    from halfseen.report.report import write_page

    with console.status("writing the page"):
        written = write_page(home, report_on, ORDER)
    console.print(f"all studies: {written}", soft_wrap=True, markup=False)
