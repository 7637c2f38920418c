"""How often a policy gave up on low rank and played zero-filled OFUL instead."""

from halfseen.report.data import Point, Results, points_of
from halfseen.report.look import label_of
from halfseen.report.table import markdown_cell
from halfseen.simulation.tables import Mean, mean_of
from halfseen.studies.spec import Study

_TOLD = "fallback_rounds"
_RARE = 0.01
_MEANING = (
    "Where low rank does not help to predict rewards, latent UCB plays zero-filled OFUL. The "
    "share of rounds in which it did, mean ± standard error over seeds:"
)


def fallback_share(results: Results, point: Point, method: str) -> Mean:
    """Return in which share of the rounds the fallback played; None where nobody tells it."""
    told, horizon = results.told(point, method, _TOLD), results.horizon(point, method)
    if told.empty or horizon is None:
        return Mean(None, None)
    return mean_of((told[0] / horizon).tolist())


def fallback_section(study: Study, results: Results) -> str:
    """Return what the page says about it, empty where no policy tells.

    Places in which it played in less than one round of a hundred are told in one line.
    """
    lines, n_rare = [], 0
    for point in points_of(study):
        for method in study.settings[point.setting].methods:
            mean, error = fallback_share(results, point, method)
            if mean is None:
                continue
            if mean < _RARE:
                n_rare += 1
                continue
            told = f"{100 * mean:.1f}" + ("" if error is None else f" ± {100 * error:.1f}")
            names = f"{markdown_cell(str(point))} | {markdown_cell(label_of(method))}"
            lines.append(f"| {names} | {told} % |")
    if not lines and not n_rare:
        return ""
    n_places = n_rare + len(lines)
    rare = f"In {n_rare} of {n_places} places (a method at a point) it did so in less than 1 %."
    heads = ["| where | method | share of rounds |", "| --- | --- | ---: |"]
    return "\n".join([_MEANING, "", *((*heads, *lines, "") if lines else ()), rare])
