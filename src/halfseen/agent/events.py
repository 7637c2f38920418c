"""Events: what happened, in an order that all processes share, and the decisions they are about."""

import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from halfseen import checks
from halfseen.frames import Rows
from halfseen.state import Each, Maybe, Plain, Real, Text, Value, Whole
from halfseen.values import LARGEST, FloatArray, Item, Note

CHOOSE, REWARD, OBSERVE, EXPIRE, REFIT = "choose", "reward", "observe", "expire", "refit"

EXPIRY = "\x18"
"""The key of the reward that a place gets when its decision expires; no caller can use it."""

REWARDED, FORGOTTEN, EXPIRED = "rewarded", "forgotten", "expired"

LATEST = 250_000_000_000.0
"""Largest time of a decision, in seconds since 1970: in the year 9892."""

Place = float | str | None
"""What became of a place: None while nothing has come, the sum of the parts of its reward that have
come, or why it takes no more."""


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

    def parts(self, size: int) -> "list[Asked]":
        """Return a log in parts of some rows."""
        starts = range(0, len(self.rows.items), size)
        if len(starts) == 1:
            return [self]
        each = [
            (_some(self.rows, at, size), self.context and _some(self.context, at, size))
            for at in starts
        ]
        return [Asked(rows, context, _digest(rows)) for rows, context in each]


class Made(NamedTuple):
    """A decision, as far as its rewards need it.

    Attributes
    ----------
    id : str
    items : tuple of str or int
        Of all places.
    time : float
        When it was made, in seconds since 1970.
    places : tuple of Place
    notes : tuple of Note
        What the policy needs to learn the reward of each place, with the features as they were
        seen; empty until the decision has a number.
    weight : float or None
        The probability of the first item under a uniform choice, divided by the true one; None if
        some option could not be chosen.
    number : int
        That of its event; 0 if it has none yet.
    request : bytes
        A digest of what was asked.
    """

    id: str
    items: tuple[Item, ...]
    time: float
    places: tuple[Place, ...]
    notes: tuple[Note, ...] = ()
    weight: float | None = None
    number: int = 0
    request: bytes = b""

    @property
    def is_open(self) -> bool:
        """Whether any place still takes a reward."""
        return any(not isinstance(place, str) for place in self.places)

    def with_places(self, places: Mapping[int, Place]) -> "Made":
        """Return the decision after something became of some places."""
        each = (places.get(at, place) for at, place in enumerate(self.places))
        return self._replace(places=tuple(each))


def _item(name: str, item: Any) -> Item:
    return item if isinstance(item, str) else checks.integer(name, item)


def _place(name: str, place: Any) -> Place:
    if isinstance(place, str):
        return checks.one_of(name, place, (REWARDED, FORGOTTEN, EXPIRED))
    return None if place is None else checks.real(name, place, -LARGEST, LARGEST)


