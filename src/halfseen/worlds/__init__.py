"""What is offered and what it pays.

Importing this package registers every world and every mask law that ships with it.
"""

from halfseen.worlds import context_worlds, lowrank, public_tables, recorded

__all__ = ["context_worlds", "lowrank", "public_tables", "recorded"]
