"""What is offered and what it pays: one world per file.

Importing this package registers every world and every mask law that ships with it.
"""

from halfseen.worlds import hard_instance, lowrank, mask_laws, table

__all__ = ["hard_instance", "lowrank", "mask_laws", "table"]
