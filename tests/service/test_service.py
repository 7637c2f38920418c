"""`halfseen serve` as a real process."""

import asyncio
import json
import os
import random
import re
import resource
import signal
import threading
import time
from datetime import timedelta
from pathlib import Path

import pytest

from halfseen import Agent
from halfseen.errors import InvalidSettingError, StorageError
from halfseen.service.app import open_agent
from halfseen.service.dashboard import Dashboard
from halfseen.service.guard import Guard
from halfseen.service.settings import Settings
from service.serving import KEY, Client, basic, logged, server, workers_of

OPTIONS = [{"sku": "hat", "price": 3.5, "colour": "red"}, {"sku": "coat", "colour": "blue"}]
ITEMS = {"hat": 0.1, "coat": 0.6, "scarf": 0.1}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """Return the file and port of a service with a key and small limits."""
    storage = tmp_path_factory.mktemp("service") / "shop.db"
    limits = {"max_body": 2000, "max_options": 3}
    with server(storage, "--id", "sku", key=KEY, **limits) as (_, port):
        yield storage, port


@pytest.fixture(scope="module")
def unguarded(tmp_path_factory):
    """Return folder, process and port of a service without a key."""
    folder = tmp_path_factory.mktemp("open")
    with server(folder / "shop.db", "--id", "sku") as (process, port):
        yield folder, process, port


@pytest.fixture
def call(guarded):
    return Client(guarded[1], KEY)


# Answers


def test_a_decision_and_its_reward(call):
    status, made = call("/rank", {"options": OPTIONS, "context": {"hour": 14}, "k": 2})
    assert status == 200
    assert {*made["ranking"]} == {"hat", "coat"} == {place["item"] for place in made["places"]}
    assert made["item"] == made["places"][0]["item"]
    assert made["places"][1]["probability"] == 1.0
    click = {"id": made["id"], "reward": 1.0, "item": made["places"][1]["item"]}
    assert call("/reward", click) == (200, {"accepted": True})
    assert call("/reward", click)[0] == 200  # a click that is sent twice counts once
    assert call("/reward", click | {"reward": 2.0})[0] == 409
    first, second = (json.loads(line) for line in call("/log?limit=1")[1].splitlines())
    assert (first["id"], first["context"], first["reward"]) == (made["id"], '{"hour": 14.0}', None)
    assert (second["item"], second["reward"], second["status"]) == (click["item"], 1.0, "rewarded")
    assert made["id"] not in call(f"/log?after={first['number']}")[1]


def test_the_same_id_returns_the_same_decision(call):
    asked = {"options": OPTIONS, "id": "visit-1"}
    (_, one), (_, two) = call("/rank", asked), call("/rank", asked)
    assert (one["item"], one["places"]) == (two["item"], two["places"])
    status, answer = call("/rank", asked | {"options": OPTIONS[:1]})
    assert (status, "another request" in answer["error"]) == (409, True)


@pytest.mark.parametrize(
    ("path", "body", "status", "text"),
    [
        ("/reward", {"id": "x", "reward": 1.0}, 404, "x"),
        ("/reward", {"id": "x", "reward": "much"}, 422, "reward"),
        ("/reward", {"id": "x"}, 422, "reward: field required"),
        ("/reward", {"id": "x", "reward": 1.0, "final": False}, 422, "needs a key, such as"),
        ("/rank", {"options": []}, 422, "options"),
        ("/rank", {"options": [{"sku": "a", "price": [1]}]}, 422, "'price' must not be nested"),
        ("/rank", {"options": OPTIONS, "context": {"hour": "noon"}}, 422, "hour"),
        ("/rank", {"options": [{"sku": str(n)} for n in range(4)]}, 422, "at most 3 options"),
        ("/rank", {"options": OPTIONS, "k": 3}, 422, "k"),
        ("/rank", {"options": [[1, 2], [3, 4]]}, 422, "'sku' is not in the table"),
        ("/rank", {"options": [None, 1.5]}, 422, "dimensions"),
        ("/rank", {"options": [{"sku": "a", "x": "x" * 1001}]}, 422, "at most 1000 characters"),
        ("/rank", b'{"options": [{"sku": "\\ud800"}]}', 422, "not valid Unicode"),
        ("/rank", b'{"options": [{"sku": "a", "\\ud800": 1}]}', 422, "not valid Unicode"),
        ("/rank", b'{"options": [{"sku": "a", "x": 1' + b"0" * 1500 + b"}]}", 422, "column 'x'"),
        ("/rank", b'{"options": [{"sku": "a"}], "id": "\\ud800"}', 422, "id"),
        ("/rank", b"{", 422, "JSON"),
        ("/rank", b"[" * 1900, 400, ""),
        ("/rank", b"1" * 2001, 413, "at most 2000 bytes"),
        ("/rank", None, 405, ""),
        ("/nothing", None, 404, ""),
    ],
)
def test_a_mistake_is_answered_in_json_with_what_is_wrong(call, path, body, status, text):
    call("/rank", {"options": OPTIONS, "context": {"hour": 14}})
    found, answer = call(path, body)
    assert found == status
    assert [*answer] == ["error"]
    assert text in answer["error"]


