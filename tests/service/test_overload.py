"""A service whose storage is busy: what is refused, when, and what it leaves."""

import asyncio
import signal
import sqlite3
import threading
import time
from contextlib import asynccontextmanager, closing

import pytest

from halfseen import read_log
from halfseen.agent.database import Sqlite
from halfseen.agent.deadline import Deadline
from halfseen.service import app as routes
from halfseen.service.app import create_app
from halfseen.service.settings import Settings
from halfseen.service.threads import N_THREADS, N_WAITING
from service.serving import KEY, Client, request, server

ASKED = {"options": [{"sku": "hat", "price": 3.5}, {"sku": "coat"}]}


@asynccontextmanager
async def service(file, **settings):
    """Run the application in this process."""
    app = create_app(Settings.of({"storage": str(file), "id": "sku"} | settings, {}))
    async with app.router.lifespan_context(app):
        yield app


def busy(file):
    """Return a connection of another process that writes to the database until it is closed."""
    holder = sqlite3.connect(file, isolation_level=None, timeout=10.0)
    holder.execute("BEGIN IMMEDIATE")
    return closing(holder)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "shop.db"


def test_a_request_that_timed_out_is_never_decided_afterwards(file):
    async def run():
        async with service(file, timeout=0.3, every=60.0) as app:
            with busy(file):
                answers = await asyncio.gather(*[request(app, "/rank", ASKED) for _ in range(40)])
            assert {status for status, *_ in answers} == {503}
            assert all(answer["error"].endswith(": try again") for *_, answer in answers)
            for _ in range(200):  # those that are at work end
                status, _, made = await request(app, "/rank", ASKED)
                if status == 200:
                    break
            assert status == 200
        return made["id"]

    id = asyncio.run(run())
    assert read_log(file)["id"].tolist() == [id]


def test_too_many_requests_are_refused_at_once_and_threads_stay_few(file):
    most, more = N_THREADS + N_WAITING, 30

    async def run():
        async with service(file, timeout=600.0, every=60.0) as app:
            n_threads = threading.active_count()
            with busy(file):
                asked = [asyncio.ensure_future(request(app, "/rank", ASKED)) for _ in range(most)]
                await asyncio.sleep(0.2)  # all threads are at work
                answers = [await request(app, "/rank", ASKED) for _ in range(more)]
                assert (await request(app, "/live"))[0] == 200
                assert not any(each.done() for each in asked)
                assert threading.active_count() <= n_threads
            done = await asyncio.gather(*asked)
        assert {status for status, *_ in done} == {200}
        assert {status for status, *_ in answers} == {503}
        assert all(int(headers["retry-after"]) > 0 for _, headers, _ in answers)

    asyncio.run(run())
    assert len(read_log(file)) == most


def test_without_the_key_nobody_makes_the_service_work(file):
    async def run():
        async with service(file, api_key=KEY, every=60.0) as app:
            app.state.agent.close()
            for path in ("/live", "/health"):
                assert (await request(app, path))[::2] == (200, {"status": "ok"})
            status, _, answer = await request(app, "/health", authorization=f"Bearer {KEY}")
            assert (status, [*answer]) == (503, ["error"])

    asyncio.run(run())


def test_the_health_without_a_key_tells_that_the_storage_fails(file):
    async def run():
        async with service(file, api_key=KEY, every=0.01) as app:
            app.state.agent.close()
            status = 200
            while status == 200:  # until the next look
                status, _, answer = await request(app, "/health")
                await asyncio.sleep(0.01)
            assert (status, [*answer]) == (503, ["error"])
            assert (await request(app, "/live"))[0] == 200

    asyncio.run(asyncio.wait_for(run(), 30.0))


def test_a_decision_whose_outcome_is_unknown_is_named_and_its_id_resolves_it(file, monkeypatch):
    true, ran = Sqlite._run, []

    def failing(self, statement, /, *values):
        """Fail when the second decision has been committed."""
        found = true(self, statement, *values)
        ran.append(statement.split()[:3])
        if statement == "COMMIT" and ran.count(["INSERT", "INTO", "halfseen_decisions"]) == 2:
            monkeypatch.setattr(Sqlite, "_run", true)
            raise sqlite3.OperationalError("disk I/O error")
        return found

    async def run():
        async with service(file, every=60.0) as app:
            assert (await request(app, "/rank", ASKED))[0] == 200
            status, _, answer = await request(app, "/rank", ASKED)
            assert status == 503
            assert str(file) not in answer["error"]
            id = answer["error"].partition("decision ")[2].split()[0]
            status, _, made = await request(app, "/rank", ASKED | {"id": id})
            assert (status, made["id"]) == (200, id)
            assert (await request(app, "/reward", {"id": id, "reward": 1.0}))[0] == 200
        return id

    monkeypatch.setattr(Sqlite, "_run", failing)
    id = asyncio.run(run())
    log = read_log(file)
    assert (len(log), log["id"].iloc[1], log["reward"].iloc[1]) == (2, id, 1.0)


def test_a_decision_that_is_being_stored_when_its_request_times_out_is_answered(file, monkeypatch):
    given_up, commit, cancel = threading.Event(), Sqlite._run, Deadline.cancel

    def slow(self, statement, /, *values):
        if statement == "COMMIT" and threading.current_thread() in at_work:
            assert given_up.wait(30.0)
        return commit(self, statement, *values)

    def stored(self):
        at_work.append(threading.current_thread())
        return commit_of_deadline(self)

    def cancelled(self):
        found = cancel(self)
        given_up.set()
        return found

    async def run():
        async with service(file, timeout=1.0, every=60.0) as app:
            return await request(app, "/rank", ASKED)

    at_work, commit_of_deadline = [], Deadline.commit
    for kind, name, function in (
        (Sqlite, "_run", slow),
        (Deadline, "commit", stored),
        (Deadline, "cancel", cancelled),
    ):
        monkeypatch.setattr(kind, name, function)
    monkeypatch.setattr(routes, "_COMMITTING", 30.0)
    status, _, made = asyncio.run(run())
    assert (status, given_up.is_set()) == (200, True)
    assert read_log(file)["id"].tolist() == [made["id"]]


def test_a_host_that_is_none_is_400(file):
    async def run():
        async with service(file, every=60.0) as app:
            return await request(app, "/rank", ASKED, host="[")

    status, _, answer = asyncio.run(run())
    assert (status, "Host" in answer["error"]) == (400, True)


def test_a_service_under_load_ends_when_it_is_told_to(file):
    with server(file, "--id", "sku", timeout=1) as (process, port):
        stopped = threading.Event()

        def visit():
            while not stopped.is_set():
                try:
                    Client(port)("/rank", ASKED)
                except OSError:
                    time.sleep(0.01)

        visitors = [threading.Thread(target=visit) for _ in range(60)]
        with busy(file):
            for each in visitors:
                each.start()
            time.sleep(1.5)  # all of its threads wait, and the first requests have timed out
            process.send_signal(signal.SIGTERM)
            try:
                assert process.wait(10) in (0, -signal.SIGTERM)
            finally:
                stopped.set()
        for each in visitors:
            each.join()
