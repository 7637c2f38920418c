"""Slate and Decision: what callers give to a policy and get from it."""

from halfseen.values.decision import Choice as Choice
from halfseen.values.decision import Decision as Decision
from halfseen.values.decision import Item as Item
from halfseen.values.decision import Note as Note
from halfseen.values.decision import Scores as Scores
from halfseen.values.slate import LARGEST as LARGEST
from halfseen.values.slate import LARGEST_ITEM as LARGEST_ITEM
from halfseen.values.slate import LARGEST_POINT as LARGEST_POINT
from halfseen.values.slate import SMALLEST as SMALLEST
from halfseen.values.slate import BoolArray as BoolArray
from halfseen.values.slate import FloatArray as FloatArray
from halfseen.values.slate import Slate as Slate
