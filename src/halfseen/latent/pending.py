"""Decisions whose rewards are pending."""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from halfseen import checks
from halfseen.linear.versions import Entries
from halfseen.state import Array, Sizes
from halfseen.values import Note

IN_WIDTHS = 10_000
"""Pending decisions narrow widths if they are among the latest so many."""

_SPAN = 1_000_000  # rounds of which it is known whether they are pending
_BITS = Array((None,), np.uint8)


class Pending(NamedTuple):
    """Which rounds are pending, and the notes of the latest ones.

    Attributes
    ----------
    first : int
        The round of the first bit of `bits`.
    bits : int
        A bit for each round: whether it is pending.
    notes : Entries
        By round, of pending decisions among the latest `IN_WIDTHS`.

    Examples
    --------
    >>> pending = Pending.nothing().plus(Note(3, -1, np.ones(1))).plus(Note(5, -1, np.ones(1)))
    >>> pending.n, pending.first_round, 4 in pending
    (2, 3, False)
    >>> pending.without(3).first_round
    5
    """

    first: int
    bits: int
    notes: Entries[int, Note]

    @classmethod
    def nothing(cls) -> "Pending":
        """Return no rounds."""
        return cls(1, 0, Entries())

    @property
    def n(self) -> int:
        """How many rounds are pending."""
        return self.bits.bit_count()

    def __contains__(self, round: Any) -> bool:
        return round >= self.first and bool(self.bits >> (round - self.first) & 1)

    @property
    def first_round(self) -> float:
        """The first round that is pending; infinite if none is."""
        return self.first + (self.bits & -self.bits).bit_length() - 1 if self.bits else math.inf

    @property
    def last_round(self) -> int:
        """The last round that is pending; one before `first` if none is."""
        return self.first + self.bits.bit_length() - 1

    def plus(self, note: Note) -> "Pending":
        """Return the rounds with one more, usually the latest."""
        first, bits, notes = self.first, self.bits, self.notes.plus(note.round, note)
        if not bits:
            first = note.round
        elif note.round < first:
            first, bits = note.round, bits << (first - note.round)
        elif note.round - first >= _SPAN:
            first, bits = first + _SPAN // 2, bits >> _SPAN // 2
        oldest = next(iter(notes.now))
        if note.round - oldest >= IN_WIDTHS:
            notes = notes.without(oldest)
        return Pending(first, bits | 1 << (note.round - first), notes)

    def without(self, round: int) -> "Pending":
        """Return the rounds without one."""
        if round not in self:
            return self
        bits = self.bits & ~(1 << (round - self.first))
        notes = self.notes.without(round) if round in self.notes.now else self.notes
        return Pending(self.first, bits, notes) if bits else Pending.nothing()

    def in_widths(self) -> list[Note]:
        """Return the notes of those that narrow widths, the earliest first."""
        return [note for _, note in sorted(self.notes.now.items())]

    def with_notes(self, notes: Iterable[Note]) -> "Pending":
        """Return the same rounds, with those of some notes that belong to the latest ones."""
        last = self.last_round
        known = {each.round: each for each in notes if each.round in self}
        latest = {at: known[at] for at in sorted(known) if last - at < IN_WIDTHS}
        return self._replace(notes=Entries(latest))


class PendingField:
    """The field of pending decisions."""

    def dump(self, value: Pending) -> dict[str, Any]:
        """Return rounds and notes."""
        content = value.bits.to_bytes(-(-value.bits.bit_length() // 8), "little")
        notes = [note.to_dict() for note in value.in_widths()]
        return {"first": value.first, "bits": np.frombuffer(content, np.uint8), "notes": notes}

    def load(self, name: str, plain: Any, sizes: Sizes) -> Pending:
        """Return the pending decisions."""
        if isinstance(plain, list):  # as 0.3.0 saved them
            found = Pending.nothing()
            for each in plain:
                found = found.plus(Note.from_dict(each))
            return found
        bits = _BITS.load("bits", plain["bits"], sizes)
        first = checks.integer("first", plain["first"], 1, checks.LARGEST_HORIZON)
        found = Pending(first, int.from_bytes(bits.tobytes(), "little"), Entries())
        return found.with_notes(map(Note.from_dict, plain["notes"]))
