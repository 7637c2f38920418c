"""The dashboard: what it shows, and the page that draws it."""

import secrets
import threading
import time
from collections import OrderedDict, deque
from functools import cache
from itertools import pairwise
from typing import Any

import jinja2
import numpy as np
from starlette.responses import HTMLResponse

from halfseen.agent.agent import Agent
from halfseen.agent.events import CHOOSE, EXPIRE, LEARN, Event
from halfseen.errors import HalfseenError
from halfseen.values import FloatArray

N_RECENT = 20_000
"""Decisions over which the curves go."""

_N_EXPLAINED, _N_PARTS = 6, 4  # decisions that are explained, and parts of their scores
_FRESH = 4.0  # seconds for which numbers are good enough
_MOST_BINS, _REWARDS, _FEWEST = 24, 50, 5  # bins, rewards in one on average, and for a mean


class Dashboard:
    """What the dashboard shows of an agent; reads events once, and remembers the recent ones."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self._lock = threading.Lock()
        self._made: OrderedDict[str, list[Any]] = OrderedDict()  # time, weight and reward
        self._pending: dict[str, float] = {}  # parts of rewards so far
        self._latest: deque[Event] = deque(maxlen=_N_EXPLAINED)
        self._last = 0
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
        health = self.agent.health()
        self._last = max(self._last, health["events"] - 3 * N_RECENT)
        assert self.agent._storage is not None
        for event in self.agent._storage.after(self._last):
            self._read(event)
            self._last = event.number
        known = [reward for _, _, reward in self._made.values() if reward is not None]
        explained = [self._explained(event) for event in reversed(self._latest)]
        return {
            "health": health,
            "bins": bins(list(self._made.values())),
            "reward": {"n": len(known), "mean": sum(known) / len(known) if known else None},
            "decisions": explained,
            "measure": worth([each.pop("gains") for each in explained]),
            "time": time.time(),
        }

    def _read(self, event: Event) -> None:
        """Remember a decision, or its reward: as in `lift`, what is learned for the first place."""
        made, pending, body = self._made, self._pending, event.body
        if event.kind == CHOOSE:
            made[body["id"]], pending[body["id"]] = [event.time, body["weight"], None], 0.0
            self._latest.append(event)
            if len(made) > N_RECENT:
                pending.pop(made.popitem(last=False)[0], None)
        elif event.kind in (LEARN, EXPIRE):
            for id, place, _, value, is_final in event.rewards:
                if id not in pending or place:
                    continue
                total = value if event.kind == EXPIRE else pending[id] + value  # it has the sum
                if is_final:
                    made[id][2] = total
                    del pending[id]
                else:
                    pending[id] = total

    def _explained(self, event: Event) -> dict[str, Any]:
        """Return a decision with the largest parts of its score, under the present model."""
        body = event.body
        found = {
            "id": body["id"],
            "time": event.time,
            "items": body["items"],
            "probabilities": body["probabilities"],
            "reward": self._made[body["id"]][2],
            "parts": [],
            "gains": {},
        }
        try:
            why = self.agent.explain(body["id"])
        except HalfseenError:  # a policy need not be able to
            return found
        gains = {each.column: each.gain for each in why.measurements}
        parts = why.largest()
        if others := parts[_N_PARTS:]:
            parts[_N_PARTS:] = [("others", sum(value for _, value in others))]
        return found | {"parts": parts, "gains": gains}


def bins(made: list[list[Any]]) -> list[dict[str, Any]]:
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


def worth(gains: list[dict[str, float]]) -> list[tuple[str, float]]:
    """Return the columns worth measuring with their mean gain, the largest first.

    >>> worth([{"price": 0.4, "size": 0.1}, {"price": 0.2}])
    [('price', 0.30000000000000004), ('size', 0.05)]
    """
    names = {name for each in gains for name in each}
    means = {name: sum(each.get(name, 0.0) for each in gains) / len(gains) for name in names}
    return sorted(means.items(), key=lambda pair: (-pair[1], pair[0]))


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
