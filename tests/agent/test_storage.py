"""Several agents on one database: one state, nothing lost, nothing twice."""

import copy
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from datetime import timedelta
from functools import partial
from pathlib import Path

import narwhals as nw
import numpy as np
import pytest

from agent.tables import lead, offers, state_of
from halfseen import (
    Agent,
    AlreadyRewardedError,
    AmbientOful,
    Greedy,
    Imputed,
    InvalidInputError,
    InvalidSettingError,
    LatentUcb,
    MissingExtraError,
    StorageError,
    TofuPov,
    Uniform,
    UnknownDecisionError,
    read_log,
)
from halfseen.agent import database, sql_journal
from halfseen.policies.abilities import Exploits
from halfseen.testing import journal_checks

TESTS = Path(__file__).resolve().parents[1]
DOSES = ["low", "medium", "high"]


def new(url, **settings):
    return Agent.open(url, **{"id": "sku", "durability": "crash"} | settings)


POLICIES = {
    "latent": LatentUcb(),
    "thompson in the background": LatentUcb(exploration="thompson", refit="background"),
    "ambient": AmbientOful(dim=1),
    "uniform": Uniform(dim=5),
    "tofu": TofuPov(dim=6, rank=2, observe_prob=0.7, burn_in=5),
    "imputed": Imputed(dim=6, first_fit=4),
}


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_all_replicas_hold_the_same_state_bit_by_bit(url, policy):
    one, two = (new(url, policy=policy) for _ in range(2))
    can_exploit = isinstance(policy, Exploits)
    for at, (rows, rewards) in enumerate(offers(30)):
        chooser, learner = (one, two) if at % 2 else (two, one)
        decision = chooser.choose(rows, k=1 + at % 2, explore=at % 5 > 0 or not can_exploit)
        if at % 4 == 1:
            learner.learn(decision.id, 0.1, final=False, key="click")
        if at % 4 != 3:
            learner.learn(decision.id, rewards[decision.items.index(decision.item)])
    ids = [1, "1", "same", "same", 2, "x"]  # as texts and as whole numbers
    log = [row | {"sku": id} for row, id in zip(rows, ids, strict=False)]
    one.observe(log, rewards, key="log")
    two.expire(before=timedelta(0), reward=None if policy.round else 0.5)
    for each in (one, two):
        if each._member.fitter.worker is not None:
            each._member.fitter.worker.join()
    expected = state_of(one)
    assert state_of(two) == expected
    assert state_of(Agent.open(url)) == expected
    assert not one.pending


def test_a_process_far_behind_continues_from_a_later_checkpoint(url):
    """The checkpoints of the first refits are gone when it looks."""
    one, two, three = (new(url, policy=LatentUcb()) for _ in range(3))
    for rows, rewards in offers(12):
        decision = one.choose(rows)
        one.learn(decision.id, rewards[decision.arm])
    assert len(one.health()["refit_seconds"]) > sql_journal.N_CHECKPOINTS
    assert three.learn(three.choose(rows), 1.0) is None  # it writes before it has caught up
    assert state_of(one) == state_of(two) == state_of(three)
    learned = state_of(one)
    assert state_of(lead(two)) == learned
    assert state_of(one) == learned


@pytest.mark.parametrize("other", [{"colour": 3.0}, {"y": 1.0}, {"colour": "blue"}])
def test_a_choice_on_an_older_state_is_applied_in_its_turn(url, monkeypatch, other):
    """Another process has introduced a column: of another kind, or the last one, or a level."""
    one, two = (new(url, policy=AmbientOful(dim=1), max_columns=2) for _ in range(2))
    one.learn(one.choose([{"sku": "a", "x": 1.0}]), 1.0)
    two._member.follow()
    append = two.journal.append

    def late(*given, **more):
        monkeypatch.setattr(two.journal, "append", append)
        one.choose([{"sku": "a", "x": 2.0, "colour": "red"}])
        return append(*given, **more)

    monkeypatch.setattr(two.journal, "append", late)
    decision = two.choose([{"sku": "a", "x": 1.0} | other])
    one.learn(decision.id, 1.0)
    assert list(one.columns) == ["sku", "x", "colour"]
    assert one.columns["colour"].levels[0] == "red"
    assert one.explain(decision).item == one.explain(decision.id).item == "a"
    assert state_of(one) == state_of(two)
    lead(two)
    assert two.columns == one.columns


