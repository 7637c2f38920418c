"""Frames, dictionaries and arrays as slates: names decide, and new columns and levels enter."""

from halfseen.frames.columns import Column
from halfseen.frames.encoder import Encoded, Encoder
from halfseen.frames.reading import Reader
from halfseen.frames.rows import Item, Rows

__all__ = ["Column", "Encoded", "Encoder", "Item", "Reader", "Rows"]
