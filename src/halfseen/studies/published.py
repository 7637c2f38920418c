"""Published per-seed regrets, and how ours compare with them."""

import csv
import io
import math
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any, NamedTuple

from halfseen.simulation.tables import Row, mean_of

TOLERANCE = 1e-6
"""Largest deviation of a regret in which nothing is random but the instance."""

STANDARD_ERRORS = 3.0
"""Largest mean difference, in standard errors of the paired difference, where policies draw."""


FEWEST_SEEDS = 10
"""With fewer, such a mean is shown but not judged: for two seeds, 3 standard errors are nothing."""


class Key(NamedTuple):
    """A published cell."""

    setting: str
    p: float
    method: str
    seed: int


class Figure(NamedTuple):
    """What was published for a cell.

    Attributes
    ----------
    final_regret : float
    exact : bool
        Whether nothing in the policy is random, so that regrets must be equal.
    """

    final_regret: float
    exact: bool


class Group(NamedTuple):
    """Ours against published over all seeds of a method that draws random numbers.

    Attributes
    ----------
    setting, p, method
    n : int
        Seeds compared.
    ours, published : float
        Mean regrets.
    standard_errors : float
        Mean paired difference in its standard errors.
    """

    setting: str
    p: float
    method: str
    n: int
    ours: float
    published: float
    standard_errors: float

    @property
    def telling(self) -> bool:
        """Whether there are enough seeds for a standard error to mean something."""
        return self.n >= FEWEST_SEEDS

    @property
    def agrees(self) -> bool:
        """Whether the difference is within the tolerance, or nothing can be said."""
        return not self.telling or abs(self.standard_errors) <= STANDARD_ERRORS


class Comparison(NamedTuple):
    """The outcome.

    Attributes
    ----------
    deviations : dict
        |ours − published| of every exact cell.
    groups : list of Group
    missing : list of Key
        Published cells that were asked for but have no result of ours.
    """

    deviations: dict[Key, float]
    groups: list[Group]
    missing: list[Key]

    @property
    def worst(self) -> tuple[Key, float] | None:
        """The exact cell that deviates most."""
        if not self.deviations:
            return None
        key = max(self.deviations, key=lambda key: self.deviations[key])
        return key, self.deviations[key]

    @property
    def differing(self) -> list[Key]:
        """Exact cells that deviate by more than the tolerance."""
        # Written so that NaN counts as differing.
        return [key for key, size in self.deviations.items() if not size <= TOLERANCE]

    @property
    def agrees(self) -> bool:
        """Whether something was compared and everything agrees."""
        compared = bool(self.deviations) or any(group.telling for group in self.groups)
        within = all(group.agrees for group in self.groups)
        return compared and within and not self.differing and not self.missing


def published(study: str) -> dict[Key, Figure]:
    """Return all published cells of a study; empty where nothing is published per seed.

    >>> len(published("synthetic")), len(published("masks"))
    (700, 0)
    """
    resource = files("halfseen") / "data" / "published" / f"{study}.csv"
    if not resource.is_file():
        return {}
    rows = csv.DictReader(io.StringIO(resource.read_text(encoding="utf-8")))
    return {
        Key(row["setting"], float(row["p"]), row["method"], int(row["seed"])): Figure(
            float(row["final_regret"]), row["kind"] == "exact"
        )
        for row in rows
    }


def compare(per_seed: Iterable[Row], figures: Mapping[Key, Figure]) -> Comparison:
    """Compare results with the published figures of the same cells.

    Parameters
    ----------
    per_seed : iterable of dict
        Rows of `per_seed.csv` (numbers as numbers).
    figures : mapping
        The published cells to look for.
    """
    ours = {
        Key(row["setting"], row["p"], row["method"], row["seed"]): row["final_regret"]
        for row in per_seed
        if row["status"] == "ok"
    }
    deviations: dict[Key, float] = {}
    pairs: dict[tuple[Any, ...], list[tuple[float, float]]] = {}
    for key, figure in figures.items():
        if key not in ours:
            continue
        if figure.exact:
            deviations[key] = abs(ours[key] - figure.final_regret)
        else:
            pairs.setdefault(key[:3], []).append((ours[key], figure.final_regret))
    groups = [_group(key, found) for key, found in pairs.items()]
    return Comparison(deviations, groups, [key for key in figures if key not in ours])


def _group(key: tuple[Any, ...], pairs: list[tuple[float, float]]) -> Group:
    difference = mean_of([ours - theirs for ours, theirs in pairs])
    error = difference.standard_error
    assert difference.mean is not None
    scaled = math.nan if not error else difference.mean / error
    if difference.mean == 0.0:
        scaled = 0.0
    count = len(pairs)
    ours = math.fsum(pair[0] for pair in pairs) / count
    theirs = math.fsum(pair[1] for pair in pairs) / count
    return Group(key[0], key[1], key[2], count, ours, theirs, scaled)
