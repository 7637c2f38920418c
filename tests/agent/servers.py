"""A PostgreSQL server that tests start themselves."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

LISTENING = "-c listen_addresses=127.0.0.1 -c max_connections=40"


class Server:
    """A server in a folder of its own; it may be killed and started again."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp())  # pytest's own are closed to other users
        self.data = self.folder / "data"
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.user = {}
        if os.getuid() == 0:  # PostgreSQL does not run as root
            self.user = {"user": "postgres", "group": "postgres"}
            shutil.chown(self.folder, "postgres")
        self._run("initdb", "-D", self.data, "-A", "trust", "-U", "halfseen", "-N", "-E", "UTF8")
        self.start()

    @staticmethod
    def programs():
        """Return the folder of the programs; None if they are not installed."""
        found = [Path(each).parent for each in [shutil.which("initdb")] if each]
        found += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
        return found[0] if found else None

    @classmethod
    def maybe(cls):
        """Return a running server if there can be one; else what has no URL."""
        if cls.programs() is None:
            return SimpleNamespace(url=None, close=lambda: None)
        return cls()

    def start(self):
        options = f"-p {self.port} -k {self.folder} {LISTENING}"
        log = self.folder / "log"
        self._run("pg_ctl", "-D", self.data, "-o", options, "-l", log, "-w", "start")

    def stop(self, mode="fast"):
        self._run("pg_ctl", "-D", self.data, "-m", mode, "-w", "stop")

    @contextmanager
    def frozen(self):
        """Freeze all processes of the server, which keep what they are sent."""
        main = int((self.data / "postmaster.pid").read_text().split()[0])
        others = Path(f"/proc/{main}/task/{main}/children").read_text().split()
        pids = [main, *map(int, others)]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)

    def fresh(self):
        """Drop all tables and return the URL."""
        import psycopg

        with psycopg.connect(self.url) as connection:
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")
        return self.url

    def close(self):
        """Stop the server and delete what it has."""
        self.stop("immediate")
        shutil.rmtree(self.folder)

    @property
    def url(self):
        return f"postgresql://halfseen:hidden@127.0.0.1:{self.port}/postgres"

    def _run(self, program, *given):
        folder = self.programs()
        assert folder is not None, "PostgreSQL is not installed: apt-get install postgresql"
        subprocess.run(
            [folder / program, *given],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd=self.folder,
            **self.user,
        )
