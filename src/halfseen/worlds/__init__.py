"""What is offered and what it pays: one world per file.

Importing this package registers every world that ships with it.
"""

from halfseen.worlds import lowrank

__all__ = ["lowrank"]
