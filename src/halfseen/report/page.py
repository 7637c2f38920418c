"""The report of a study: one page with figures, table, published values and verdicts."""

from pathlib import Path

import pandas as pd

from halfseen.report.beside import compare, published_for
from halfseen.report.beside_summary import summaries_for, summary_beside
from halfseen.report.claims import as_frame, verdicts_on
from halfseen.report.comparisons import comparison_files, write_comparisons
from halfseen.report.data import Point, Results
from halfseen.report.excess import excess_section, write_excess
from halfseen.report.fallback import fallback_section
from halfseen.report.figures import Drawn, write_figures
from halfseen.report.look import label_of
from halfseen.report.paper import not_from_paper, reproduces_paper
from halfseen.report.table import (
    final_table,
    latex_table,
    markdown_cell,
    markdown_table,
)
from halfseen.report.truth import share_seen
from halfseen.report.verdicts import OUTCOMES, RULE, Verdict, said
from halfseen.simulation.tables import Mean
from halfseen.studies.spec import Study

_FILES = {
    "per_seed.csv": "final regret and rank of every cell",
    "summary.csv": "means and standard errors",
    "trajectories.csv.gz": "regret and rank over rounds",
    "diagnostics.csv": "what policies tell of their runs",
    "claims.csv": "the claims with their verdicts",
    "excess.csv": "final regret above what nobody can avoid",
    "skipped.csv": "cells that took too long",
    "table.tex": "the table of final regrets for LaTeX",
    "manifest.json": "what was run, with versions",
}
_MOST_FAILURES = 20


def write_report(study: Study, folder: str | Path, published: pd.DataFrame | None = None) -> Path:
    """Draw the figures of a run, check its claims, and write one page about it.

    Parameters
    ----------
    study : Study
        What was run, or a part of it.
    folder : path
        Holds the tables of the run; figures, `table.tex`, `claims.csv`, `report.md`, perhaps
        `excess.csv` and a file per comparison join them.
    published : DataFrame, optional
        Published regrets: columns setting, p, method, seed, final_regret and kind ("exact" or
        "statistical"). By default those that ship with the package.

    Returns
    -------
    page : Path

    Raises
    ------
    StoreError
        A table is missing or damaged.
    StudyError
        What the study says about its figures, claims or comparisons is wrong.
    """
    results = Results.load(folder)
    verdicts = verdicts_on(study, results)
    drawn = write_figures(study, results)
    table = final_table(study, results)
    beside = compare(results, published_for(study) if published is None else published)
    (results.folder / "table.tex").write_text(latex_table(table), encoding="utf-8")
    as_frame(verdicts).to_csv(results.folder / "claims.csv", index=False, lineterminator="\n")
    sections = {
        "Final regret": markdown_table(table) if table.cells else "Nothing was run.",
        "Excess over what nobody can avoid": excess_section(
            study, results, write_excess(study, results)
        ),
        "Compared seed by seed": write_comparisons(study, results),
        "How often the fallback played": fallback_section(study, results),
        "Published beside ours": _published(study, results, beside),
        "Notes": "\n".join(f"- {note}" for note in study.notes),
        "Failed cells": _failures(results),
        "Skipped cells": _skipped(results.folder / "skipped.csv"),
        "Files": _files(study, results.folder),
    }
    head = [f"# {study.title}", _what_was_run(study, results), _claims(verdicts), _figures(drawn)]
    parts = [*head, *(_section(title, body) for title, body in sections.items())]
    page = results.folder / "report.md"
    page.write_text("\n\n".join(part for part in parts if part) + "\n", encoding="utf-8")
    return page


def _published(study: Study, results: Results, beside: pd.DataFrame) -> str:
    means = summary_beside(results, summaries_for(study))
    return "\n\n".join(part for part in (_beside(beside), means) if part)


def _section(title: str, body: str) -> str:
    return f"## {title}\n\n{body}" if body else ""


def _what_was_run(study: Study, results: Results) -> str:
    manifest, per_seed = results.manifest, results.per_seed
    seeds = sorted(per_seed["seed"].unique().tolist())
    kinds = {str(setting.world.get("kind")) for setting in study.settings.values()}
    share = share_seen(study)
    skipped = int((per_seed["status"] == "skipped").sum())
    scale = manifest.get("scale")
    told = scale is not None and (scale != "paper" or reproduces_paper(study))
    lines = [
        f"- study: `{study.name}`" + (f", at {scale} scale" if told else ""),
        f"- seeds: {_ranges(seeds)}; settings: {len(study.settings)} ({', '.join(study.settings)})",
        f"- worlds: {', '.join(sorted(kinds))}" + (f"; {share}" if share else ""),
        f"- cells: {len(per_seed)}, failed: {int((per_seed['status'] == 'failed').sum())}"
        + (f", skipped: {skipped}" if skipped else ""),
    ]
    outside = not_from_paper(study)
    if outside:
        lines.append(f"- not from the paper: {'; '.join(outside)}")
    if "seconds" in manifest:
        lines.append(
            f"- duration: {manifest['seconds']} s for the {manifest.get('cells_run_now', '?')} "
            "cells that the last run had left to do"
        )
    versions = manifest.get("versions")
    if isinstance(versions, dict):
        told = ", ".join(f"{name} {version}" for name, version in versions.items())
        lines.append(f"- versions: {told}")
    return "\n".join(lines)