def test_processes_in_the_same_round_do_not_draw_alike(url):
    one, two = (new(url, policy=Uniform(dim=1)) for _ in range(2))
    rows = [{"sku": str(at), "x": 1.0} for at in range(50)]
    pairs = [(one.choose(rows).item, two.choose(rows).item) for _ in range(10)]
    assert sum(ours == theirs for ours, theirs in pairs) < 4  # 0.2 expected


def test_an_id_is_one_decision(url):
    one, two = new(url, uniform_share=0.5), new(url)
    rows, context = offers(1)[0][0], {"hour": 3.0}
    first = one.choose(rows, context=context, id="visit", k=2)
    again = two.choose(rows, context=context, id="visit", k=2)
    assert (again.chosen, again.chosen_probabilities) == (first.chosen, first.chosen_probabilities)
    assert again.probabilities.tolist() == first.probabilities.tolist()
    assert one.health()["decisions"] == 1
    for other in ({"k": 1}, {"context": {"hour": 4.0}}, {"explore": False}):
        with pytest.raises(InvalidInputError, match="visit was made before, for another request"):
            two.choose(rows, **{"context": context, "k": 2, "id": "visit"} | other)


def test_a_decision_is_explained_by_its_id_in_all_processes(url):
    one, two = new(url), new(url)
    decision = one.choose([{"sku": "a", "x": 1.0}, {"sku": "b"}], context={"hour": 3})
    lead(two)
    assert two.explain(decision.id, costs={"x": 0.0}).to_dict() == one.explain(decision).to_dict()
    assert two.explain(decision.id, item="b").item == "b"
    with pytest.raises(UnknownDecisionError, match="'x' is not in a database"):
        two.explain("x")
    with pytest.raises(UnknownDecisionError, match="not in a database of this agent: pass what"):
        Agent().explain(decision.id)


def test_a_reward_counts_once_in_all_processes(url):
    one, two = new(url), new(url)
    rows = offers(1)[0][0]
    decisions = [one.choose(rows) for _ in range(3)]
    one.learn(decisions[0].id, 1.0)
    two.learn(decisions[0].id, 1.0)
    with pytest.raises(AlreadyRewardedError, match=r"with 1\.0, got 0\.0"):
        two.learn([decisions[1], decisions[0]], [1.0, 0.0])
    with pytest.raises(UnknownDecisionError, match="x is not known here"):
        two.learn([decisions[1], "x"], [1.0, 0.0])
    assert len(one.pending) == 2
    assert one.expire(before=timedelta(0)) == 2
    two.learn(decisions[1].id, 7.0)
    one.learn(decisions[1].id, 7.0)
    for agent in (one, lead(Agent.open(url))):
        health = agent.health()
        assert (health["late"], health["rewards"]["lately"]["n"]) == (1, 3)


def test_a_log_with_a_key_is_learned_once(url):
    one, two = new(url), new(url)
    rows = [row | {"sku": "a"} for row in offers(2)[0][0]]
    one.observe(rows, [1.0] * len(rows), key="monday", context=[{"hour": 1.0}] * len(rows))
    two.observe(rows, [1.0] * len(rows), key="monday", context=[{"hour": 1.0}] * len(rows))
    with pytest.raises(InvalidInputError, match="another log was observed with the key 'monday'"):
        two.observe(rows, [0.0] * len(rows), key="monday")
    assert one.health()["rewards"]["lately"]["n"] == len(rows)


def test_what_never_came_is_closed_by_itself(url, clock):
    for agent in (Agent(expire_after=timedelta(seconds=1.0)), new(url, id=None, expire_after=1.0)):
        agent.choose(DOSES)
        agent.learn(agent.choose(DOSES).id, 0.25, final=False, key="click")
        clock.advance(1.5)
        agent.choose(DOSES)  # expires what is due
        assert len(agent.pending) == 1
        assert agent.health()["rewards"]["lately"] == {"n": 2, "mean": 0.125}
        clock.advance(1.5)
        agent.tick()
        assert agent.pending == ()


def test_a_refit_is_made_by_one_process_and_a_failed_one_does_no_harm(
    url, clock, monkeypatch, caplog
):
    one, two = (new(url) for _ in range(2))
    with monkeypatch.context() as patch:
        patch.setattr(LatentUcb, "fit_models", lambda self: 1 / 0)
        for rows, rewards in offers(6):
            one.learn(one.choose(rows), rewards[0])
        assert "a refit failed" in caplog.text
        assert one.health()["refits"] == 0
    assert not two.refit_if_due()  # it is not the learner
    clock.advance(60.0)
    assert two.refit_if_due()
    assert not two.refit_if_due()
    assert not one.refit_if_due()
    assert one.health()["refits"] == 1
    assert len(one.health()["refit_seconds"]) == 1


