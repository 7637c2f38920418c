"""Starts the processes of the service."""

import asyncio
import json
import logging
import os
import socket
import tempfile
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

import halfseen
from halfseen.service.settings import SETTINGS, Settings

_HUNG = 10  # seconds after which a worker that does not react is replaced
_LEAVING = 5  # seconds that requests have to end when the service is stopped


class Protocol(H11Protocol):
    """HTTP whose answers leave at once.

    Head and body of an answer are two packets; the second would wait up to 40 ms until the client
    has acknowledged the first one.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to serve a client."""
        connection = transport.get_extra_info("socket")
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().connection_made(transport)


def serve(settings: Settings) -> None:
    """Run the service until it is stopped.

    Raises
    ------
    HalfseenError
        The storage cannot be used, or the agent in it has other settings.
    """
    # Before numpy is loaded: workers share the cores.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    from halfseen.service.app import open_agent

    halfseen.warm_up()  # with a message if it takes longer
    open_agent(settings).close()  # creates it once, and says here what is wrong
    with tempfile.TemporaryDirectory(prefix="halfseen-metrics-") as folder:
        # Workers are fresh processes, which read this.
        os.environ |= {SETTINGS: settings.to_json(), "PROMETHEUS_MULTIPROC_DIR": folder}
        uvicorn.run(
            "halfseen.service.app:app_from_environment",
            factory=True,
            http=Protocol,
            host=settings.host,
            port=settings.port,
            workers=settings.workers,
            log_config=log_config(settings.log_level),
            access_log=False,
            server_header=False,
            timeout_worker_healthcheck=_HUNG,
            timeout_graceful_shutdown=_LEAVING,
        )


def log_config(level: str) -> dict[str, Any]:
    """Return a configuration of logging: one JSON object per line on the standard error stream."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": {"()": "halfseen.service.serving.JsonLines"}},
        "handlers": {"err": {"class": "logging.StreamHandler", "formatter": "json"}},
        "filters": {"deaths": {"()": "halfseen.service.serving.Deaths", "level": level.upper()}},
        "loggers": {
            name: {"handlers": ["err"], "level": level.upper(), "propagate": False}
            for name in ("halfseen", "uvicorn")
        }
        | {"uvicorn.error": {"level": "DEBUG", "filters": ["deaths"]}},
    }


class Deaths(logging.Filter):
    """Makes a warning of uvicorn's note that a worker died; lets pass what has the level."""

    def __init__(self, level: str) -> None:
        super().__init__()
        self.level = logging.getLevelNamesMapping()[level]

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record passes."""
        if record.getMessage().endswith("] died"):
            record.levelno, record.levelname = logging.WARNING, "WARNING"
            record.msg = f"{record.msg}: a new one replaces it"
        return record.levelno >= self.level


class JsonLines(logging.Formatter):
    """One JSON object per line.

    Examples
    --------
    >>> record = logging.LogRecord("halfseen", 20, "", 0, "ready on %d", (8000,), None)
    >>> line = json.loads(JsonLines().format(record))
    >>> line["level"], line["message"]
    ('info', 'ready on 8000')
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line: dict[str, Any] = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "process": record.process,
            "message": record.getMessage(),
            **getattr(record, "facts", {}),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)
