"""What only the worlds of a study know: true ranks, lower bounds, how much of a table is seen."""

from typing import Any

import numpy as np

from halfseen.core.theory import (
    Gaps,
    Problem,
    context_limited_applies,
    context_limited_lower_bound,
    discovery_cost,
    expected_wait,
    explicit_lower_bound,
    lower_bound_applies,
    optimized_lower_bound,
)
from halfseen.errors import HalfseenError
from halfseen.reports.data import Point
from halfseen.studies.spec import Study
from halfseen.worlds.base import Facts

# Features of a table that a report lists; a long list is cut off.
_MOST_FEATURES = 40


def facts_at(study: Study, point: Point) -> Facts | None:
    """Return what the world at a point reveals; None where its data are not on this machine."""
    realization = _realization(study, point)
    return None if realization is None else realization.facts


def true_rank(study: Study, point: Point) -> int | None:
    """Return the dimension of the subspace in which arms lie, where the world knows it."""
    facts = facts_at(study, point)
    return None if facts is None else facts.rank


def number_at(study: Study, point: Point, name: str) -> float | None:
    """Return p, κ ("conditioning") or a setting of the world at a point; None where it has none."""
    if name == "p":
        return point.p
    setting = study.settings.get(point.setting)
    world = None if setting is None else setting.built.get(point.p)
    if name == "conditioning":
        realization = _realization(study, point)
        problem = getattr(realization, "problem", None)
        return None if problem is None else float(round(problem().conditioning, 9))
    if name == "horizon":
        facts = facts_at(study, point)
        return None if facts is None else float(facts.horizon)
    value = getattr(world, name, None)
    return float(value) if isinstance(value, int | float) else None


def share_label(study: Study) -> str:
    """Return what `p` is the share of in a study.

    A recorded table has holes of its own: there it is the share of what was recorded.
    """
    kinds = {setting.world.get("kind") for setting in study.settings.values()}
    return "share of recorded entries seen" if "table" in kinds else "share of entries seen"


def share_seen(study: Study) -> str:
    """Return as text how much of the arms is seen; empty where it is unknown."""
    probs = [f"{p:g}" for p in study.observe_probs if p is not None]
    shares = []
    for name, setting in study.settings.items():
        facts = facts_at(study, Point(name, None)) if None in setting.worlds() else None
        if facts is not None and facts.observe_prob is not None:
            place = f" ({name})" if len(study.settings) > 1 else ""
            shares.append(f"{100 * float(np.mean(facts.observe_prob)):.0f} %{place}")
    texts = [f"{share_label(study)}: {', '.join(probs)}"] * bool(probs)
    texts += [f"share of entries seen: {', '.join(shares)}"] * bool(shares)
    return "; ".join(texts)


def features_seen(study: Study) -> str:
    """Return as text the features of recorded tables with the share recorded of each."""
    found: dict[str, str] = {}
    for name, setting in study.settings.items():
        table = getattr(
            _realization(study, Point(name, next(iter(setting.worlds())))), "table", None
        )
        shares = getattr(table, "shares", None)
        if table is not None and shares is not None:
            pairs = list(zip(table.names, shares.tolist(), strict=True))
            texts = [f"{feature} {100 * share:.0f} %" for feature, share in pairs[:_MOST_FEATURES]]
            more = [f"and {len(pairs) - len(texts)} more"] * (len(pairs) > len(texts))
            found.setdefault(", ".join(texts + more), name)
    return "; ".join(found)


def lower_bounds(study: Study, point: Point) -> dict[str, float]:
    """Return the lower bounds on expected regret that apply at a point, by form.

    They speak of the worst member of the hard family, so there are none in other worlds.
    """
    found = _hard_instance(study, point)
    if found is None:
        return {}
    problem, gaps = found
    explicit = explicit_lower_bound(problem, gaps)
    bounds = {"explicit": explicit.total, "hidden": explicit.hidden}
    if lower_bound_applies(problem):
        bounds["optimized"] = optimized_lower_bound(problem).total
        if context_limited_applies(problem):
            bounds["context-limited"] = context_limited_lower_bound(problem).total
    return bounds


def expected_discovery(study: Study, point: Point, what: str) -> float | None:
    """Return the expected "wait" for the hidden sign, or its "cost"; None in other worlds."""
    found = _hard_instance(study, point)
    if found is None:
        return None
    problem, gaps = found
    if what == "cost":
        return discovery_cost(problem, gaps)
    return expected_wait(
        n_arms=problem.n_arms, observe_prob=problem.observe_prob, horizon=problem.horizon
    )


def _hard_instance(study: Study, point: Point) -> tuple[Problem, Gaps] | None:
    """Return constants and gaps of the hard family; other worlds have no gaps."""
    realization = _realization(study, point)
    gaps = getattr(realization, "gaps", None)
    return None if gaps is None else (realization.problem(), gaps)


def _realization(study: Study, point: Point) -> Any:
    setting = study.settings.get(point.setting)
    world = None if setting is None else setting.built.get(point.p)
    if world is None:
        return None
    try:
        return world.realize(study.seeds[0])
    except (HalfseenError, OSError):  # its data are on another machine
        return None
