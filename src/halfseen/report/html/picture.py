"""A picture of what "half seen" means: the arithmetic of the package on a few made-up arms."""

import html
import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_DIM, _CELL, _GAP = 10, 20, 2
_MIX = np.array([[1.0, 0.2], [-0.5, 0.9], [0.3, -1.0], [-0.9, -0.5], [0.7, 0.8], [0.1, 0.9]])
_SEEN = ("x..x.xx..x", ".x.xx...x.", "xx...x..xx", "..xx.x.x..", "x.x...xx.x", ".xx..x..x.")
_POSITIVE, _NEGATIVE = (0, 114, 178), (213, 94, 0)
_HIDDEN = "hidden"


def half_seen_picture() -> str:
    """Return four small pictures, side by side or below each other, as HTML with inline SVG.

    Arms are rows of cells, of which most are hidden; the patterns that all arms mix are known; the
    hidden cells are then really found from the seen ones, by least squares.
    """
    patterns = _patterns()
    arms = _MIX @ patterns
    seen = np.array([[mark == "x" for mark in row] for row in _SEEN])
    largest = float(np.abs(arms).max())
    steps = [
        ("What the options are", "Each row is an option, each cell a feature.", arms, None),
        ("What you see", "Most cells are hidden, others in every row.", arms, seen),
        ("What they share", "All rows mix a few patterns; many rows tell which.", patterns, None),
        ("What you can fill in", "Patterns and seen cells give the rest.", None, seen),
    ]
    filled = np.array([_filled(arm, mask, patterns) for arm, mask in zip(arms, seen, strict=True)])
    parts = []
    for number, (title, words, values, mask) in enumerate(steps, start=1):
        drawn = _grid(filled if values is None else values, mask, largest, guess=values is None)
        parts.append(
            f'<figure class="step"><div class="cells">{_svg(drawn, title, values)}</div>'
            f"<figcaption><strong>{number}. {html.escape(title)}</strong> "
            f"{html.escape(words)}</figcaption></figure>"
        )
    return '<div class="steps">' + "".join(parts) + "</div>"


def _patterns() -> Array:
    """Return two patterns over the features; shape (2, dim)."""
    at = np.arange(_DIM)
    return np.array([np.cos(1.1 * at), np.sin(0.6 * at + 0.5)])


def _filled(arm: Array, mask: NDArray[np.bool_], patterns: Array) -> Array:
    """Return an arm (dim,) whose hidden entries come from the seen ones and the patterns."""
    mix = np.linalg.lstsq(patterns[:, mask].T, arm[mask], rcond=None)[0]
    return np.where(mask, arm, mix @ patterns)


def _grid(values: Array, seen: NDArray[np.bool_] | None, largest: float, *, guess: bool) -> str:
    cells = []
    for row, column in np.ndindex(values.shape):
        x, y = column * (_CELL + _GAP), row * (_CELL + _GAP)
        place = f'x="{x + 1}" y="{y + 1}" width="{_CELL}" height="{_CELL}" rx="3"'
        color = _color(float(values[row, column]) / largest)
        if seen is None or seen[row, column]:
            cells.append(f'<rect {place} fill="{color}"/>')
        elif guess:
            cells.append(f'<rect {place} class="guess" fill="{color}"/>')
        else:
            middle = f'x="{x + 1 + _CELL / 2:g}" y="{y + 1 + _CELL * 0.7:g}"'
            cells.append(f'<rect {place} class="{_HIDDEN}"/><text {middle}>?</text>')
    return "".join(cells)


def _svg(cells: str, title: str, values: Array | None) -> str:
    n_rows = len(_MIX) if values is None else len(values)
    width, height = _DIM * (_CELL + _GAP), n_rows * (_CELL + _GAP)
    label = html.escape(f"{title}: {n_rows} rows of {_DIM} cells", quote=True)
    return f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{label}">{cells}</svg>'


def _color(size: float) -> str:
    """Return blue for positive, orange for negative, paler towards zero."""
    end = _POSITIVE if size >= 0 else _NEGATIVE
    share = 0.12 + 0.88 * math.sqrt(min(abs(size), 1.0))
    return "#" + "".join(f"{round(255 + (part - 255) * share):02x}" for part in end)
