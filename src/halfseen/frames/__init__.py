"""Frames, dictionaries and arrays as slates: names decide, and new columns and levels enter."""

from halfseen.frames.encoder import Column, Encoded, Encoder, EncoderField, ids_alone
from halfseen.frames.reading import Labels, Reader, Rows

__all__ = ["Column", "Encoded", "Encoder", "EncoderField", "Labels", "Reader", "Rows", "ids_alone"]
