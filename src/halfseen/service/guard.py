"""What every request passes: key, limits on size and time, one line in the log, metrics."""

import asyncio
import base64
import binascii
import logging
import secrets
import time
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from prometheus_client import Counter, Histogram
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from halfseen.service.settings import Settings, is_loopback
from halfseen.service.threads import TOO_MANY

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

logger = logging.getLogger("halfseen.service")

PUBLIC = "/live", "/health"
"""The paths that need no key; a wrong one is refused there as well."""

HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
]

_REQUESTS = Counter("halfseen_requests", "Requests by path and status", ("path", "status"))
_SECONDS = Histogram("halfseen_request_seconds", "Time to answer a request", ("path",))
_LOGIN = {"WWW-Authenticate": 'Basic realm="halfseen", charset="UTF-8"'}  # a browser then asks


class Guard:
    """Middleware around all routes; whatever happens inside, the answer is JSON without details."""

    def __init__(
        self, app: "ASGIApp", settings: Settings, is_full: Callable[[], bool] = lambda: False
    ) -> None:
        self.app, self.settings, self._is_full = app, settings, is_full
        key = settings.api_key
        self._key = None if key is None else key.get_secret_value().encode()

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0

        async def sending(message: "Message") -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] += HEADERS
            await send(message)

        try:
            response = self._refusal(scope)
            if response is None:
                async with asyncio.timeout(self.settings.timeout):
                    await self.app(scope, self._limited(receive), sending)
        except TimeoutError:
            waited = f"no answer within {self.settings.timeout:g} s"
            response = answer(503, f"{waited}: {scope.get('halfseen.remedy', 'try again')}")
        except Exception:
            logger.exception("internal error in %s", scope["path"])
            response = answer(500, "internal error: the log of the service has the details")
        if response is not None and not status:
            await response(scope, receive, sending)
        self._record(scope, status, time.perf_counter() - began)

    def _refusal(self, scope: "Scope") -> Response | None:
        """Return the answer to a request that goes no further."""
        headers = Headers(scope=scope)
        try:
            host = urlsplit(f"//{headers.get('host', '')}").hostname
        except ValueError:
            return answer(400, "the header Host is no name of a host")
        if self._key is None and not is_loopback(host or ""):
            # A page elsewhere whose name was made to lead here must not reach an open service.
            return answer(403, "without an API key only requests to localhost are answered")
        allowed = self.allows(headers)
        scope["halfseen.has_key"] = allowed
        if not allowed and (scope["path"] not in PUBLIC or "authorization" in headers):
            return answer(401, "send the API key, as Authorization: Bearer KEY", _LOGIN)
        if self._is_full() and scope["path"] not in PUBLIC:  # before its body is read
            return answer(503, TOO_MANY)
        return None

    def allows(self, headers: Headers) -> bool:
        """Return whether a request has the key, as a bearer token or as a browser's password."""
        if self._key is None:
            return True
        scheme, _, sent = headers.get("authorization", "").partition(" ")
        given = sent.strip().encode("latin-1")
        if scheme.lower() == "basic":
            try:
                given = base64.b64decode(given, validate=True).partition(b":")[2]
            except binascii.Error:
                return False
        return scheme.lower() in ("basic", "bearer") and secrets.compare_digest(given, self._key)

    def _limited(self, receive: "Receive") -> "Receive":
        """Return a `receive` that refuses a body which is longer than it may be."""
        n_bytes, most = 0, self.settings.max_body

        async def receiving() -> "Message":
            nonlocal n_bytes
            message = await receive()
            n_bytes += len(message.get("body", b""))
            if n_bytes > most:
                raise HTTPException(413, f"a request has at most {most} bytes (setting max_body)")
            return message

        return receiving

    def _record(self, scope: "Scope", status: int, seconds: float) -> None:
        route = scope.get("route")  # of an unknown path there is none: labels stay few
        path = getattr(route, "path", "other")
        _REQUESTS.labels(path, status).inc()
        _SECONDS.labels(path).observe(seconds)
        level = logging.DEBUG if path in PUBLIC else logging.INFO
        facts = {"method": scope["method"], "path": path, "status": status}
        logger.log(level, "request", extra={"facts": facts | {"ms": round(1e3 * seconds, 2)}})


def answer(status: int, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    """Return an error as every client gets it."""
    extra = {"Retry-After": "1"} if status == 503 else {}
    return JSONResponse({"error": message}, status, headers={**extra, **(headers or {})})
