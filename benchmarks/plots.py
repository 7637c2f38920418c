"""Plots of the report, as PNG."""

import itertools
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter, NullFormatter

from benchmarks.growth import Growth
from benchmarks.peers.contest import WORLD, Standing
from benchmarks.rounds import Outcome
from benchmarks.service import Service

FOLDER = Path(__file__).parent / "plots"
_OURS, _OTHERS, _FLOOR = "#0072B2", "#7f7f7f", "#E69F00"
_STYLE = {
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.constrained_layout.use": True,
    "font.size": 9,
    "savefig.dpi": 150,
}


def draw_growth(growth: Growth) -> Path:
    with plt.rc_context(_STYLE):
        figure, (total, each) = plt.subplots(1, 2, figsize=(8, 3.2))
        total.loglog(growth.rounds, growth.seconds, "o-", color=_OURS, label="measured")
        line = [growth.seconds[-1] * n / growth.rounds[-1] for n in growth.rounds]
        total.loglog(growth.rounds, line, "--", color=_OTHERS, label="linear")
        total.set(xlabel="rounds", ylabel="seconds", title=f"Whole run (slope {growth.slope:.2f})")
        total.legend(frameon=False)
        each.semilogx(growth.rounds, growth.microseconds, "o-", color=_OURS)
        each.set(xlabel="rounds so far", ylabel="µs", title="A round inside an epoch")
        each.set_ylim(0, 1.5 * max(growth.microseconds))
        return _save(figure, "growth")


def draw_contest(standings: list[Standing]) -> Path:
    """Draw time and regret of everybody who played, a row each; further left is better."""
    shown = [each for each in standings if not each.error]
    shown.sort(key=lambda each: -each.time.median)
    with plt.rc_context(_STYLE):
        size = (9, 1.2 + 0.28 * len(shown))
        figure, (times, regrets) = plt.subplots(1, 2, figsize=size, sharey=True)
        for row, each in enumerate(shown):
            colour = _OURS if each.ours else _OTHERS
            low, median, high = each.time
            times.plot([low, high], [row, row], color=colour)
            times.plot(median, row, "o", color=colour)
            if each.finished:
                regrets.plot(sum(each.regrets) / len(each.regrets), row, "o", color=colour)
                regrets.plot(each.regrets, [row] * len(each.regrets), "|", color=colour)
        sees = {"all": "sees all", "some": "sees 30 %"}
        names = [f"{each.title.replace('**', '')}, {sees[each.sees]}" for each in shown]
        times.set_yticks(range(len(shown)), names)
        times.set(xscale="log", xlabel="µs per round, choose + learn")
        regrets.set(xscale="log", xlabel=f"regret of {WORLD.horizon} rounds (dot: mean)")
        for axes in (times, regrets):
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
            axes.xaxis.set_minor_formatter(NullFormatter())
            axes.grid(axis="y", alpha=0.3)
        return _save(figure, "peers")


def draw_floors(outcomes: list[Outcome]) -> Path:
    with plt.rc_context(_STYLE):
        figure, axes = plt.subplots(figsize=(8, 3.2))
        names = [str(outcome.case.size) for outcome in outcomes]
        for n, outcome in enumerate(outcomes):
            pairs = ((outcome.mean.other, _FLOOR, -0.2), (outcome.mean.ours, _OURS, 0.2))
            for quartiles, colour, shift in pairs:
                low, median, high = quartiles
                spread = [[median - low], [high - median]]
                axes.bar(n + shift, median, 0.36, color=colour, yerr=spread, ecolor="#333333")
                axes.annotate(
                    f"{median:.3g} µs", (n + shift, high), ha="center", va="bottom", fontsize=8
                )
        axes.set_xticks(range(len(names)), names)
        axes.set(yscale="log", xlabel="dim, rank, arms", ylabel="µs per round")
        axes.margins(y=0.15)
        handles = [plt.Rectangle((0, 0), 1, 1, color=colour) for colour in (_FLOOR, _OURS)]
        axes.legend(handles, ["floor", "TofuPov in an epoch"], frameon=False, loc="upper left")
        return _save(figure, "floors")


def draw_service(found: list[Service]) -> Path:
    """Draw the median and the slowest round of each stretch of rounds, of the longest runs."""
    longest = max(each.case.n_rounds for each in found)
    shown = [each for each in found if each.case.n_rounds == longest]
    with plt.rc_context(_STYLE):
        size = (3 * len(shown), 3.2)
        figure, panels = plt.subplots(1, len(shown), figsize=size, sharey=True, squeeze=False)
        for axes, each in zip(panels[0], shown, strict=True):
            edges = np.unique(np.geomspace(100, longest, 40).astype(int))
            parts = [each.seconds[a:b] for a, b in itertools.pairwise(edges)]
            axes.loglog(edges[1:], [1e3 * part.max() for part in parts], color=_FLOOR)
            axes.loglog(edges[1:], [1e3 * np.median(part) for part in parts], color=_OURS)
            axes.set(title=each.case.title, xlabel="round")
        panels[0, 0].set(ylabel="ms per round")
        lines = panels[0, -1].get_lines()
        panels[0, -1].legend(lines, ["slowest", "median"], frameon=False)
        return _save(figure, "service")


def _save(figure, name: str) -> Path:
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{name}.png"
    # Without the library's version and the date, equal numbers give equal bytes.
    figure.savefig(path, metadata={"Software": None})
    plt.close(figure)
    return path
