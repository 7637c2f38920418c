"""What is offered and what it pays: one world per module.

Importing this package registers every world and every mask law that ships with it.
"""

from halfseen.worlds import (
    digits,
    hard_instance,
    lowrank,
    mask_laws,
    product_context,
    real_table,
    table,
)

__all__ = [
    "digits",
    "hard_instance",
    "lowrank",
    "mask_laws",
    "product_context",
    "real_table",
    "table",
]
