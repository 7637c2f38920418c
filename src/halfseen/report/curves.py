"""Regret over rounds of a simulation, without a study."""

import numpy as np
from matplotlib.figure import Figure

from halfseen.errors import InvalidInputError
from halfseen.report.data import Point
from halfseen.report.figures import grid_of, share_legend
from halfseen.report.look import house_style, look_of
from halfseen.report.panels import Curve, draw_bands, set_regret_axis
from halfseen.simulation.tables import Row, Tables

_WIDTH, _HEIGHT, _NARROWEST = 3.5, 2.9, 5.0  # inches


def regret_figure(tables: Tables) -> Figure:
    """Return a figure with a panel per setting and observation probability.

    Raises
    ------
    InvalidInputError
        No cell has a regret.
    """
    panels: dict[Point, dict[str, list[Row]]] = {}
    for row in tables.trajectories:
        methods = panels.setdefault(Point(row["setting"], row["p"]), {})
        methods.setdefault(row["method"], []).append(row)
    if not panels:
        raise InvalidInputError("there is nothing to draw: no cell of these tables has a regret")
    n_rows, n_columns = grid_of(len(panels))
    with house_style():
        figure = Figure(
            (max(_WIDTH * n_columns, _NARROWEST), _HEIGHT * n_rows), layout="constrained"
        )
        for at, (point, methods) in enumerate(panels.items(), start=1):
            axes = figure.add_subplot(n_rows, n_columns, at)
            draw_bands(axes, [_curve(method, rows) for method, rows in methods.items()])
            axes.set(xlabel="round", ylabel="cumulative regret", title=str(point))
            set_regret_axis(axes, log=False)
            axes.margins(x=0.01)
        share_legend(figure)
        for text in figure.legends[0].get_texts():
            text.set_parse_math(False)  # a dollar in a name is a dollar
    return figure


def _curve(method: str, rows: list[Row]) -> Curve:
    found = [(row["round"], row["mean_regret"], row["se_regret"] or 0.0) for row in rows]
    rounds, mean, error = np.array(found, dtype=float).T
    return Curve(look_of(method), rounds, mean, error)
