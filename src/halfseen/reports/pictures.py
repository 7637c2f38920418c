"""Pictures inside the page: small versions of figures, and what "half seen" means."""

import base64
import io
import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

WIDEST = 1120
"""Pixels: wider figures are made smaller."""

_COLORS = 64  # enough for lines and their smoothed edges
_DIM, _CELL, _GAP = 10, 20, 2
_MIX = np.array([[1.0, 0.2], [-0.5, 0.9], [0.3, -1.0], [-0.9, -0.5], [0.7, 0.8], [0.1, 0.9]])
_SEEN = ("x..x.xx..x", ".x.xx...x.", "xx...x..xx", "..xx.x.x..", "x.x...xx.x", ".xx..x..x.")
_POSITIVE, _NEGATIVE = (0, 114, 178), (213, 94, 0)


class Cell(NamedTuple):
    """A square of a picture; its kind is "seen", "hidden" or "guess"."""

    x: int
    y: int
    color: str
    kind: str


class Step(NamedTuple):
    """One of the pictures: arms as rows of cells."""

    title: str
    words: str
    n_rows: int
    n_columns: int
    size: int  # of a cell
    width: int
    height: int
    cells: list[Cell]


def data_uri(png: Path) -> str:
    """Return a picture as a data URI, with few colours so that it stays small."""
    from PIL import Image

    with Image.open(png) as opened:
        picture = Image.new("RGB", opened.size, "white")
        rgba = opened.convert("RGBA")
        picture.paste(rgba, mask=rgba.getchannel("A"))
    if picture.width > WIDEST:
        height = round(picture.height * WIDEST / picture.width)
        picture = picture.resize((WIDEST, height), Image.Resampling.LANCZOS)
    few = picture.quantize(_COLORS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    buffer = io.BytesIO()
    few.save(buffer, format="PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


def half_seen_steps() -> list[Step]:
    """Return four small pictures of how hidden features are found, on a few made-up arms.

    Arms are rows of cells, of which most are hidden; the patterns that all arms mix are known; the
    hidden cells are then really found from the seen ones, by least squares.
    """
    patterns = _patterns()
    arms = _MIX @ patterns
    seen = np.array([[mark == "x" for mark in row] for row in _SEEN])
    filled = np.array([_filled(arm, mask, patterns) for arm, mask in zip(arms, seen, strict=True)])
    largest = float(np.abs(arms).max())

    def step(title: str, words: str, values: Array, hidden: str = "") -> Step:
        mask = seen if hidden else np.ones(values.shape, dtype=bool)
        return _step(title, words, values / largest, mask, hidden)

    return [
        step("What the options are", "Each row is an option, each cell a feature.", arms),
        step("What you see", "Most cells are hidden, different ones in every row.", arms, "hidden"),
        step("What they share", "All rows mix a few patterns; many rows show which.", patterns),
        step("What you can fill in", "Patterns and seen cells give the rest.", filled, "guess"),
    ]


def _step(title: str, words: str, values: Array, seen: NDArray[np.bool_], other: str) -> Step:
    """Return a picture of values in [−1, 1]; `other` is the kind of cells that are not seen."""
    n_rows, n_columns = values.shape
    pitch = _CELL + _GAP
    cells = [
        Cell(
            column * pitch + 1,
            row * pitch + 1,
            _color(float(values[row, column])),
            "seen" if seen[row, column] else other,
        )
        for row, column in np.ndindex(values.shape)
    ]
    return Step(title, words, n_rows, n_columns, _CELL, n_columns * pitch, n_rows * pitch, cells)


def _patterns() -> Array:
    """Return two patterns over the features; shape (2, dim)."""
    at = np.arange(_DIM)
    return np.array([np.cos(1.1 * at), np.sin(0.6 * at + 0.5)])


def _filled(arm: Array, mask: NDArray[np.bool_], patterns: Array) -> Array:
    """Return an arm (dim,) whose hidden entries come from the seen ones and the patterns."""
    mix = np.linalg.lstsq(patterns[:, mask].T, arm[mask], rcond=None)[0]
    return np.where(mask, arm, mix @ patterns)


def _color(size: float) -> str:
    """Return blue for positive, orange for negative, paler towards zero."""
    end = _POSITIVE if size >= 0 else _NEGATIVE
    share = 0.12 + 0.88 * math.sqrt(min(abs(size), 1.0))
    return "#" + "".join(f"{round(255 + (part - 255) * share):02x}" for part in end)