@pytest.mark.parametrize(
    ("owner", "name", "error", "stored"),
    [
        (LatentUcb, "fit_models", SystemExit, True),
        (threading.Thread, "start", RuntimeError, True),
        (LatentUcb, "fit_models", ZeroDivisionError, False),
    ],
)
def test_choices_go_on_if_a_refit_in_the_background_cannot_run(
    url, clock, monkeypatch, caplog, owner, name, error, stored
):
    policy, rounds = LatentUcb(refit="background"), offers(60)
    agent = new(url, policy=policy) if stored else Agent(id="sku", policy=policy)
    for rows, rewards in rounds[:10]:
        agent.learn(agent.choose(rows), rewards[0])
    assert agent._member.state.traffic.refit_seconds

    def fail(self):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, fail)
        for rows, rewards in rounds[10:]:
            agent.learn(agent.choose(rows), rewards[0])
            if name == "fit_models" and agent._member.fitter.worker is not None:
                agent._member.fitter.worker.join()
    assert caplog.text.count("a refit failed, 1 so far") == caplog.text.count("a refit failed") == 1
    assert not agent.refit_if_due()
    clock.advance(60.0)
    assert agent.refit_if_due()


def test_a_refit_in_the_background_serves_on_and_then_knows_all_rewards(monkeypatch):
    """Without a database: the same as if the refit had taken no time, with columns that are new."""
    agent = Agent(id="sku", policy=LatentUcb(refit="background"))
    began, gate, refit = threading.Event(), threading.Event(), LatentUcb.fit_models

    def waiting(policy):
        if threading.current_thread() is agent._member.fitter.worker:
            began.set()
            assert gate.wait(20.0)
        refit(policy)

    def play(agent, rounds, **more):
        for rows, rewards in rounds:
            agent.learn(agent.choose([rows[0] | more]), rewards[0])

    rounds = offers(60)
    play(agent, rounds[:12])
    agent._member.fitter.worker.join()
    monkeypatch.setattr(LatentUcb, "fit_models", waiting)
    while True:
        decision = agent.choose([rounds.pop()[0][0]])
        if began.wait(0.05):
            break
        agent.learn(decision, 1.0)
    twin, n_epochs = copy.copy(agent), agent.health()["refits"]
    assert twin.refit_if_due()
    for each in (agent, twin):
        each.learn(decision, 0.5)
        play(each, rounds[12:15], new=3.0)
    assert agent.health()["refits"] == n_epochs
    gate.set()
    agent._member.fitter.worker.join()
    assert agent.health()["refits"] == twin.health()["refits"] == n_epochs + 1
    assert agent.columns == twin.columns
    assert agent.score(rounds[20][0]) == twin.score(rounds[20][0])


def test_a_lease_ends_at_its_deadline_and_does_not_survive_a_clock_that_was_set_back(url, clock):
    storage = new(url).journal
    assert storage.lease("a", 0.2)
    assert storage.lease("b", 0.2) is None
    clock.advance(0.25)
    assert storage.lease("b", 60.0)
    assert storage.lease("c", 1.0)  # a deadline so far ahead is from another time


def test_a_reader_narrows_widths_by_its_own_decisions_since_its_view(url, clock):
    one, two = new(url), new(url)
    rows = [{"sku": name, "x": float(at)} for at, name in enumerate("abcd")]
    random = np.random.default_rng(0)
    for _ in range(40):
        one.learn(one.choose(rows), float(random.normal()))
    clock.advance(2.0)
    one.tick()
    before = {each.item: each for each in two.score(rows)}
    item = two.choose(rows).item
    after = {each.item: each for each in two.score(rows)}
    assert not two.health()["is_learner"]
    assert after[item].estimate == before[item].estimate
    assert after[item].width < 0.99 * before[item].width
    clock.advance(2.0)
    one.tick()  # the decision is in the view now, and counts once
    now = {each.item: each.width for each in two.score(rows)}
    assert now == pytest.approx({name: each.width for name, each in after.items()})


