"""Databases for tests: a file, or a PostgreSQL server that the tests start themselves."""

import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

REQUIRED = os.environ.get("HALFSEEN_POSTGRES") == "required"  # set by `make test-postgres`
LISTENING = "-c listen_addresses=127.0.0.1 -c max_connections=40"


class Server:
    """A server in a folder of its own; it may be killed and started again."""

    def __init__(self, folder):
        self.folder, self.data = folder, folder / "data"
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        folders = [Path(each).parent for each in [shutil.which("initdb")] if each]
        folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
        assert folders, "PostgreSQL is not installed: apt-get install postgresql"
        self.programs, self.user = folders[0], {}
        if os.getuid() == 0:  # PostgreSQL does not run as root
            self.user = {"user": "postgres", "group": "postgres"}
            shutil.chown(folder, "postgres")
        self._run("initdb", "-D", self.data, "-A", "trust", "-U", "halfseen", "-N", "-E", "UTF8")
        self.start()

    def start(self):
        options = f"-p {self.port} -k {self.folder} {LISTENING}"
        log = self.folder / "log"
        self._run("pg_ctl", "-D", self.data, "-o", options, "-l", log, "-w", "start")

    def stop(self, mode="fast"):
        self._run("pg_ctl", "-D", self.data, "-m", mode, "-w", "stop")

    @property
    def url(self):
        return f"postgresql://halfseen:hidden@127.0.0.1:{self.port}/postgres"

    def _run(self, program, *given):
        command = [self.programs / program, *given]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=self.folder, **self.user)


@pytest.fixture(scope="session")
def server():
    """Return a running PostgreSQL server."""
    if not REQUIRED:
        pytest.skip("PostgreSQL: `make test-postgres` installs it and runs these tests")
    with tempfile.TemporaryDirectory() as folder:  # pytest's own are closed to other users
        started = Server(Path(folder))
        yield started
        started.stop("immediate")


@pytest.fixture
def file(tmp_path):
    """Return the path of a database of SQLite."""
    return str(tmp_path / "shop.db")


@pytest.fixture(params=["sqlite", "postgres"])
def url(request, file):
    """Return where a database may be: a file, or a server, whose tables are dropped."""
    if request.param == "sqlite":
        return file
    server = request.getfixturevalue("server")
    import psycopg

    with psycopg.connect(server.url) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    return server.url
