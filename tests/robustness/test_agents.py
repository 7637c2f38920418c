"""Agents under attack: forged files, and an interrupt at every line of a call."""

import random
import warnings
from datetime import timedelta
from functools import cache, partial
from itertools import count

import numpy as np
import pytest

from agent.tables import offers, state_of, walk
from halfseen import Agent, AmbientOful, HalfseenError, LatentUcb, archive
from halfseen.agent.agent import _built
from halfseen.errors import ArchiveError
from robustness.faults import Interrupter
from robustness.files import MUTATIONS

ROWS = [{"sku": name, "price": 1.0, "weight": 1.0, "colour": name} for name in ("red", "green")]
ALL = [*ROWS, {"sku": "blue", "colour": "blue"}]


def served(policy, url=None, **settings):
    """Return an agent after some rounds, with decisions that wait."""
    make = partial(Agent.open, url, durability="crash") if url else Agent
    agent = make(policy=policy, id="sku", **settings)
    agent.choose(ALL)
    walk(agent, offers(8))
    agent.choose(ALL)
    return agent


@cache
def saved():
    agents = [served(policy) for policy in (AmbientOful(dim=1), LatentUcb(memory_bytes=4800))]
    return [archive.to_bytes(agent.to_dict()) for agent in agents]


def wrong_about(content):
    """Return what is wrong about how a forged file is taken; nothing if it is refused or works."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            agent = _built(Agent.from_dict, archive.from_bytes(content), "forged")
        except ArchiveError:
            return ""
        try:
            agent.learn([each.id for each in agent.pending], [0.5] * len(agent.pending))
            agent.health()
            scores = [each[1:] for each in agent.score(ALL)]
            scores += [decision.scores.tolist() for decision in walk(agent, offers(3, seed=1))]
        except HalfseenError:
            return ""  # such as another kind of column
        return "" if all(np.isfinite(each).all() for each in scores) else "a score is not finite"


@pytest.mark.parametrize("seed", range(6))
def test_a_forged_agent_is_refused_or_works(seed):
    for index in range(25):
        draws = random.Random(f"{seed}-{index}")
        content = draws.choice(MUTATIONS)(draws.choice(saved()), draws)
        assert wrong_about(content) == "", f"seed {seed}, number {index}"


@pytest.mark.parametrize(
    "forge",
    [
        lambda saved: saved["state"]["traffic"]["seen"]["sums"].__setitem__(0, np.empty(0)),
        lambda saved: saved["state"]["traffic"]["lift"].update(
            products=np.diag([3.0, 1.0, 0.0, 0.0])
        ),
        lambda saved: saved["decisions"][-1]["made"].update(places=[]),
        lambda saved: saved["decisions"][-1]["made"].update(weight=0.0),
    ],
)
def test_sums_and_decisions_that_no_agent_has_are_refused(forge):
    saved = served(AmbientOful(dim=1)).to_dict()
    assert Agent.from_dict(saved).health()
    forge(saved)
    with pytest.raises(HalfseenError):
        Agent.from_dict(saved)


def interrupted(call, number):
    """Interrupt a call at one of its lines; return whether it was through before."""
    try:
        with Interrupter("line", number):
            call()
    except KeyboardInterrupt:
        return False
    return True


def test_an_interrupt_that_somebody_keeps_leaves_no_lock_behind(tmp_path):
    """A signal is met where a function begins; a notebook keeps the exception and its frames."""
    agent, kept = served(AmbientOful(dim=1), tmp_path / "shop.db"), []
    locks = agent._lock, agent.journal.database._lock
    for number in count(1):
        try:
            with Interrupter("call", number):
                agent.choose(ALL)
            break
        except KeyboardInterrupt as error:
            kept.append(error)
        assert not any(lock._is_owned() for lock in locks), f"call {number}"
    assert len(kept) > 50


CALLS = {
    "choose": lambda agent: agent.choose([{"sku": "a", "price": 1.0, "new": 2.0}]),
    "learn": lambda agent: agent.learn(agent.pending[0].id, 1.0),
    "choose, when one is forgotten": lambda agent: agent.choose(ALL),
    "expire": lambda agent: agent.expire(before=timedelta(0), reward=None),
    "learn many": lambda agent: agent.learn([each.id for each in agent.pending], [1.0, 0.0]),
    "observe": lambda agent: agent.observe([{"sku": "a", "colour": "black"}], [1.0]),
}


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("name", CALLS)
def test_an_interrupted_call_changes_nothing_or_all(name, stored, tmp_path):
    """At most the very end of a call is beyond recall; then memory and database both have it."""
    url = tmp_path / "shop.db" if stored else None
    agent = served(AmbientOful(dim=1), url, max_pending=2)
    before, n_tried = state_of(agent), 1
    while not interrupted(lambda: CALLS[name](agent), n_tried):
        n_tried += 1
        if state_of(agent) != before:
            break
    assert n_tried > 20
    assert state_of(agent) != before
    if stored:
        assert state_of(Agent.open(url)) == state_of(agent)
        agent.close()