def test_views_and_checkpoints_do_not_grow_with_what_is_pending(file):
    """They are no larger than those of an agent that has learned the rewards."""
    rows, sizes = [{"sku": "a", "x": 1.0}, {"sku": "b", "x": 2.0}], []
    for waits in (True, False):
        agent = new(file, name=str(waits))
        for at in range(300):
            decision = agent.choose(rows)
            if at < 40 or not waits:
                agent.learn(decision, float(at % 3))
        state = agent._member.state
        sizes.append([len(agent._dumped(state)), len(agent._viewed(state))])
        with Agent.open(file, str(waits)) as other:
            assert state_of(lead(other)) == state_of(agent)
    pending, learned = sizes
    assert all(one < other + 3000 for one, other in zip(pending, learned, strict=True)), sizes


@pytest.mark.parametrize("check", journal_checks(), ids=str)
def test_the_journal_in_a_database_keeps_its_contracts(url, check):
    check(lambda: fresh(url))


def fresh(url):
    """Return the empty journal of an agent."""
    agent = new(url, id="sku")
    agent.journal.release(agent._member.owner)
    return agent.journal


# What goes wrong


@pytest.mark.parametrize("left", ["nothing", "a log of a killed process"])
def test_processes_that_open_one_file_at_once_all_succeed(tmp_path, left):
    source = new(tmp_path / "source.db")
    source.choose(DOSES)
    trials = [tmp_path / f"{trial}.db" for trial in range(10)]
    if left != "nothing":
        for suffix in ("", "-wal"):  # of an open file: as after `kill -9`
            content = Path(f"{source.journal.place}{suffix}").read_bytes()
            for path in trials:
                Path(f"{path}{suffix}").write_bytes(content)
    assert [_opened_together(path) for path in trials] == [[0] * 4] * len(trials)


def _opened_together(path):
    """Return the exit codes of four processes that open a file at the same moment."""
    hold, release = os.pipe()
    children = []
    for _ in range(4):
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            os.close(release)
            os.read(hold, 1)  # until the parent closes its end
            try:
                new(path).choose(DOSES)
            finally:
                os._exit(sys.exc_info()[0] is not None)
        children.append(child)
    os.close(release)
    os.close(hold)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def test_a_server_that_is_killed_is_an_error_and_then_goes_on(server, tmp_path):
    agent = new(server.url, name="killed", id=None)
    first = agent.choose(DOSES)
    for mode in ("immediate", "fast"):
        server.stop(mode)
        started = time.monotonic()
        with pytest.raises(StorageError, match=r"halfseen:\*\*\*@127.0.0.1") as raised:
            agent.learn(first.id, 1.0)
        assert time.monotonic() - started < 10.0
        assert "hidden" not in str(raised.value) + repr(agent) + agent.journal.place
        server.start()
    agent.learn(first.id, 1.0)
    assert agent.pending == ()


@pytest.mark.parametrize("frozen", ["SELECT", "INSERT", "COMMIT"])
def test_a_server_that_is_frozen_in_a_call_is_an_error_in_time(server, monkeypatch, frozen):
    agent = new(server.url, name=frozen, id=None)
    first = agent.choose(DOSES)
    agent.tick()  # what is due is done
    before, run, errors = agent._member.state, database.Postgres._run, []
    with ExitStack() as stack, monkeypatch.context() as patch:

        def freeze(self, statement, /, *values):
            if statement.startswith(frozen):
                patch.setattr(database.Postgres, "_run", run)
                stack.enter_context(server.frozen())
            return run(self, statement, *values)

        patch.setattr(database, "ANSWER", 0.5)
        patch.setattr(database, "PATIENCE", 2.0)
        patch.setattr(database.Postgres, "_run", freeze)
        for call in (lambda: agent.choose(DOSES), lambda: agent.learn(first.id, 1.0)):
            started = time.monotonic()
            with pytest.raises(StorageError, match="did not answer in time") as raised:
                call()
            errors.append(str(raised.value))
            assert time.monotonic() - started < 4.0
        assert agent._member.state is before
    id = re.search(r"decision (\w+) may be stored", errors[0])
    assert (id is not None) == (frozen == "COMMIT")
    if id is not None:
        assert agent.choose(DOSES, id=id[1]).id == id[1]
    agent.learn(first.id, 1.0)
    assert agent.health()["decisions"] == 1 + (id is not None)
    assert agent.health()["rewards"]["lately"] == {"n": 1, "mean": 1.0}
    with agent, Agent.open(server.url, name=frozen) as other:
        assert state_of(other) == state_of(agent)


