"""Measurements: what is fast, against what."""