def _ranges(seeds: list[int]) -> str:
    """Return integers with runs in short.

    >>> _ranges([0, 1, 2, 7])
    '0–2, 7'
    """
    runs: list[list[int]] = []
    for seed in seeds:
        if runs and seed == runs[-1][1] + 1:
            runs[-1][1] = seed
        else:
            runs.append([seed, seed])
    return ", ".join(str(low) if low == high else f"{low}–{high}" for low, high in runs)


def _claims(verdicts: list[Verdict]) -> str:
    if not verdicts:
        return ""
    counts = {outcome: sum(v.outcome == outcome for v in verdicts) for outcome in OUTCOMES}
    told = ", ".join(f"{outcome} {count}" for outcome, count in counts.items() if count)
    lines = ["| claim | verdict | numbers |", "| --- | --- | --- |"]
    for verdict in verdicts:
        text, numbers = markdown_cell(verdict.text), markdown_cell(verdict.numbers)
        lines.append(f"| {text} | **{verdict.outcome}** | {numbers} |")
    return _section(f"Claims ({told})", "\n".join([*lines, "", RULE]))


def _figures(drawn: list[Drawn]) -> str:
    parts = []
    for spec, png, note in drawn:
        if png is None:
            parts.append(f"Not drawn: `{spec.label}`, because {note}.")
            continue
        caption = spec.caption or spec.label
        told = f" ({note})" if note else ""
        parts.append(
            f"![{caption}]({png.name})\n\n*`{spec.label}`: {caption}{told}. "
            f"[SVG]({png.with_suffix('.svg').name})*"
        )
    bands = "Bands and bars are one standard error over seeds, unless a caption says otherwise."
    return _section("Figures", "\n\n".join([bands, *parts])) if parts else ""


def _beside(beside: pd.DataFrame) -> str:
    if beside.empty:
        return ""
    lines = [
        "| setting | p | method | seeds | published | ours | deviation |",
        "| --- | ---: | --- | ---: | ---: | ---: | ---: |",
    ]
    for row in beside.itertuples(index=False):
        point = Point(row.setting, None if pd.isna(row.p) else row.p)
        theirs = said(_mean(row.published_mean, row.published_se), digits=4)
        ours = said(_mean(row.our_mean, row.our_se), digits=4)
        exact = row.kind == "exact"
        deviation = f"{row.deviation:.1e}" if exact else _in_errors(row.deviation)
        p = "" if point.p is None else f"{point.p:g}"
        lines.append(
            f"| {markdown_cell(point.setting)} | {p} | {markdown_cell(label_of(row.method))} "
            f"| {row.n} | {theirs} | {ours} | {deviation} |"
        )
    meaning = (
        "Over the seeds that both have. Where nothing in the policy is random, the deviation is "
        "the largest of any seed; elsewhere it is the mean difference in standard errors (SE) of "
        "the paired difference."
    )
    return "\n".join([meaning, "", *lines])


def _in_errors(deviation: float) -> str:
    return "–" if pd.isna(deviation) else f"{deviation:+.1f} SE".replace("-", "−")


def _mean(mean: float, error: float) -> Mean:
    return Mean(mean, None if pd.isna(error) else error)


def _failures(results: Results) -> str:
    failed = results.per_seed[results.per_seed["status"] == "failed"]
    if failed.empty:
        return ""
    lines = []
    for row in failed.head(_MOST_FAILURES).itertuples(index=False):
        point = Point(row.setting, None if pd.isna(row.p) else row.p)
        lines.append(f"- {label_of(row.method)}, {point}, seed {row.seed}")
    if len(failed) > _MOST_FAILURES:
        lines.append(f"- and {len(failed) - _MOST_FAILURES} more")
    if (results.folder / "failures.txt").exists():
        lines.append("\nTracebacks: [failures.txt](failures.txt)")
    return "\n".join(lines)


def _skipped(path: Path) -> str:
    if not path.exists():
        return ""
    frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    lines = ["Runs that were stopped, because they took longer than the study gives them:", ""]
    for key, group in frame.groupby(["setting", "p", "method"], sort=False):
        setting, p, method = key
        point = Point(setting, float(p) if p else None)
        seeds = _ranges(sorted(int(seed) for seed in group["seed"]))
        note = group["note"].iloc[0]
        told = f" ({note})" if note else ""
        lines.append(f"- {label_of(method)}, {point}, seeds {seeds}{told}")
    return "\n".join(lines)


def _files(study: Study, folder: Path) -> str:
    found = {name: what for name, what in _FILES.items() if (folder / name).exists()}
    found |= comparison_files(study, folder)
    return "\n".join(f"- [{name}]({name}): {what}" for name, what in found.items())