def test_processes_that_share_a_server_lose_nothing_when_they_are_killed(server):
    assert kills(20, 0, server.url) == ""


def kills(n, seed, *url):
    """Kill processes that share an agent; return what is lost."""
    command = [sys.executable, "-m", "robustness.kills", str(n), str(seed), *url]
    path = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_killed_processes_lose_nothing():
    """The soak test kills more."""
    assert kills(20, 0) == ""


def test_a_foreign_file_is_refused_and_stays_as_it_is(tmp_path):
    for name, content in (("a.csv", b"sku,price\na,3.5\n"), ("b.db", b"SQLite format 3\x00" * 9)):
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(StorageError, match="is not a halfseen database: name another file"):
            new(path)
        assert path.read_bytes() == content
    other = sqlite3.connect(tmp_path / "c.db")
    other.execute("CREATE TABLE t (x)")
    other.commit()
    with pytest.raises(StorageError, match="is not a halfseen database"):
        new(tmp_path / "c.db")
    with pytest.raises(StorageError, match=r"typo\.db does not exist: name another"):
        read_log(tmp_path / "typo.db")
    assert {file.name for file in tmp_path.iterdir()} == {"a.csv", "b.db", "c.db"}


def test_a_newer_schema_is_refused(file):
    agent = new(file)
    with sqlite3.connect(file) as other:
        other.execute("UPDATE halfseen_agents SET version = 2")
    with pytest.raises(StorageError, match="another schema: restart"):
        agent.choose(DOSES)
    with pytest.raises(StorageError, match="has schema 2"):
        new(file)
    with sqlite3.connect(file) as other:
        other.execute("PRAGMA user_version = 2")
    with pytest.raises(StorageError, match="newer than 1: upgrade"):
        new(file)


def failing(file, tmp_path, monkeypatch):
    """Yield ways in which a database fails: how to begin and to end, and what the error says."""
    holder = sqlite3.connect(file, isolation_level=None)
    yield lambda: holder.execute("BEGIN IMMEDIATE"), lambda: holder.execute("ROLLBACK"), "locked"
    holder.close()
    connect = database.Sqlite._connect

    def limited(self):
        connection = connect(self)
        connection.execute("PRAGMA max_page_count = 1")
        return connection

    patch = partial(monkeypatch.setattr, database.Sqlite, "_connect")
    yield lambda: patch(limited), lambda: patch(connect), "full"
    away = tmp_path / "away"

    def delete():
        for file in tmp_path.glob("shop.db*"):
            file.rename(away / file.name)

    def restore():
        for file in away.glob("shop.db*"):
            file.rename(tmp_path / file.name)

    away.mkdir()
    yield delete, restore, "was deleted while it was in use"


def test_an_outage_is_an_error_within_its_time_and_ends_by_itself(file, tmp_path, monkeypatch):
    monkeypatch.setattr(database, "PATIENCE", 0.3)
    agent, other = new(file, policy=AmbientOful(dim=1)), new(file)
    rows = [{"sku": at, "x": float(at), "text": "x" * 900} for at in range(30)]
    decision = agent.choose(rows[:2])
    before = state_of(agent)
    for begin, end, message in failing(file, tmp_path, monkeypatch):
        begin()
        agent.journal.database.close()
        started = time.monotonic()
        for call in (lambda: agent.choose(rows), lambda: agent.observe(rows, [1.0] * 30)):
            with pytest.raises(StorageError, match=message):
                call()
        assert time.monotonic() - started < 3.0
        end()
        agent.journal.database.close()
        assert state_of(agent) == state_of(other) == before
    agent.learn(decision, 1.0)
    assert other.pending == ()


def test_a_database_that_was_set_back_is_refused(file, tmp_path):
    agent = new(file, policy=AmbientOful(dim=1))
    agent.close()
    copy = Path(file).read_bytes()
    agent = new(file)
    agent.choose([{"sku": "a", "x": 1.0}])
    agent.journal.database.close()
    for file in tmp_path.glob("shop.db*"):
        file.unlink()
    Path(file).write_bytes(copy)
    with pytest.raises(StorageError, match="was set back, so restart"):
        agent.choose([{"sku": "a", "x": 1.0}])


