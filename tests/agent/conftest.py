"""Databases for tests: a file, or a PostgreSQL server that the tests start themselves."""

import os
from contextlib import closing

import pytest

from agent.servers import Server

REQUIRED = os.environ.get("HALFSEEN_POSTGRES") == "required"  # set by `make test-postgres`


@pytest.fixture(scope="session")
def server():
    """Return a running PostgreSQL server."""
    if not REQUIRED:
        pytest.skip("PostgreSQL: `make test-postgres` installs it and runs these tests")
    with closing(Server()) as started:
        yield started


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
