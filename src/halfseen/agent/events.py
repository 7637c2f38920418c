"""Events: what happened, in an order that all processes share."""

import hashlib
import json
import zlib
from typing import Any, NamedTuple

import numpy as np

from halfseen.frames import Rows
from halfseen.values import FloatArray

CHOOSE, LEARN, OBSERVE, EXPIRE, REFIT = "choose", "learn", "observe", "expire", "refit"


class Asked(NamedTuple):
    """What an agent is asked about: the options, and one row that they share.

    For a log: its rows, and a context for each.

    Attributes
    ----------
    rows : Rows
    context : Rows or None
    digest : bytes
        Of the rows; empty for requests that are not kept.
    """

    rows: Rows
    context: Rows | None = None
    digest: bytes = b""

    def canonical(self) -> "Asked":
        """Return a copy with a digest that equal rows share: 1 and 1.0, −0.0 and 0.0, any NaN."""
        rows = _canonical(self.rows)
        context = None if self.context is None else _canonical(self.context)
        return Asked(rows, context, _digest(rows))


class Event(NamedTuple):
    """One event.

    Attributes
    ----------
    kind : str
    body : dict
        Plain JSON types.
    asked : Asked or None
    law : ndarray or None
        Probabilities of all options; `apply` does not need them.
    number : int
        Counted from 1, without gaps.
    time : float
        That of the database, in seconds since 1970.
    """

    kind: str
    body: dict[str, Any]
    asked: Asked | None = None
    law: FloatArray | None = None
    number: int = 0
    time: float = 0.0

    def text(self) -> str:
        """Return body and context as JSON."""
        context = None if self.asked is None else self.asked.context
        body = self.body if context is None else {**self.body, "context": context.to_dict()}
        return json.dumps(body, allow_nan=False, separators=(",", ":"))

    def request(self) -> bytes:
        """Return a digest of what was asked, and how."""
        if self.asked is None:
            return b""
        context = None if self.asked.context is None else self.asked.context.to_dict()
        how = [context, self.body.get("explore"), len(self.body.get("arms", ())), self.rewards]
        return _hash(self.asked.digest + json.dumps(how).encode())

    @property
    def rewards(self) -> list[Any]:
        """The rewards that it brings."""
        rewards: list[Any] = self.body.get("rewards", [])
        return rewards


def packed(law: FloatArray | None) -> bytes | None:
    """Return probabilities as few bytes."""
    return None if law is None else zlib.compress(law.astype("<f8").tobytes(), 1)


def unpacked(content: bytes | None) -> FloatArray | None:
    """Return the probabilities that `packed` packed.

    >>> unpacked(packed(np.array([0.25, 0.75]))).tolist()
    [0.25, 0.75]
    """
    return None if content is None else np.frombuffer(zlib.decompress(content), "<f8")


def stored_set(rows: Rows) -> tuple[str, bytes, dict[bytes, str]]:
    """Return offered rows as they are stored: names of columns, digests of rows, and the rows."""
    columns = rows.to_dict()["columns"]
    cells = zip(rows.items, *columns, strict=True)
    texts = [json.dumps(row, separators=(",", ":")) for row in cells]
    names = json.dumps(rows.names)
    digests = [_hash(f"{names}{text}".encode()) for text in texts]
    return names, b"".join(digests), dict(zip(digests, texts, strict=True))


def joined_set(names: str, texts: list[str]) -> Rows:
    """Return the rows of a stored set."""
    items, *columns = zip(*map(json.loads, texts), strict=True)
    plain = {"items": list(items), "names": json.loads(names), "columns": map(list, columns)}
    return Rows.from_dict(plain)


DIGEST = 16
"""Bytes of a digest."""


def _hash(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=DIGEST).digest()


def _canonical(rows: Rows) -> Rows:
    # One zero of two, and one NaN of many.
    columns = [
        np.where(each == each, each + 0.0, np.nan) if isinstance(each, np.ndarray) else each
        for each in rows.columns
    ]
    return rows._replace(columns=columns)


def _digest(rows: Rows) -> bytes:
    parts = [json.dumps([rows.names, rows.items]).encode()]
    parts.append(b"".join(b"n" if isinstance(e, np.ndarray) else b"s" for e in rows.columns))
    for each in rows.columns:
        parts.append(each.tobytes() if isinstance(each, np.ndarray) else json.dumps(each).encode())
    return _hash(b"".join(parts))