MADE = Value(
    Made,
    id=Text(),
    items=Each(Plain(_item), least=1),
    time=Real(0.0, LATEST),
    places=Each(Plain(_place), least=1),
    notes=Each(Plain(lambda name, plain: Note.from_dict(plain), Note.to_dict)),
    weight=Maybe(Real(1e-15, LARGEST)),  # at least the probability under a uniform choice
    number=Whole(),
    request=Plain(lambda name, plain: bytes.fromhex(plain), bytes.hex),
)
"""How a decision is saved."""


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
        Counted from 1, without gaps; 0 until the learner takes the event up.
    time : float
        That of the journal, in seconds since 1970.
    made : tuple of Made
        The decision that it makes, or those that it is about, as they are before it.
    entry : int
        The journal's own key.
    policy : Policy or None
        Of a refit: the policy after it, if the journal keeps objects.
    """

    kind: str
    body: dict[str, Any]
    asked: Asked | None = None
    law: FloatArray | None = None
    number: int = 0
    time: float = 0.0
    made: tuple[Made, ...] = ()
    entry: int = 0
    policy: Any = None

    @property
    def changes(self) -> "dict[str, tuple[Made, Made]]":
        """The decisions that it changes, before and after it."""
        found = {}
        if self.kind == REWARD and self.body["after"] is not None:
            (made,) = self.made
            found[made.id] = made, made.with_places({self.body["place"]: self.body["after"]})
        elif self.kind == EXPIRE:
            for made in self.made:
                after = {
                    at: self.body["why"]
                    for at, place in enumerate(made.places)
                    if not isinstance(place, str)
                }
                found[made.id] = made, made.with_places(after)
        return found

    def text(self) -> str:
        """Return body and context as JSON."""
        context = None if self.asked is None else self.asked.context
        body = self.body if context is None else {**self.body, "context": context.to_dict()}
        return json.dumps(body, allow_nan=False, separators=(",", ":"))

    def request(self) -> bytes:
        """Return a digest of what was asked, and how."""
        if self.asked is None or not self.asked.digest:
            return b""
        context = None if self.asked.context is None else self.asked.context.to_dict()
        body = self.body
        how = [context, len(body.get("arms", ())), *map(body.get, ("explore", "rewards", "log"))]
        return hashed(self.asked.digest + json.dumps(how).encode())


def rewarded(made: Made, place: int, key: str, value: float, *, final: bool) -> Event:
    """Return the event of a reward: learned now if it is final, later, or never if it is late."""
    before = made.places[place]
    body: dict[str, Any] = {"id": made.id, "place": place, "key": key, "value": value}
    if isinstance(before, str):
        return Event(REWARD, {**body, "total": None, "after": None, "left": None}, made=(made,))
    total = value + (before or 0.0)
    body |= {"total": total if final else None, "after": REWARDED if final else total}
    after = made.with_places({place: body["after"]})
    return Event(REWARD, {**body, "left": after.is_open}, made=(made,))


def expired(some: Sequence[Made], reward: float | None, why: str) -> Event:
    """Return the event that closes decisions: open places get their parts, or a reward, if any."""
    rewards = [
        [made.id, at, reward if place is None else place]
        for made in some
        for at, place in enumerate(made.places)
        if not isinstance(place, str)
    ]
    return Event(EXPIRE, {"rewards": rewards, "why": why}, made=tuple(some))


def packed(law: FloatArray | None) -> bytes | None:
    """Return probabilities as few bytes."""
    return None if law is None else zlib.compress(law.astype("<f8").tobytes(), 1)


def unpacked(content: bytes | None) -> FloatArray | None:
    """Return the probabilities that `packed` packed.

    >>> unpacked(packed(np.array([0.25, 0.75]))).tolist()
    [0.25, 0.75]
    """
    return None if content is None else np.frombuffer(zlib.decompress(content), "<f8")


DIGEST = 16
"""Bytes of a digest."""


def hashed(content: bytes) -> bytes:
    """Return a digest."""
    return hashlib.blake2b(content, digest_size=DIGEST).digest()


def _some(rows: Rows, at: int, size: int) -> Rows:
    stop = at + size
    return Rows(rows.items[at:stop], rows.names, [each[at:stop] for each in rows.columns])


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
    return hashed(b"".join(parts))


class StoredSet(NamedTuple):
    """Offered rows as a database keeps them.

    Rows are kept once, by content. Columns that differ from request to request, such as a distance,
    are kept with the set: otherwise every row would be a new one each time.

    Attributes
    ----------
    names : str
        All columns, as JSON.
    varying : bytes
        Those that are kept with the set, compressed JSON by name.
    members : bytes
        Digests of the rows, without those columns.
    rows : dict
        The rows by digest, as JSON.
    """

    names: str
    varying: bytes
    members: bytes
    rows: dict[bytes, str]

    @classmethod
    def of(cls, rows: Rows, varying: frozenset[str]) -> "StoredSet":
        """Return rows as they are stored."""
        columns = dict(zip(rows.names, rows.to_dict()["columns"], strict=True))
        own = {name: columns.pop(name) for name in rows.names if name in varying}
        texts = [
            json.dumps(row, separators=(",", ":"))
            for row in zip(rows.items, *columns.values(), strict=True)
        ]
        names = json.dumps(list(columns))
        digests = [hashed(f"{names}{text}".encode()) for text in texts]
        content = zlib.compress(json.dumps(own, separators=(",", ":")).encode(), 1) if own else b""
        known = dict(zip(digests, texts, strict=True))
        return cls(json.dumps(list(rows.names)), content, b"".join(digests), known)

    def joined(self) -> Rows:
        """Return the rows."""
        digests = [self.members[at : at + DIGEST] for at in range(0, len(self.members), DIGEST)]
        own = json.loads(zlib.decompress(self.varying)) if self.varying else {}
        names = json.loads(self.names)
        cells = zip(*(json.loads(self.rows[each]) for each in digests), strict=True)
        items, *columns = map(list, cells)
        shared = dict(zip((name for name in names if name not in own), columns, strict=True))
        each = [own[name] if name in own else shared[name] for name in names]
        return Rows.from_dict({"items": items, "names": names, "columns": each})


def varying_columns(rows: Rows, before: Rows) -> frozenset[str]:
    """Return columns in which most items differ from an earlier request that offered them."""
    places = {item: at for at, item in enumerate(before.items)}
    pairs = [(at, places[item]) for at, item in enumerate(rows.items) if item in places]
    if len(pairs) < 2:
        return frozenset()
    now, then = map(list, zip(*pairs, strict=True))
    old = dict(zip(before.names, before.columns, strict=True))
    found = set()
    for name, column in zip(rows.names, rows.columns, strict=True):
        if name in old:
            ours, theirs = np.asarray(column, object)[now], np.asarray(old[name], object)[then]
            same = (ours == theirs) | ((ours != ours) & (theirs != theirs))
            if np.count_nonzero(same) * 2 < len(pairs):
                found.add(name)
    return frozenset(found)