def test_an_event_that_cannot_be_applied_stops_the_replica_and_is_named(url):
    agent, other = new(url), new(url)
    agent.choose(DOSES)
    agent.journal.database.write(lambda run: run("UPDATE halfseen_events SET body = '{}'"))
    other._member.upkeep.ahead["lease"] = 100.0
    other._member.doubt()
    for _ in range(2):
        with pytest.raises(StorageError, match=r"event 1 of .* cannot be applied.*KeyError"):
            other.choose(DOSES)


@pytest.mark.parametrize("stored", [True, False])
def test_a_process_that_is_forked_while_threads_use_an_agent_goes_on(stored, url):
    agent = new(url) if stored else Agent()
    agent.choose(DOSES)
    ends = threading.Event()

    def serve():
        while not ends.is_set():
            agent.learn(agent.choose(DOSES), 1.0)

    threads = [threading.Thread(target=serve) for _ in range(2)]
    for each in threads:
        each.start()
    for _ in range(5):
        child = os.fork()
        if child == 0:
            signal.alarm(20)  # ends it if it waits for a thread that it does not have
            agent.learn(agent.choose(DOSES), 1.0)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    ends.set()
    for each in threads:
        each.join()
    assert len(agent.pending) == 1
    if stored:
        assert state_of(Agent.open(url)) == state_of(agent)


def test_settings_of_an_agent_that_continues_must_be_the_same(url):
    new(url).close()
    for settings, message in (
        ({"id": "name"}, "id is 'sku' in the database, got 'name'"),
        ({"policy": Greedy(dim=1)}, "policy is 'LatentUcb' in the database, got 'Greedy'"),
        ({"expire_after": timedelta(1)}, "expire_after is None"),
        ({"uniform_share": 0.2}, "uniform_share is 0.0 in the database, got 0.2: leave it out; "),
        ({"policy": LatentUcb(uniform_share=0.2)}, "^uniform_share is 0.0 in the database, got"),
        ({"explore": "thompson"}, "explore is 'ucb' in the database, got 'thompson'"),
    ):
        with pytest.raises(InvalidSettingError, match=message):
            Agent.open(url, **settings)
    Agent.open(url, explore="ucb", uniform_share=0.0).close()
    with new(url, name="other", id="name", policy=LatentUcb(uniform_share=0.05)) as agent:
        agent.learn(agent.choose([{"name": "hat", "price": 3.0}]), 1.0)
    with Agent.open(url, name="other", uniform_share=0.05) as agent:
        assert (agent.id, agent.health()["decisions"]) == ("name", 1)
    with pytest.raises(StorageError, match="closed"):
        agent.choose([{"name": "hat"}])


def test_a_closed_agent_says_so_and_does_not_open_the_database_again(file):
    agent = new(file)
    decision = agent.choose(DOSES)
    agent.close()
    for call in (
        agent.health,
        lambda: agent.explain(decision.id),
        lambda: agent.choose(DOSES),
        lambda: agent.learn(decision.id, 1.0),
        lambda: agent.prune(keep=timedelta(0)),
        agent.tick,
    ):
        with pytest.raises(StorageError, match=r"^the agent is closed: open it anew"):
            call()
        assert not Path(f"{file}-wal").exists()


def test_an_agent_is_closed_also_if_its_last_checkpoint_fails(file, monkeypatch):
    agent = new(file)
    monkeypatch.setattr(agent._member, "publish_if_due", lambda every: every / 0)
    with pytest.raises(ZeroDivisionError):
        agent.close()
    assert agent.journal.database._connection is None
    with pytest.raises(StorageError, match="closed"):
        agent.choose(DOSES)


def test_a_decision_takes_few_bytes_and_a_set_is_stored_once(file):
    random = np.random.default_rng(0)
    shop = {"price": random.normal(size=200), "size": random.normal(size=200)}
    shop["colour"] = random.choice(["red", "blue"], size=200)
    sizes = {}
    for way in ({"uniform_share": 0.05}, {"explore": "inverse-gap"}):
        agent = new(file, name=str(way), id=None, **way)
        agent.observe(shop, random.normal(size=200))
        first, n = None, 100
        for _ in range(n):
            agent.choose(shop, context={"hour": float(random.normal())})
            first = first or _used(file)
        sizes[str(way)] = (_used(file) - first) / n
    assert all(size < most for size, most in zip(sizes.values(), (1000, 3000), strict=True)), sizes
    with sqlite3.connect(file) as reader:
        assert reader.execute("SELECT COUNT(*) FROM halfseen_sets").fetchone() == (1,)
    for same in ({"x": [1, -0.0, None]}, {"x": [1.0, 0, float("nan")]}):
        agent.choose(same)
    with sqlite3.connect(file) as reader:
        assert reader.execute("SELECT COUNT(*) FROM halfseen_sets").fetchone() == (2,)


