"""Expiry and refits: they go on under traffic, whatever happens to a refit."""

import os
import threading
from datetime import timedelta
from pathlib import Path

import pytest

from agent.tables import offers, walk
from halfseen import Agent, LatentUcb, StorageError
from halfseen.agent.member import LEASE_SECONDS as LEASE

EXPIRE = timedelta(seconds=5)


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def opened(request):
    """Return a function that opens an agent."""
    if request.param == "memory":
        return lambda **settings: Agent(id="sku", **settings)
    kind = "file" if request.param == "sqlite" else "server"
    found = request.getfixturevalue(kind)
    url = found if kind == "file" else found.fresh()
    return lambda **settings: Agent.open(url, id="sku", durability="crash", **settings)


def traffic(agent, clock, seconds):
    """Choose more than five times a second, and yield the age of the oldest pending decision."""
    for rows, _ in offers(round(seconds / 0.15), seed=1):
        agent.choose(rows[:1])
        clock.advance(0.15)
        yield agent.health()["oldest_pending"]


def test_a_refit_that_failed_stops_no_expiry_and_is_tried_again_under_traffic(
    opened, clock, monkeypatch, caplog
):
    agent = opened(policy=LatentUcb(refit="background"), expire_after=EXPIRE)
    with monkeypatch.context() as patch:
        patch.setattr(LatentUcb, "fit_models", lambda self: 1 / 0)
        walk(agent, offers(6))
        agent.tick()
    assert caplog.text.count("a refit failed") == 1
    assert max(traffic(agent, clock, 35)) < EXPIRE.total_seconds() + 0.5
    agent.tick()
    assert agent.health()["refits"] > 0


def test_another_process_takes_over_after_the_learner_died_while_it_refitted(url, clock):
    Agent.open(url, id="sku", durability="crash", expire_after=EXPIRE).close()
    child = os.fork()
    if child == 0:
        LatentUcb.fit_models = lambda self: os._exit(3)
        walk(Agent.open(url, durability="crash"), offers(6))
        os._exit(4)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    with Agent.open(url, durability="crash") as agent:
        list(traffic(agent, clock, LEASE - 1))
        assert not agent.health()["is_learner"]  # the other one could still be at work
        assert agent.health()["behind"] > 0
        list(traffic(agent, clock, 2))
        assert agent.health()["is_learner"]
        assert max(traffic(agent, clock, 2)) < EXPIRE.total_seconds() + 0.5
        assert agent.health()["refits"] > 0


@pytest.mark.parametrize("refit", ["in place", "background"])
def test_a_refit_that_takes_longer_than_a_lease_is_made_once(url, clock, monkeypatch, refit):
    policy = LatentUcb(refit="background") if refit == "background" else LatentUcb()
    one, two = (Agent.open(url, id="sku", policy=policy) for _ in range(2))
    fits, true = [], LatentUcb.fit_models

    def slow(policy):
        fits.append(policy)
        if len(fits) == 1:
            clock.until_somebody_waits()
            for _ in range(9):
                clock.advance(LEASE / 3)
                two.refit_if_due()
        true(policy)

    monkeypatch.setattr(LatentUcb, "fit_models", slow)
    rounds = iter(offers(20))
    while not fits:
        walk(one, [next(rounds)])
        one.tick()
    assert len(fits) == two.health()["refits"] == 1
    monkeypatch.setattr(LatentUcb, "fit_models", true)
    one.close()
    clock.advance(1.0)
    while two.health()["refits"] == 1:  # the lease is free
        walk(two, [next(rounds)])
        two.tick()
    two.close()


def test_closing_an_agent_ends_its_refit_without_a_trace(file, monkeypatch, caplog):
    policy = LatentUcb(refit="background")
    agent = Agent.open(file, id="sku", policy=policy)
    rounds = iter(offers(200))
    while not agent.health()["refits"]:
        walk(agent, [next(rounds)])
    began, gate, true = threading.Event(), threading.Event(), LatentUcb.fit_models

    def slow(policy):
        began.set()
        assert gate.wait(20.0)
        true(policy)

    before = set(threading.enumerate())
    monkeypatch.setattr(LatentUcb, "fit_models", slow)
    while not began.is_set():
        walk(agent, [next(rounds)])
        began.wait(0.01)
    refitting = set(threading.enumerate()) - before
    closing = threading.Thread(target=agent.close)
    closing.start()
    closing.join(1.0)  # it may wait for the refit
    gate.set()
    for thread in (closing, *refitting):
        thread.join(20.0)
        assert not thread.is_alive()
    assert "failed" not in caplog.text
    assert not Path(f"{file}-wal").exists()  # nobody has opened the file again
    with pytest.raises(StorageError, match="the agent is closed"):
        agent.tick()
    monkeypatch.setattr(LatentUcb, "fit_models", true)
    with Agent.open(file) as other:
        other.refit_if_due()  # unless it was done before the end
        assert other.health()["refits"] > 1
