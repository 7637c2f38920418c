"""Frames, dictionaries and arrays as slates: names decide, and new columns and levels enter."""

from halfseen.frames.cells import Labels
from halfseen.frames.encoder import Column, Encoded, Encoder, EncoderField, ids_alone
from halfseen.frames.reading import Reader, Rows

__all__ = ["Column", "Encoded", "Encoder", "EncoderField", "Labels", "Reader", "Rows", "ids_alone"]
