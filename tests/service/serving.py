"""A real server and a client for it, and the application in this process."""

import asyncio
import base64
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

KEY = "a key of more than 16 characters"


class Client:
    """One connection, which is opened anew if the worker at its other end is gone."""

    def __init__(self, port, key=None):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.headers = {} if key is None else {"Authorization": f"Bearer {key}"}

    def __del__(self):
        self.connection.close()

    def __call__(self, path, body=None, *, method=None, **headers):
        """Return status and content, as text unless it is a JSON object."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        sent = {"Content-Type": "application/json"} | self.headers | headers
        method = method or ("GET" if data is None else "POST")
        try:
            self.connection.request(method, path, data, sent)
            answer = self.connection.getresponse()
            text = answer.read().decode()
        except BaseException:
            self.connection.close()
            raise
        self.answer = answer
        is_json = answer.headers["content-type"] == "application/json"
        return answer.status, json.loads(text) if is_json else text


async def request(app, path, body=None, **headers):
    """Send a request to an application in this process; return status, headers and content."""
    sent, answers = asyncio.Event(), []

    async def receive():
        if sent.is_set():
            await asyncio.sleep(3600)
        sent.set()
        return {"type": "http.request", "body": b"" if body is None else json.dumps(body).encode()}

    async def send(message):
        answers.append(message)

    given = {"host": "localhost", "content-type": "application/json"} | headers
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "GET" if body is None else "POST",
        "scheme": "http",
        "path": path,
        "query_string": b"",
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in given.items()],
    }
    await app(scope, receive, send)
    found = {name.decode(): value.decode() for name, value in answers[0]["headers"]}
    content = b"".join(each.get("body", b"") for each in answers[1:])
    return answers[0]["status"], found, json.loads(content)


def basic(key):
    return "Basic " + base64.b64encode(f"anyone:{key}".encode()).decode()


@contextmanager
def server(storage, *arguments, key=None, **settings):
    """Start `halfseen serve`; yield its process and port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    given = {f"HALFSEEN_{name.upper()}": str(value) for name, value in settings.items()}
    if key is not None:
        given["HALFSEEN_API_KEY"] = key
    command = [sys.executable, "-m", "halfseen", "serve", str(storage), "--port", str(port)]
    log = open(f"{storage}.log", "w+")  # noqa: SIM115
    process = subprocess.Popen(
        [*command, *arguments], env=os.environ | given, stderr=log, stdout=log
    )
    try:
        for _ in range(600):
            with suppress(OSError):
                if Client(port)("/health")[0] == 200:
                    break
            assert process.poll() is None, Path(f"{storage}.log").read_text()
            time.sleep(0.1)
        yield process, port
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        finally:
            process.kill()
            log.close()


def logged(storage):
    """Return the lines of the log, each of which must be JSON."""
    lines = Path(f"{storage}.log").read_text().splitlines()
    return [json.loads(line) for line in lines if not line.startswith("halfseen: preparing")]


def workers_of(process):
    """Return the processes that serve, from the tables of the kernel."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [
        int(pid) for pid in children if "spawn_main" in Path(f"/proc/{pid}/cmdline").read_text()
    ]
