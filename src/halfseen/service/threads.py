"""The threads in which requests are answered: few, with a queue that is short."""

import asyncio
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from starlette.exceptions import HTTPException

T = TypeVar("T")

N_THREADS, N_WAITING = 8, 64
"""Requests at work, and requests that wait for one of these; further ones are refused."""


TOO_MANY = "too many requests at once: try again"


class Threads:
    """Threads that are daemons: a process that ends does not wait for them."""

    def __init__(self) -> None:
        self._tasks: queue.Queue[tuple[asyncio.Future[Any], Callable[[], Any]] | None]
        self._tasks = queue.Queue(N_WAITING)
        for _ in range(N_THREADS):
            threading.Thread(target=self._work, daemon=True).start()

    @property
    def is_full(self) -> bool:
        """Whether no further call is taken."""
        return self._tasks.full()

    def call(self, function: Callable[..., T], *given: Any, **named: Any) -> asyncio.Future[T]:
        """Call a function in a thread, unless its result is cancelled before it begins.

        Raises
        ------
        HTTPException
            503, if too many wait.
        """
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        try:
            self._tasks.put_nowait((future, partial(function, *given, **named)))
        except queue.Full:
            raise HTTPException(503, TOO_MANY) from None
        return future

    def close(self) -> None:
        """Let threads end that have nothing to do; what waits is dropped."""
        with suppress(queue.Empty):
            while True:
                self._tasks.get_nowait()
        for _ in range(min(N_THREADS, N_WAITING)):
            self._tasks.put_nowait(None)

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            future, function = task
            if not future.cancelled():
                answer = partial(_answer, future, *_outcome(function))
                with suppress(RuntimeError):  # the event loop has ended
                    future.get_loop().call_soon_threadsafe(answer)
            del task, future, function  # not to be kept while it waits


def _outcome(function: Callable[[], T]) -> tuple[T | None, BaseException | None]:
    try:
        return function(), None
    except BaseException as error:  # of the request, not of the thread
        return None, error


def _answer(future: asyncio.Future[Any], found: Any, error: BaseException | None) -> None:
    if future.cancelled():
        return
    if error is None:
        future.set_result(found)
    else:
        future.set_exception(error)
