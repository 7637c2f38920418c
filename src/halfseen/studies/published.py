"""Published per-seed regrets, and how ours compare with them."""

import csv
import io
import math
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import NamedTuple

from halfseen.simulation.tables import Mean, Row, mean_of

TOLERANCE = 1e-6
"""Largest deviation of a regret in which nothing is random but the instance."""

STANDARD_ERRORS = 3.0
"""Largest mean difference, in standard errors of the paired difference, where policies draw."""

FEWEST_SEEDS = 10
"""With fewer seeds, such a mean is shown but not judged."""


class Key(NamedTuple):
    """A published cell."""

    setting: str
    p: float
    method: str
    seed: int


class Figure(NamedTuple):
    """What was published for a cell; `exact` if nothing in the policy is random."""

    final_regret: float
    exact: bool


class Group(NamedTuple):
    """Published results of a method and ours, over the seeds that both have.

    `deviation` is the largest difference of a seed where `exact`, else the mean difference in
    standard errors of the paired difference (NaN where it has none).
    """

    setting: str
    p: float
    method: str
    exact: bool
    n: int
    published: Mean
    ours: Mean
    deviation: float

    @property
    def telling(self) -> bool:
        """Whether there are enough seeds for a standard error to mean something."""
        return self.exact or self.n >= FEWEST_SEEDS

    @property
    def agrees(self) -> bool:
        """Whether the difference is within the tolerance, or nothing can be said."""
        limit = TOLERANCE if self.exact else STANDARD_ERRORS
        return not self.telling or abs(self.deviation) <= limit  # NaN does not agree


class Comparison(NamedTuple):
    """The outcome.

    `deviations` are |ours − published| of every exact cell; `missing` are the published cells for
    which there is no result of ours.
    """

    deviations: dict[Key, float]
    groups: list[Group]
    missing: list[Key]

    @property
    def worst(self) -> tuple[Key, float] | None:
        """The exact cell that deviates most."""
        return max(self.deviations.items(), key=lambda pair: pair[1], default=None)

    @property
    def differing(self) -> list[Key]:
        """Exact cells that deviate by more than the tolerance."""
        # Written so that NaN counts as differing.
        return [key for key, size in self.deviations.items() if not size <= TOLERANCE]

    @property
    def agrees(self) -> bool:
        """Whether something was compared and everything agrees."""
        compared = any(group.telling for group in self.groups)
        within = all(group.agrees for group in self.groups) and not self.differing
        return compared and within and not self.missing


def published(study: str) -> dict[Key, Figure]:
    """Return all published cells of a study; empty where nothing is published per seed.

    >>> len(published("synthetic")), len(published("masks"))
    (700, 0)
    """
    return {
        Key(row["setting"], float(row["p"]), row["method"], int(row["seed"])): Figure(
            float(row["final_regret"]), row["kind"] == "exact"
        )
        for row in shipped_rows(study)
    }


def shipped_rows(name: str) -> list[dict[str, str]]:
    """Return the rows of a published table; none where there is no such table."""
    resource = files("halfseen") / "paper" / "data" / "published" / f"{name}.csv"
    if not resource.is_file():
        return []
    return list(csv.DictReader(io.StringIO(resource.read_text(encoding="utf-8"))))


def compare(per_seed: Iterable[Row], figures: Mapping[Key, Figure]) -> Comparison:
    """Compare rows of `per_seed.csv` with the published figures of the same cells."""
    ours = {
        Key(row["setting"], row["p"], row["method"], row["seed"]): row["final_regret"]
        for row in per_seed
        if row["status"] == "ok"
    }
    pairs: dict[tuple[str, float, str, bool], list[tuple[float, float]]] = {}
    deviations: dict[Key, float] = {}
    for key, (theirs, exact) in figures.items():
        if key in ours:
            pairs.setdefault((*key[:3], exact), []).append((ours[key], theirs))
            if exact:
                deviations[key] = abs(ours[key] - theirs)
    groups = [_group(key, found) for key, found in pairs.items()]
    return Comparison(deviations, groups, [key for key in figures if key not in ours])


def _group(key: tuple[str, float, str, bool], pairs: list[tuple[float, float]]) -> Group:
    differences = [ours - theirs for ours, theirs in pairs]
    mean, error = mean_of(differences)
    deviation = max(abs(each) for each in differences)
    if not key[3]:
        deviation = 0.0 if not mean else mean / error if error else math.nan
    ours, theirs = (mean_of(each) for each in zip(*pairs, strict=True))
    return Group(*key, len(pairs), theirs, ours, deviation)
