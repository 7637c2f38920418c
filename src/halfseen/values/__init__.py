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
from halfseen.values.decision import Decision, chances
from halfseen.values.slate import Slate, checked_context

__all__ = [
    "LARGEST",
    "LARGEST_ITEM",
    "LARGEST_POINT",
    "SMALLEST",
    "BoolArray",
    "Decision",
    "FloatArray",
    "Slate",
    "chances",
    "checked_context",
    "is_plain_table",
]
