"""Slate and Decision: what callers give to a policy and get from it."""

from halfseen.values.decision import Choice, Decision, Item, Note, Scores
from halfseen.values.slate import (
    LARGEST,
    LARGEST_ITEM,
    LARGEST_POINT,
    SMALLEST,
    BoolArray,
    FloatArray,
    Slate,
)

__all__ = [
    "LARGEST",
    "LARGEST_ITEM",
    "LARGEST_POINT",
    "SMALLEST",
    "BoolArray",
    "Choice",
    "Decision",
    "FloatArray",
    "Item",
    "Note",
    "Scores",
    "Slate",
]
