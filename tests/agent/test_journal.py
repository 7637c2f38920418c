"""Nothing that was acknowledged is lost, and nothing is learned twice."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent.tables import looks, offers, walk
from halfseen import (
    Agent,
    AmbientOful,
    Greedy,
    InvalidSettingError,
    JournalError,
    LatentUcb,
)
from halfseen.agent import storage

TESTS = Path(__file__).resolve().parents[1]


@pytest.fixture
def files(tmp_path):
    return tmp_path / "checkpoint", tmp_path / "events.jsonl"


def new(files, **settings):
    return Agent.open(*files, **{"policy": AmbientOful(dim=1), "id": "sku"} | settings)


def test_killed_processes_lose_nothing():
    """The soak test kills 200."""
    command = [sys.executable, "-m", "robustness.kills", "25", "0"]
    path = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("policy", [AmbientOful(dim=1), LatentUcb()], ids=repr)
@pytest.mark.parametrize("saved_after", [None, 0, 7])
def test_an_agent_continues_bit_by_bit_from_its_journal(files, policy, saved_after):
    agent = new(files, policy=policy)
    waiting = []
    for at, (rows, rewards) in enumerate(offers(15)):
        if at == saved_after:
            agent.save(files[0])
        waiting.append(agent.choose(rows))
        if at % 3 == 1:
            agent.learn(waiting.pop(0), rewards[0])
    agent.learn([waiting.pop(), waiting.pop()], [0.5, 0.25])
    agent.observe([row | {"sku": "same"} for row in offers(1)[0][0]], offers(1)[0][1])
    agent.close()
    again = Agent.open(*files)
    assert again.pending == agent.pending
    assert again.columns == agent.columns
    rows = offers(1, seed=3)[0][0]
    assert again.score(rows) == agent.score(rows)
    assert looks(again.choose(rows))["scores"] == [sum(each[1:3]) for each in agent.score(rows)]


def test_a_line_says_what_was_chosen_among_what(files):
    agent = new(files)
    decision = agent.choose([{"sku": "a", "price": 1.5, "colour": None}, {"sku": "b"}])
    agent.learn(decision.id, 0.5)
    start, choose, learn = map(json.loads, files[1].read_text().splitlines())
    assert (start["event"], start["n"]) == ("start", 1)
    assert choose["id"] == learn["id"] == decision.id
    assert choose["rows"]["items"] == ["a", "b"]
    assert choose["rows"]["columns"][0] == [1.5, None]
    assert learn["reward"] == 0.5


def test_a_choice_that_comes_out_differently_counts_as_it_was_made(files, monkeypatch):
    agent = new(files)
    rows = [{"sku": "a", "x": 1.0}, {"sku": "b", "x": 2.0}]
    decision = agent.choose(rows)
    agent.close()
    lines = files[1].read_text().splitlines()
    event = json.loads(lines[1])
    del event["crc"]
    event["arm"] = 1 - event["arm"]
    files[1].write_bytes(lines[0].encode() + b"\n" + storage._line(event))
    again = Agent.open(*files)
    assert {again.pending[0].item, decision.item} == {"a", "b"}
    again.learn(decision.id, 1.0)
    again.save(files[0])
    assert again.pending == ()


TORN = {
    "half a line": b'{"n":4,"event":"le',
    "a line without its end": b'{"n":4,"event":"learn","id":"x", "crc": "00000000"}',
    "zeros": b"\x00" * 5000,
}


@pytest.mark.parametrize("torn", TORN.values(), ids=TORN)
def test_what_is_torn_at_the_end_is_cut_off(files, torn):
    agent = new(files)
    agent.choose([{"sku": "a", "x": 1.0}])
    agent.close()
    whole = files[1].read_bytes()
    files[1].write_bytes(whole + torn)
    again = Agent.open(*files)
    assert files[1].read_bytes() == whole
    again.learn(again.pending[0].id, 1.0)
    again.close()
    assert Agent.open(*files).pending == ()


def test_the_first_event_may_be_torn(files):
    agent = new(files)
    agent.close()
    whole = files[1].read_bytes()
    for size in (0, 3, 100, len(whole) - 1):
        files[1].write_bytes(whole[:size])
        new(files).close()
        assert Agent.open(*files).health()["decisions"] == 0


def test_damage_is_refused(files):
    agent = new(files)
    walk(agent, offers(3))
    agent.close()
    whole = files[1].read_bytes()
    lines = whole.splitlines(keepends=True)
    for damaged in (whole.replace(b"0.", b"1.", 1), whole + b'{"n":8, "crc": "00000000"}\n'):
        files[1].write_bytes(damaged)
        with pytest.raises(JournalError, match=r"line \d of .* is damaged"):
            Agent.open(*files)
        assert files[1].read_bytes() == damaged
    files[1].write_bytes(b"".join(lines[:2] + lines[3:]))
    with pytest.raises(JournalError, match="events 3 to 3 are missing"):
        Agent.open(*files)


@pytest.mark.parametrize("content", [b"sku,price\na,3.5\n", b"sku,price", b'{"a": 1}\n', b"\n"])
def test_a_file_that_is_no_journal_is_refused_and_stays_as_it_is(files, content):
    files[1].write_bytes(content)
    with pytest.raises(JournalError, match=r"events\.jsonl is no journal"):
        new(files)
    assert files[1].read_bytes() == content


def test_after_a_checkpoint_the_journal_starts_anew(files):
    agent = new(files)
    for rounds in range(3):
        walk(agent, offers(3, seed=rounds))
        agent.save(files[0])
        assert len(files[1].read_bytes().splitlines()) == 1
    agent.close()
    assert Agent.open(*files).health()["rewards"]["lately"]["n"] == 9


def test_a_checkpoint_before_the_journal_was_emptied_counts_no_event_twice(files):
    agent = new(files)
    walk(agent, offers(3))
    journal = files[1].read_bytes()
    agent.save(files[0])
    agent.close()
    files[1].write_bytes(journal)  # as if the process had been killed in between
    assert Agent.open(*files).health()["rewards"]["lately"]["n"] == 3


def test_an_older_checkpoint_is_refused(files):
    agent = new(files)
    agent.save(files[0])
    old = files[0].read_bytes()
    walk(agent, offers(3))
    agent.save(files[0])
    agent.close()
    files[0].write_bytes(old)
    with pytest.raises(JournalError, match="older than the journal"):
        Agent.open(*files)


def test_a_missing_checkpoint_is_noticed(files):
    agent = new(files)
    for rounds in range(4):
        walk(agent, offers(2, seed=rounds))
        agent.save(files[0])
    agent.close()
    files[0].unlink()
    with pytest.raises(JournalError, match=r"events 1 to \d+ are missing"):
        Agent.open(*files)


def test_a_journal_that_cannot_be_written_changes_nothing(files, monkeypatch):
    agent = new(files)
    rows = offers(1)[0][0]
    decision = agent.choose(rows)
    before, columns, content = agent.pending, agent.columns, files[1].read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    real = os.fsync
    monkeypatch.setattr(storage.os, "fsync", lambda d: full(d) if not failed.pop() else real(d))
    for call in (
        lambda: agent.choose([{"sku": "a", "new": 1.0}]),
        lambda: agent.learn(decision, 1.0),
        lambda: agent.observe([{"sku": "a", "new": 1.0}], [1.0]),
    ):
        failed = [True, False]  # appending fails, cutting off does not
        with pytest.raises(JournalError, match="No space left"):
            call()
        assert (agent.pending, agent.columns) == (before, columns)
        assert files[1].read_bytes() == content
    monkeypatch.undo()
    agent.learn(decision, 1.0)
    agent.close()
    assert Agent.open(*files).pending == ()


def test_a_journal_has_one_writer(files):
    agent = new(files)
    with pytest.raises(JournalError, match="is in use"):
        Agent.open(*files)
    agent.close()
    with pytest.raises(JournalError, match="closed"):
        agent.choose([{"sku": "a", "x": 1.0}])
    with pytest.raises(JournalError, match="closed"):
        agent.save(files[0])
    assert not files[0].exists()
    Agent.open(*files).close()


def test_a_forked_process_does_not_write_into_the_journal_of_its_parent(files, monkeypatch):
    agent = new(files)
    content = files[1].read_bytes()
    monkeypatch.setattr(storage.os, "getpid", lambda: -1)
    with pytest.raises(JournalError, match=r"before this process was forked.*in each worker"):
        agent.choose([{"sku": "a", "x": 1.0}])
    with pytest.raises(JournalError, match="before this process was forked"):
        agent.save(files[0])
    assert files[1].read_bytes() == content
    assert not files[0].exists()
    assert agent.pending == ()


def test_settings_of_an_agent_that_continues_must_be_the_same(files):
    new(files).close()
    for settings, message in (
        ({"id": "name"}, "id is 'sku' in the checkpoint or journal, got 'name'"),
        ({"policy": Greedy(dim=1)}, "policy is .*AmbientOful"),
    ):
        with pytest.raises(InvalidSettingError, match=message):
            Agent.open(*files, **settings)
    new(files).close()