def _used(file):
    """Return the bytes of all tables but views and checkpoints."""
    with sqlite3.connect(file) as reader:
        names = reader.execute(
            "SELECT name FROM sqlite_master WHERE name NOT LIKE '%files%'"
        ).fetchall()
        query = "SELECT SUM(pgsize) FROM dbstat WHERE name = ?"
        return sum(reader.execute(query, each).fetchone()[0] or 0 for each in names)


# The log


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_the_log_has_decisions_with_probabilities_and_rewards(url, backend):
    agent = new(url, id=None, uniform_share=0.5)
    one, two, three, four = (agent.choose(DOSES, k=2, context={"age": at}) for at in range(4))
    agent.learn(one.id, {one.chosen[0]: 1.0, one.chosen[1]: 0.0})
    agent.learn(two.id, 0.5, final=False, key="click")
    agent.learn(two.id, 2.0, final=False, key="†")
    agent.expire(before=timedelta(0), reward=-1.0)
    agent.learn(three.id, 9.0)
    five = agent.choose(np.eye(2))
    log = read_log(url, backend=backend)
    chunks = [len(each) for each in agent.log(backend=backend, chunk=2)]
    assert chunks == [4, 4, 1]
    columns = {name: nw.from_native(log)[name].to_list() for name in nw.from_native(log).columns}
    assert columns["item"] == [
        *(item for each in (one, two, three, four) for item in each.chosen),
        str(five.item),
    ]
    assert columns["reward"][:8] == [1.0, 0.0, 2.5, -1.0, -1.0, -1.0, -1.0, -1.0]
    assert columns["status"] == ["rewarded"] * 2 + ["expired"] * 6 + ["pending"]
    assert columns["late"] == [0, 0, 0, 0, 1, 0, 0, 0, 0]
    assert [value for value in columns["late_reward"] if value == value and value] == [9.0]
    assert columns["probability"][:2] == list(one.chosen_probabilities)
    assert list(columns["probabilities"][0]) == one.probabilities.tolist()
    assert list(columns["items"][0]) == DOSES
    assert columns["context"][0] == '{"age": 0.0}'
    with pytest.raises(StorageError, match="has no agent 'x'"):
        read_log(url, "x")


@pytest.mark.parametrize("read", [lambda agent: agent.log(), lambda agent: agent.log(chunk=1)])
def test_a_log_without_its_library_is_refused_before_it_is_read(file, monkeypatch, read):
    agent = new(file)
    agent.choose(DOSES)
    monkeypatch.setitem(sys.modules, "pandas", None)  # as if it were not installed
    monkeypatch.setattr(agent.reading(), "logged", lambda *given: pytest.fail("it reads"))
    message = (
        "pandas is missing: pip install pandas, or choose another backend: 'polars', 'pyarrow'"
    )
    with pytest.raises(MissingExtraError, match=message):
        read(agent)


def test_pruning_keeps_what_waits_and_changes_no_state(url, monkeypatch):
    monkeypatch.setattr(sql_journal, "UNUSED_FOR", -1.0)  # as if nobody had used them for long
    agent, other, idle = (new(url, id=None) for _ in range(3))
    rows = [{"x": float(at)} for at in range(5)]
    waiting = agent.choose(rows[:2], k=2)
    for at in range(30):
        agent.learn(agent.choose([rows[at % 5], {"x": 0.1 * at}]), float(at))
    before = state_of(other)
    assert agent.prune(keep=timedelta(days=1)) == 0
    assert agent.prune(keep=timedelta(0)) > 20
    assert agent.log()["id"].iloc[0] == waiting.id
    assert state_of(Agent.open(url)) == state_of(other) == state_of(idle) == before
    database = agent.journal.database
    counts = {
        name: database.value(f"SELECT COUNT(*) FROM halfseen_{name}")
        for name in ("sets", "members", "rows")
    }
    assert counts["members"] <= counts["sets"] < 15
    assert counts["rows"] < 20
    other.learn(waiting.id, dict.fromkeys(waiting.chosen, 1.0))
    assert agent.pending == ()
