"""What is offered and what it pays: one world per module.

Importing this package registers every world and every mask law that ships with it.
"""

from halfseen.worlds import (
    bilinear,
    digits,
    disjoint_arms,
    hard_instance,
    irrelevant_context,
    labels,
    lowrank,
    mask_laws,
    product_context,
    real_table,
    table,
)

__all__ = [
    "bilinear",
    "digits",
    "disjoint_arms",
    "hard_instance",
    "irrelevant_context",
    "labels",
    "lowrank",
    "mask_laws",
    "product_context",
    "real_table",
    "table",
]