def test_a_body_that_is_not_declared_as_json_is_refused_with_the_remedy(call):
    declared = {"Content-Type": "application/x-www-form-urlencoded"}
    status, answer = call("/rank", {"options": OPTIONS}, **declared)
    assert (status, answer["error"]) == (422, "send JSON with content-type: application/json")


def test_a_body_without_a_length_is_limited_as_well(call):
    call.connection.request("POST", "/rank", iter([b" " * 1500] * 2), call.headers)
    answer = call.connection.getresponse()
    assert (answer.status, "error" in json.load(answer)) == (413, True)


def test_a_key_opens_everything_and_without_one_there_is_only_the_health(guarded, call):
    stranger = Client(guarded[1])
    for path in ("/live", "/health"):
        assert stranger(path) == (200, {"status": "ok"})
        assert stranger(path, Authorization="Bearer wrong")[0] == 401
    assert "decisions" in call("/health")[1]
    for path in ("/", "/log", "/metrics", "/openapi.json", "/dashboard.json", "/nothing"):
        assert stranger(path)[0] == 401
        assert stranger(path, Authorization="Bearer wrong")[0] == 401
        assert stranger(path, Authorization="Basic %%%")[0] == 401
    assert "Basic" in stranger.answer.headers["WWW-Authenticate"]  # so that a browser asks
    assert stranger("/", Authorization=basic("wrong"))[0] == 401
    assert stranger("/", Authorization=basic(KEY))[0] == 200


def test_what_openapi_shows_as_an_example_works(call):
    status, schema = call("/openapi.json")
    assert status == 200
    assert {"/rank", "/reward", "/live", "/health", "/metrics", "/log"} == {*schema["paths"]}
    assert {"404", "409"} <= {*schema["paths"]["/reward"]["post"]["responses"]}
    assert schema["components"]["securitySchemes"]["HTTPBearer"]["scheme"] == "bearer"
    for path, name, expected in (("/rank", "RankRequest", 200), ("/reward", "RewardRequest", 404)):
        fields = schema["components"]["schemas"][name]["properties"].items()
        example = {field: each["examples"][0] for field, each in fields if "examples" in each}
        assert call(path, example)[0] == expected


def test_logs_are_json_lines_without_keys_and_bodies(guarded, call):
    call("/rank", {"options": [{"sku": "secret-item"}]})
    call("/health")
    lines = logged(guarded[0])
    seen = [line for line in lines if line.get("path") == "/rank"]
    assert {"time", "level", "method", "status", "ms", "process"} <= {*seen[-1]}
    assert not any(KEY in str(line) or "secret-item" in str(line) for line in lines)


@pytest.mark.parametrize(("does", "status"), [(asyncio.sleep, 503), (divmod, 500)])
def test_a_request_that_takes_too_long_or_fails_gets_an_answer_without_details(does, status):
    async def app(scope, receive, send):
        await does(1, 0) if does is divmod else await does(60)

    async def sent(message):
        answers.append(message)

    answers, settings = [], Settings.of({"storage": "shop.db", "timeout": 0.01}, {})
    scope = {"type": "http", "path": "/", "method": "GET", "headers": [(b"host", b"localhost")]}
    asyncio.run(Guard(app, settings)(scope, None, sent))
    assert answers[0]["status"] == status
    assert [*json.loads(answers[1]["body"])] == ["error"]
    assert b"divi" not in answers[1]["body"]


# Storage that fails


