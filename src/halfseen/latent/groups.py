"""Names of the groups of columns in the reward model, and of blocks, which share a prior scale."""

from collections.abc import Mapping

LATENT, FILLED, MASK = "latent", "filled", "mask"
ROW_GROUPS = (LATENT, FILLED, MASK)
"""Of a row: E[z], the filled row, and its mask."""

ITEM, CONTEXT = "item", "context"
ALL_GROUPS = (*ROW_GROUPS, ITEM, CONTEXT)
"""What a policy may be told to use: of arms, effects of items, and all that a context adds."""

CONTEXT_GROUPS = {LATENT: "context-latent", FILLED: "context-filled", MASK: "context-mask"}
"""The groups of the context's columns: the same for all arms of a round."""

CROSSED = "crossed"
"""The group of the products of the arm's columns with those of the context."""

BY_ITEM = {LATENT: "item-latent", FILLED: "item-filled", MASK: "item-mask"}
"""The groups of the context's columns whose coefficients differ by item."""

CENTRES: Mapping[str, float] = {
    LATENT: 0.0,
    FILLED: 0.0,
    MASK: -1.0,
    ITEM: 0.0,
    CONTEXT_GROUPS[LATENT]: -1.0,
    CONTEXT_GROUPS[FILLED]: -1.0,
    CONTEXT_GROUPS[MASK]: -2.0,
    CROSSED: -1.0,
    BY_ITEM[LATENT]: 0.0,
    BY_ITEM[FILLED]: 0.0,
    BY_ITEM[MASK]: -1.0,
}
"""Centre of the prior of each group's log τ."""


def group_of(block: str) -> str:
    """Return the group of a block: "filled" for "filled 3", the category of first level 3."""
    return block.split(" ")[0]
