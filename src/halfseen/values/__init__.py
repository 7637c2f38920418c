"""Slate and Decision: what callers give to a policy and get from it."""

from halfseen.values.arrays import (
    LARGEST,
    LARGEST_ITEM,
    LARGEST_POINT,
    SMALLEST,
    BoolArray,
    FloatArray,
    is_plain_table,
)
from halfseen.values.decision import Choice, Decision, Item, Note, Scores
from halfseen.values.slate import Slate, checked_context

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
    "checked_context",
    "is_plain_table",
]