def test_a_storage_that_fails_is_503_and_shows_no_path(unguarded):
    folder, _, port = unguarded
    call = Client(port)
    made = call("/rank", {"options": OPTIONS})[1]
    (folder / "moved").mkdir()
    for file in folder.glob("shop.db*"):
        if file.name != "shop.db.log":
            file.rename(folder / "moved" / file.name)
    for path, body in (
        ("/rank", {"options": OPTIONS}),
        ("/reward", {"id": made["id"], "reward": 1.0}),
        ("/health", None),
        ("/log", None),
    ):
        status, answer = call(path, body)
        assert (status, path) == (503, path)
        assert "try again" in answer["error"]
        assert str(folder) not in str(answer)
        assert "shop.db" not in str(answer)
    for file in (folder / "moved").iterdir():
        file.rename(folder / file.name)
    assert call("/reward", {"id": made["id"], "reward": 1.0})[0] == 200
    lines = logged(folder / "shop.db")
    assert any("shop.db" in line["message"] for line in lines)  # the operator sees it


def test_a_full_disk_is_503_and_the_service_resumes_by_itself(unguarded):
    _, process, port = unguarded
    call = Client(port)
    before = call("/health")[1]["rewards"]["lately"]["n"]
    click = {"id": call("/rank", {"options": OPTIONS})[1]["id"], "reward": 1.0}
    full, free = (20_000, resource.RLIM_INFINITY), (resource.RLIM_INFINITY,) * 2
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, full)  # no file grows any more
    answers = [call("/rank", {"options": OPTIONS}) for _ in range(20)] + [call("/reward", click)]
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, free)
    assert {status for status, _ in answers} <= {200, 503}
    assert [status for status, _ in answers[-2:]] == [503, 503]
    assert "shop.db" not in str(answers)
    assert call("/reward", click)[0] == 200
    assert call("/health")[1]["rewards"]["lately"]["n"] == before + 1


def test_a_service_that_cannot_start_says_why_in_one_line(tmp_path):
    (tmp_path / "notes.txt").write_text("not a database")
    failed = pytest.raises(AssertionError, match="not a halfseen database")
    with failed as caught, server(tmp_path / "notes.txt"):
        pass
    assert "Traceback" not in str(caught.value)
    assert (tmp_path / "notes.txt").read_text() == "not a database"


# Settings


def test_flags_come_before_the_environment_and_that_before_a_file(tmp_path):
    file = tmp_path / "service.toml"
    file.write_text('storage = "a.db"\nport = 1\nworkers = 2\nignore = ["x", "y, z"]\n')
    settings = Settings.of({"port": 3}, {"HALFSEEN_PORT": "2", "HALFSEEN_WORKERS": "5"}, file)
    assert (settings.storage, settings.port, settings.workers) == ("a.db", 3, 5)
    assert settings.ignore == ("x", "y, z")
    for each in (settings, Settings.of({"storage": "a.db", "api_key": 16 * "x"}, {})):
        assert Settings.model_validate_json(each.to_json()) == each


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({}, "^name a database: halfseen serve shop.db$"),
        ({"storage": "a", "host": "0.0.0.0"}, "HALFSEEN_API_KEY"),
        ({"storage": "a", "api_key": "short"}, "^api_key has 5 characters, needs at least 16$"),
        ({"storage": "a", "uniform_share": 2}, "uniform_share: .*, got 2"),
        ({"storage": "a", "colour": 2}, "colour: "),
    ],
)
def test_settings_that_are_wrong_are_named(given, text):
    with pytest.raises(InvalidSettingError, match=text) as caught:
        Settings.of(given, {})
    assert "short" not in str(caught.value)


