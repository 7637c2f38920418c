"""The journal: a file to which events are appended, each on disk before the call returns."""

import json
import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from halfseen.errors import JournalError

try:
    import fcntl
except ImportError:  # Windows: two processes are not kept apart there
    fcntl = None  # type: ignore[assignment]

Event = dict[str, Any]

_START, _CHECK = b'{"n":', b', "crc": "'


class Journal:
    r"""Events as lines of JSON, numbered without gaps; each line ends with its check sum.

    A line that is torn at the end of the file is cut off when the file is read. After a checkpoint
    the file is empty, and numbers go on.

    Parameters
    ----------
    path : path
        Created if it is not there. Only one process at a time can use it.

    Attributes
    ----------
    n_events : int
        Number of the last event, in this file or before it.
    size : int
        Length of the file in bytes.

    Raises
    ------
    JournalError
        The file cannot be opened, or another process uses it.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.n_events = 0
        self.size = 0
        self._is_broken = False
        self._process = os.getpid()
        self._file = self._opened()

    def _opened(self) -> BinaryIO:
        try:
            file = open(self.path, "a+b", buffering=0)  # noqa: SIM115 (open as long as the journal)
        except OSError as error:
            raise JournalError(f"the journal cannot be opened: {error}") from None
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                file.close()
                raise JournalError(
                    f"the journal {self.path} is in use: every process, and every agent, needs one "
                    "of its own"
                ) from None
        self.size = os.fstat(file.fileno()).st_size
        sync_folder(self.path)
        return file

    def close(self) -> None:
        """Close the file; nothing can be appended any more."""
        self._file.close()

    def __del__(self) -> None:
        if "_file" in self.__dict__:  # not so if it could not be opened
            self.close()

    def check_usable(self) -> None:
        """Raise a JournalError unless this process may write to the file."""
        if self._is_broken or self._file.closed:
            raise JournalError(f"the journal {self.path} is closed, or failed before: open it anew")
        if os.getpid() != self._process:  # a lock does not keep a fork out
            raise JournalError(
                f"the journal {self.path} was opened before this process was forked: open an agent "
                "in each worker, with files of its own"
            )

    def append(self, events: Sequence[Event]) -> None:
        """Append events with their numbers; when this returns they are on disk.

        If it fails, the file and `n_events` are as they were.
        """
        self.check_usable()
        numbered = enumerate(events, self.n_events + 1)
        lines = b"".join(_line({"n": number} | event) for number, event in numbered)
        size = self.size
        try:
            view = memoryview(lines)
            while view:
                view = view[self._file.write(view) :]
            os.fsync(self._file.fileno())
            self.__dict__.update(size=size + len(lines), n_events=self.n_events + len(events))
        except BaseException as error:
            if self.size == size:
                self._cut(size)
            if isinstance(error, OSError):
                raise JournalError(f"the journal {self.path} cannot be written: {error}") from None
            raise

    def _cut(self, size: int) -> None:
        """Cut off what was appended since the file had a size."""
        try:
            if not self._file.closed and os.fstat(self._file.fileno()).st_size != size:
                self._file.truncate(size)
                os.fsync(self._file.fileno())
        except BaseException:
            self._is_broken = True
            raise
        self.size = size

    def events(self, after: int) -> Iterator[Event]:
        """Yield all events after the one with a number; then cut off what is torn at the end.

        Raises
        ------
        JournalError
            The file is no journal, a line is damaged, or events are missing.
        """
        last, end = after, 0
        for event, end in _events_in(self.path):  # noqa: B007 (used afterwards)
            if event["n"] > last + 1:
                raise JournalError(
                    f"events {last + 1} to {event['n'] - 1} are missing before {self.path}: the "
                    "checkpoint is older than the journal, so use the latest checkpoint"
                )
            if event["n"] == last + 1:
                last += 1
                yield event
        self.n_events = last
        self._cut(end)

    def clear(self) -> None:
        """Remove all events from the file, which a checkpoint has."""
        self.check_usable()
        self._cut(0)


def _line(event: Event) -> bytes:
    text = json.dumps(event, allow_nan=False, separators=(",", ":")).encode()[:-1]
    return text + _CHECK + b"%08x" % zlib.crc32(text) + b'"}\n'


def _event_of(line: bytes) -> Event | None:
    """Return the event of a line; None if the line is damaged."""
    text, found, check = line.rpartition(_CHECK)
    if not found or check != b"%08x" % zlib.crc32(text) + b'"}\n':
        return None
    event = json.loads(text + b"}")
    return event if isinstance(event, dict) and isinstance(event.get("n"), int) else None


def _events_in(path: Path) -> Iterator[tuple[Event, int]]:
    """Yield the events of a file, each with the position of its end.

    Only a last line without a newline is torn: a call that did not return was writing it.
    """
    position = 0
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            is_torn = not line.endswith(b"\n")
            head = line[: len(_START)].rstrip(b"\x00")  # a crash may leave zeros
            if is_torn and (number > 1 or _START.startswith(head)):
                return
            event = _event_of(line)
            if event is None and number == 1:
                raise JournalError(f"{path} is no journal: name another file")
            if event is None:
                raise JournalError(
                    f"line {number} of {path} is damaged: restore the file from a copy"
                )
            position += len(line)
            yield event, position


def sync_folder(path: str | os.PathLike[str]) -> None:
    """Write to disk which files a folder has, where the system can do that."""
    with suppress(OSError):
        folder = os.open(Path(path).resolve().parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
