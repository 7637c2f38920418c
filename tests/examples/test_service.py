"""The web service of examples/ as a real process: killed and started again, nothing is lost."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
OPTIONS = [{"id": "a", "price": 3.5, "colour": "red"}, {"id": "b", "price": None, "colour": "blue"}]

VISITOR = {"country": "DE", "hour": 14, "basket": None}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def service(folder, **environment):
    """Start the service; yield its process and a function that calls it."""
    port = free_port()
    command = [sys.executable, "-m", "uvicorn", "service:app", "--port", str(port)]
    process = subprocess.Popen(
        command, cwd=EXAMPLES, env=os.environ | {"DATA": str(folder)} | environment
    )

    def call(path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data)
        request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    try:
        for _ in range(600):
            try:
                call("/health")
                break
            except OSError:
                assert process.poll() is None, "the service ended"
                time.sleep(0.1)
        yield process, call
    finally:
        process.kill()
        process.wait()


def test_a_killed_service_continues_with_nothing_lost(tmp_path):
    with service(tmp_path) as (process, call):
        made = [call("/rank", {"options": OPTIONS, "context": VISITOR})[1] for _ in range(4)]
        assert {*made[0]["ranking"]} == {"a", "b"}
        assert call("/reward", {"id": made[0]["id"], "reward": 1.0})[0] == 200
        process.send_signal(signal.SIGKILL)
        process.wait()
    with service(tmp_path) as (process, call):
        health = call("/health")[1]
        assert (health["decisions"], health["pending"]) == (4, 3)
        assert health["rewards"]["lately"] == {"n": 1, "mean": 1.0}
        assert call("/reward", {"id": made[1]["id"], "reward": 0.0})[0] == 200
        code, answer = call("/reward", {"id": made[0]["id"], "reward": 1.0})
        assert (code, "was rewarded before" in answer["error"]) == (404, True)
        code, answer = call("/reward", {"id": "x", "reward": 1.0})
        assert (code, "decision x is not known" in answer["error"]) == (404, True)
        code, answer = call("/rank", {"options": [{"id": "a"}, {"id": "a"}]})
        assert (code, "'a' twice" in answer["error"]) == (422, True)
        code, answer = call("/rank", {"options": OPTIONS, "context": VISITOR | {"hour": "noon"}})
        assert (code, "'hour'" in answer["error"]) == (422, True)  # was a number before the kill
        process.send_signal(signal.SIGTERM)  # a proper end writes a checkpoint
        assert process.wait(timeout=60) in (0, -signal.SIGTERM)
    assert (tmp_path / "agent").exists()
    assert len((tmp_path / "events.jsonl").read_bytes().splitlines()) == 1


def test_a_page_that_reports_clicks_alone_is_learned_from(tmp_path):
    """The page of docs/web-page.md: visitors click on the coat and send nothing otherwise.

    All options are equally likely in a share of 5 %: of 60 the coat is shown 58 times, with a
    standard error of 1.4. An agent that never sees a 0 chooses at random: 20 times, error 3.7.
    """
    offers = [{"id": "hat", "price": 3.5}, {"id": "coat"}, {"id": "scarf", "price": 5.0}]
    with service(tmp_path, WAIT="0.05", EVERY="0.05") as (_, call):
        shown = []
        for number in range(120):
            made = call("/rank", {"options": offers})[1]
            shown.append(made["item"])
            if made["item"] == "coat":
                call("/reward", {"id": made["id"], "reward": 1})
            if number % 10 == 9:
                time.sleep(0.2)
        assert shown[60:].count("coat") > 45
        assert call("/health")[1]["pending"] < 20
        assert (tmp_path / "agent").exists()


def test_the_service_has_at_most_60_lines():
    assert len((EXAMPLES / "service.py").read_text("utf-8").splitlines()) <= 60