def test_the_page_on_the_service_has_settings_that_work(tmp_path):
    page = (Path(__file__).parents[2] / "docs/web-page.md").read_text("utf-8")
    (block,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    (tmp_path / "service.toml").write_text(block)
    settings = Settings.of({}, {}, tmp_path / "service.toml")
    assert (settings.ignore, settings.workers) == (("page", "session"), 2)


def test_settings_that_contradict_a_stored_agent_are_named_one_by_one(tmp_path):
    given = {"storage": str(tmp_path / "shop.db"), "explore": "thompson"}
    open_agent(Settings.of(given, {})).close()
    for more, text in (
        ({"uniform_share": 0.2}, "^uniform_share is 0.05 in the database, got 0.2: leave it out"),
        ({"explore": "ucb"}, "^explore is 'thompson' in the database, got 'ucb'"),
        ({"explore": "thomson"}, "^explore must be one of"),
    ):
        with pytest.raises(InvalidSettingError, match=text):
            open_agent(Settings.of(given | more, {}))
    open_agent(Settings.of({"storage": given["storage"], "uniform_share": 0.05}, {})).close()
    with Agent.open(given["storage"], explore="thompson", uniform_share=0.05) as agent:
        assert agent.learner.refit == "background"


def test_the_mean_reward_of_the_dashboard_is_that_of_the_log(tmp_path):
    with Agent.open(tmp_path / "shop.db", uniform_share=0.5) as agent:
        made = [agent.choose(["low", "high"], k=2) for _ in range(5)]
        assert Dashboard(agent).data()["decisions"][0]["parts"] == []  # chosen at random
        agent.learn(made[0].id, {made[0].chosen[0]: 1.0, made[0].chosen[1]: 100.0})
        agent.learn(made[1].id, 2.0, final=False, key="click")
        agent.learn(made[2].id, 3.0, final=False, key="click")
        agent.learn(made[2].id, 4.0)
        agent.expire(before=timedelta(0), reward=-1.0)
        agent.learn(made[3].id, 1000.0)  # late
        pending = agent.choose(["low", "high"])
        agent.learn(pending.id, 50.0, final=False, key="click")
        log, shown = agent.log(), Dashboard(agent).data()
    first = log[(log["place"] == 0) & (log["status"] != "pending")]["reward"]
    assert first.tolist() == [1.0, 2.0, 7.0, -1.0, -1.0]
    assert shown["reward"] == {"n": 5, "mean": first.mean()}
    assert (shown["bins"][0]["rewards"], shown["bins"][0]["mean"]) == (5, first.mean())


def test_the_dashboard_does_not_hide_that_the_storage_fails(tmp_path, monkeypatch):
    def fail(decision, **more):
        raise StorageError("locked")

    with Agent.open(tmp_path / "shop.db") as agent:
        agent.choose(["low", "high"])
        monkeypatch.setattr(agent, "explain", fail)
        with pytest.raises(StorageError, match="locked"):
            Dashboard(agent).data()


def test_an_open_service_answers_no_other_host(unguarded):
    port = unguarded[2]
    assert Client(port)("/log", Host="rebound.example")[0] == 403
    assert Client(port)("/log", Host=f"localhost:{port}")[0] == 200


# Traffic


def test_two_workers_learn_from_clicks_alone_and_one_may_be_killed(tmp_path):
    """Three items are clicked in 60, 10 and 10 % of views; no click is 0 once it expires.

    Of the last 300 choices at least 80 % must be the best item: with a uniform share of 5 % one
    that has learned chooses it in 96.7 %, one that never sees a 0 in 33 %.
    """
    storage, draw, shown, clicked = tmp_path / "shop.db", random.Random(1), [], []
    more = ("--id", "sku", "--workers", "2", "--expire-after", "0.3")
    with server(storage, *more, every=0.1, durability="crash", log_level="warning") as (
        process,
        port,
    ):
        calls = [Client(port) for _ in range(4)]

        def visit(call):
            made = call("/rank", {"options": [{"sku": item} for item in ITEMS]})[1]
            shown.append(made["item"])
            if draw.random() < ITEMS[made["item"]]:
                assert call("/reward", {"id": made["id"], "reward": 1})[0] == 200
                clicked.append(made["id"])

        def visits(call, n):
            for _ in range(n):
                visit(call)

        for _ in range(3):  # rounds of visitors, four at a time
            threads = [threading.Thread(target=visits, args=(call, 20)) for call in calls]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            time.sleep(0.5)
        for number in range(300):
            visit(calls[number % 4])
        assert shown[-300:].count("coat") >= 240
        metrics = Client(port)("/metrics")[1]
        counted = [line for line in metrics.splitlines() if 'path="/rank",status="200"' in line]
        assert sum(float(line.split()[-1]) for line in counted) >= len(shown)  # of all workers
        first = workers_of(process)
        assert len(first) == 2
        os.kill(first[0], signal.SIGKILL)
        for number in range(40):
            try:
                visit(calls[number % 4])
            except OSError:  # its worker was killed: the client asks again
                visit(Client(port))
        died, ends = [], time.monotonic() + 20
        while not died and time.monotonic() < ends:
            time.sleep(0.1)
            died = [line for line in logged(storage) if line["message"].endswith("replaces it")]
        assert [line["level"] for line in died] == ["warning"]
        log = [json.loads(line) for line in Client(port)("/log?limit=10000")[1].splitlines()]
        stored = {row["id"] for row in log if row["reward"] or row["late"]}
        assert {*clicked} <= stored  # none that was acknowledged is lost
        health = Client(port)("/health")[1]
        while health["decisions"] < len(shown) and time.monotonic() < ends:
            time.sleep(0.1)  # the worker that was killed may have been the learner
            health = Client(port)("/health")[1]
        assert health["decisions"] >= len(shown)
        assert health["lift"]["lift"] > 0.1
