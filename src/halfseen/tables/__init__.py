"""Frames, dictionaries and arrays as slates: names decide, and new columns and levels enter."""

from halfseen.tables.columns import Column
from halfseen.tables.encoder import Encoded, Encoder
from halfseen.tables.reading import Reader
from halfseen.tables.rows import Item, Rows

__all__ = ["Column", "Encoded", "Encoder", "Item", "Reader", "Rows"]
