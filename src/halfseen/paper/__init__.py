"""What belongs to the paper alone; importing this package registers its worlds and measures.

Examples
--------
>>> from halfseen import paper
>>> paper.HardInstanceWorld(n_arms=5, horizon=3).realize(seed=0).facts.rank
3
"""

from halfseen.paper.digits import DigitsWorld
from halfseen.paper.hard_instance import HardInstanceWorld
from halfseen.paper.measures_runs import algorithm_1_run, freezing, premises
from halfseen.paper.measures_subspace import (
    coverage,
    excitation,
    gram,
    representation,
    subspace_error,
)
from halfseen.paper.product_context import ProductContextWorld
from halfseen.simulation.methods import MEASURES

__all__ = ["DigitsWorld", "HardInstanceWorld", "ProductContextWorld", "premises"]

MEASURES.update(
    {
        "algorithm-1": algorithm_1_run,
        "coverage": coverage,
        "excitation": excitation,
        "freezing": freezing,
        "gram": gram,
        "representation": representation,
        "subspace-error": subspace_error,
    }
)
