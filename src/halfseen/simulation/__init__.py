"""Policies in worlds: who plays, on what, and how much it costs."""
