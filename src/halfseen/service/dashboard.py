"""The dashboard: what it shows, and the page that draws it."""

import secrets
import threading
import time
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import jinja2
import numpy as np
from starlette.responses import HTMLResponse

from halfseen.agent.agent import Agent
from halfseen.agent.logs import outcome
from halfseen.errors import InvalidInputError, UnknownDecisionError
from halfseen.values import FloatArray

N_RECENT = 5000
"""Decisions over which the curves go."""

_N_EXPLAINED, _N_PARTS = 6, 4  # decisions that are explained, and parts of their scores
_FRESH = 4.0  # seconds for which numbers are good enough
_UNEXPLAINED = InvalidInputError, UnknownDecisionError  # not so if the storage fails
_MOST_BINS, _REWARDS, _FEWEST = 24, 50, 5  # bins, rewards in one on average, and for a mean


class Dashboard:
    """What the dashboard shows of an agent."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self._lock = threading.Lock()
        self._data: dict[str, Any] = {}
        self._until = 0.0

    def data(self) -> dict[str, Any]:
        """Return it as plain JSON types; it may be some seconds old."""
        with self._lock:
            if time.monotonic() >= self._until:
                self._data = self._fresh()
                self._until = time.monotonic() + _FRESH
            return self._data

    def _fresh(self) -> dict[str, Any]:
        health, journal = self.agent.health(), self.agent.reading()
        n_events = 3 * N_RECENT
        found, rewards = journal.logged(max(0, journal.last_entry() - n_events), n_events)
        decisions = [
            (made, body, _learned(rewards[body["id"]])) for _, made, _, body, _ in found[-N_RECENT:]
        ]
        known = [reward for *_, reward in decisions if reward is not None]
        latest = decisions[: -_N_EXPLAINED - 1 : -1]
        try:
            worth = self.agent.worth_measuring([body["id"] for _, body, _ in latest])
        except _UNEXPLAINED:  # there is no decision, or the policy cannot explain any
            worth = ()
        return {
            "health": health,
            "bins": bins([(made, body["weight"], reward) for made, body, reward in decisions]),
            "reward": {"n": len(known), "mean": sum(known) / len(known) if known else None},
            "decisions": [self._explained(*each) for each in latest],
            "measure": [(each.column, each.gain) for each in worth],
            "time": time.time(),
        }

    def _explained(self, made: float, body: dict[str, Any], reward: float | None) -> dict[str, Any]:
        """Return a decision with the largest parts of its score, under the present model."""
        names = ("id", "items", "probabilities")
        found = {name: body[name] for name in names} | {"time": made, "reward": reward}
        try:
            return found | {"parts": self.agent.explain(body["id"]).largest(_N_PARTS)}
        except _UNEXPLAINED:  # a policy need not be able to
            return found | {"parts": []}


def _learned(rewards: list[Any]) -> float | None:
    """Return what is learned for the first place, as in `lift`; None while more may come."""
    found = outcome([reward for reward in rewards if reward[0] == 0])
    return None if found["status"] == "pending" else found["reward"]


def bins(made: Sequence[Sequence[float | None]]) -> list[dict[str, Any]]:
    """Return traffic and rewards over time, from (time, weight, reward) of decisions.

    A uniform choice would have earned Σwr / Σw so far, if w is its probability of the item divided
    by the true one. Errors are half of 95 % intervals.

    >>> found = bins([[time, 1.0, time % 2] for time in range(6)] + [[6.0, 1.0, None]])
    >>> found[0]["decisions"], found[0]["rewards"], found[0]["mean"], found[0]["uniform"]
    (7, 6, 0.5, 0.5)
    """
    if not made:
        return []
    table = np.array(made, dtype=float)  # NaN for None
    times, weights, rewards = table.T
    is_known = ~np.isnan(rewards)
    n_bins = min(_MOST_BINS, max(1, int(is_known.sum()) // _REWARDS))
    edges = np.linspace(times.min(), times.max() + 1e-6, n_bins + 1)
    found = []
    for start, end in pairwise(edges.tolist()):
        inside, before = (times >= start) & (times < end), times < end
        own = rewards[inside & is_known]
        mean, error = _mean(own, np.ones(len(own)))
        weighed = before & is_known & ~np.isnan(weights)
        uniform, off = _mean(rewards[weighed], weights[weighed])
        facts = {"from": start, "to": end, "decisions": int(inside.sum()), "rewards": len(own)}
        facts |= {"mean": mean, "mean_error": error, "uniform": uniform, "uniform_error": off}
        found.append(facts)
    return found


def _mean(values: FloatArray, weights: FloatArray) -> tuple[float | None, float | None]:
    """Return a weighted mean and half of its interval; None if there are too few values."""
    total = float(weights.sum())
    if len(values) < _FEWEST or total <= 0.0:
        return None, None
    mean = float(weights @ values) / total
    return mean, 1.96 * float(np.linalg.norm(weights * (values - mean))) / total


def page(name: str) -> HTMLResponse:
    """Return the page, which fetches its data; it may run its own script and load nothing else."""
    nonce = secrets.token_urlsafe(16)
    policy = (
        f"default-src 'none'; style-src 'nonce-{nonce}'; script-src 'nonce-{nonce}'; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )
    text = _template().render(name=name, nonce=nonce)
    return HTMLResponse(text, headers={"Content-Security-Policy": policy})


@cache
def _template() -> jinja2.Template:
    """Return the template, with the style and the picture that reports have as well."""
    places = ("service", "templates"), ("report", "templates"), ("report", "assets")
    loaders = [jinja2.PackageLoader(f"halfseen.{room}", folder) for room, folder in places]
    environment = jinja2.Environment(loader=jinja2.ChoiceLoader(loaders), autoescape=True)
    return environment.get_template("dashboard.html.j2")
