"""What belongs to the paper alone; importing it registers its worlds, policies and measures.

Examples
--------
>>> from halfseen import paper
>>> paper.HardInstanceWorld(n_arms=5, horizon=3).realize(seed=0).facts.rank
3
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halfseen.paper.digits import DigitsWorld
from halfseen.paper.hard_instance import HardInstanceWorld, SignSeeker, wait_for_sign
from halfseen.paper.measures import coverage, excitation, gram, representation
from halfseen.paper.product_context import ProductContextWorld
from halfseen.paper.pslb import Pslb
from halfseen.paper.reestimation import reestimation
from halfseen.paper.tracking import tracking
from halfseen.simulation.methods import MEASURES

if TYPE_CHECKING:
    from halfseen.simulation.results import Results

__all__ = ["DigitsWorld", "HardInstanceWorld", "ProductContextWorld", "Pslb", "SignSeeker", "run"]

MEASURES.update(
    {
        "coverage": coverage,
        "excitation": excitation,
        "gram": gram,
        "reestimation": reestimation,
        "representation": representation,
        "tracking": tracking,
        "wait": wait_for_sign,
    }
)


def run(
    name: str,
    *,
    methods: Iterable[str] | Mapping[str, Any] | None = None,
    seeds: Iterable[int] | None = None,
    observe_probs: Iterable[float] | None = None,
    scale: str = "paper",
    jobs: int | None = None,
    out: str | Path | None = None,
) -> "Results":
    """Run a study of the paper, or a part of it, perhaps with a policy of your own.

    Parameters
    ----------
    name : str
        As `halfseen studies` lists them.
    methods : list of str, or mapping from a key to settings, Method, or function, optional
        Keys of the study, of standard methods, or names of registered policies; or, as in
        `simulate`, a mapping whose new keys join every setting (None for those of the study).
    seeds, observe_probs : optional
        Others, or a part.
    scale : "paper" or "smoke"
    jobs, out : optional
        As in `simulate`.

    Raises
    ------
    HalfseenError
        No cell could run; if only some could not, the log warns of it.

    Examples
    --------
    >>> from halfseen import paper
    >>> results = paper.run("synthetic", methods=["uniform"], scale="smoke", seeds=[0], jobs=1)
    >>> len(results.per_seed)
    2
    """
    from halfseen.paper.studies import study_named
    from halfseen.paper.study import run_study
    from halfseen.simulation.simulate import warn_of_failures
    from halfseen.simulation.store import Store

    study = study_named(name, scale).narrowed(
        methods=methods, seeds=None if seeds is None else tuple(seeds), observe_probs=observe_probs
    )
    results = run_study(study, None if out is None else Store(out), jobs=jobs)
    warn_of_failures(results)
    return results
