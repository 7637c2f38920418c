"""From rows to a slate: columns and levels get features in the order in which they appear."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from halfseen import checks, state
from halfseen.errors import ArchiveError, InvalidSlateError, InvalidTableError
from halfseen.frames.cells import IGNORE, Category, Labels, is_numeral
from halfseen.frames.reading import Rows
from halfseen.log import logger
from halfseen.values import LARGEST, FloatArray, Slate

N_SHARED = 16
"""Number of features that all levels beyond `max_levels` share."""

KINDS = ("number", "category", "ignored", "id")


@dataclass(frozen=True, slots=True)
class Column:
    """What became of a column.

    Attributes
    ----------
    name : str
    kind : "number", "category", "ignored" or "id"
    features : tuple of int
        Its features in the policy's slate, in the order in which they entered.
    levels : tuple of str
        The levels of a category that have their own feature, as `features`.
    n_shared : int
        Number of further features, which all other levels share; a level is assigned by its hash.
    n_implausible : int
        Of the values that the policy keeps, those that it treats as missing, because they are far
        from all others.

    Examples
    --------
    >>> print(Column("colour", "category", (0, 2), ("red", "blue")))
    colour: category of 2 levels
    """

    name: str
    kind: str
    features: tuple[int, ...] = ()
    levels: tuple[str, ...] = ()
    n_shared: int = 0
    n_implausible: int = 0
    feature_of: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        own = zip(self.levels, self.features, strict=False)
        object.__setattr__(self, "feature_of", dict(own))

    def grown(self, features: Sequence[int], levels: Sequence[str | None]) -> "Column":
        """Return the column with more features, each of a level or without one."""
        own = [level for level in levels if level is not None]
        n_shared = len(features) - len(own) if self.kind == "category" else 0
        return replace(
            self,
            features=(*self.features, *features),
            levels=(*self.levels, *own),
            n_shared=self.n_shared + n_shared,
        )

    def shared_feature(self, level: str) -> int:
        """Return the feature of a level without its own feature: the same in every process."""
        digest = hashlib.blake2b(level.encode(), digest_size=8).digest()
        return self.features[len(self.levels) + int.from_bytes(digest, "big") % N_SHARED]

    @property
    def names(self) -> list[str]:
        """The names of its features: "price"; or "colour=red", and "colour: other 3" of 16."""
        if self.kind != "category":
            return [self.name]
        own = [f"{self.name}={level}" for level in self.levels]
        return own + [f"{self.name}: other {at}" for at in range(1, self.n_shared + 1)]

    def __str__(self) -> str:
        if self.kind != "category":
            odd = f", {self.n_implausible} implausible" if self.n_implausible else ""
            return f"{self.name}: {self.kind}{odd}"
        more = f", all others share {self.n_shared} features" if self.n_shared else ""
        levels = "level" if len(self.levels) == 1 else "levels"
        return f"{self.name}: category of {len(self.levels)} {levels}{more}"


_COLUMNS = state.Each(
    state.Value(
        Column,
        name=state.Text(),
        kind=state.Word(KINDS[:2]),
        features=state.Each(state.Whole(high=checks.LARGEST_SIZE)),
        levels=state.Each(state.Text()),
        n_shared=state.Whole(high=N_SHARED),
    )
)


class _New(NamedTuple):
    """A feature that enters: of a level, or without one.

    Features are sorted by the row in which they first appear, so that their order is the same in
    whatever parts the rows come.
    """

    row: int
    place: int
    name: str
    level: str | None


class Encoded(NamedTuple):
    """Rows as a slate.

    Attributes
    ----------
    slate : Slate
    encoder : Encoder
        The encoder that knows the columns and levels of these rows.
    """

    slate: Slate
    encoder: "Encoder"


@dataclass(frozen=True)
class Encoder:
    """Turns rows into slates; names decide, not positions.

    A column of numbers is one feature, a category is one feature per level: 1 or 0 where its value
    is seen, all of them hidden where it is not. A column enters with its first seen value, a level
    when it first appears. The encoder itself never changes: `encode` returns the next one.

    Parameters
    ----------
    max_levels : int
        How many levels of a category have their own feature.
    max_columns : int

    Examples
    --------
    >>> from halfseen.frames import Reader
    >>> rows = Reader().read([{"price": 3.0, "colour": "red"}, {"price": 4.0}])
    >>> encoded = Encoder().encode(rows)
    >>> encoded.slate.values.tolist(), encoded.slate.mask.tolist()
    ([[3.0, 1.0], [4.0, 0.0]], [[True, True], [True, False]])
    >>> encoded.encoder.encode(Reader().read([{"colour": "blue"}])).encoder.levels(2)
    {2: 1}
    """

    max_levels: int = 50
    max_columns: int = 1000
    columns: Mapping[str, Column] = field(default_factory=dict)
    width: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        width = sum(len(column.features) for column in self.columns.values())
        object.__setattr__(self, "width", width)

    def encode(self, rows: Rows, *, dim: int = 0) -> Encoded:
        """Return rows as a slate with all known features, and at least `dim` of them.

        Features that no column has are hidden. Rows without a seen value need a `dim` of at least
        1.

        Raises
        ------
        InvalidTableError
            Names the column or the row, the value got, and the remedy.
        """
        encoder = self.grown(rows)
        width = max(dim, encoder.width)
        if not width:
            raise ids_alone()
        table = encoder._filled(rows, width)
        try:
            return Encoded(Slate(table), encoder)
        except InvalidSlateError:
            raise encoder._out_of_range(table) from None

    def counted(self, n_implausible: FloatArray) -> dict[str, Column]:
        """Return the columns by name, given how many values of each feature are implausible."""
        counts = np.append(n_implausible, np.zeros(max(0, self.width - len(n_implausible))))
        return {
            name: replace(column, n_implausible=int(counts[list(column.features)].sum()))
            for name, column in self.columns.items()
        }

    def levels(self, known: int) -> dict[int, int]:
        """Return features that are a further level of a category, with the first feature of it.

        The first `known` features are left out.
        """
        return {
            feature: column.features[0]
            for column in self.columns.values()
            for feature in column.features[1:]
            if feature >= known
        }

    def grown(self, rows: Rows) -> "Encoder":
        """Return an encoder that knows the columns and levels of rows."""
        news: list[_New] = []
        for place, (name, column) in enumerate(zip(rows.names, rows.columns, strict=True)):
            known = self.columns.get(name)
            is_category = isinstance(column, list)
            if known is not None and (known.kind == "category") != is_category:
                _check_hidden(known, column)
            elif isinstance(column, list):
                news += self._new_levels(place, name, column)
            elif known is None and (row := _first_seen(column)) is not None:
                news.append(_New(row, place, name, None))
        if not news:
            return self
        entered: dict[str, list[tuple[int, str | None]]] = {}
        for feature, new in enumerate(sorted(news), self.width):
            entered.setdefault(new.name, []).append((feature, new.level))
        columns = dict(self.columns)
        for name, added in entered.items():
            if name not in columns and len(columns) >= self.max_columns:
                raise InvalidTableError(
                    f"column {name!r} is one too many, {len(columns)} are known and max_columns is "
                    f"{self.max_columns}: list columns that are not features in the setting "
                    "ignore, or allow more"
                )
            kind = "number" if added[0][1] is None else "category"
            columns[name] = columns.get(name, Column(name, kind)).grown(*zip(*added, strict=True))
        return replace(self, columns=columns)

    def _new_levels(self, place: int, name: str, labels: Labels) -> list[_New]:
        known = self.columns.get(name)
        own = {} if known is None else known.feature_of
        if known is not None and known.n_shared:
            return []
        if known is None and not isinstance(labels, Category):
            _warn_of_numerals(name, labels)
        news: dict[str, _New] = {}
        for row, label in enumerate(labels):
            if label is None or label in own or label in news:
                continue
            if len(own) + len(news) == self.max_levels:
                logger.warning(
                    "column %r has more than %d levels: further ones, such as %r, share %d "
                    "features (setting max_levels allows more, ignore leaves the column out)",
                    *(name, self.max_levels, label, N_SHARED),
                )
                return [*news.values(), *[_New(row, place, name, None)] * N_SHARED]
            news[label] = _New(row, place, name, label)
        return list(news.values())

    def _filled(self, rows: Rows, width: int) -> FloatArray:
        """Return a table (n_rows, width) with the seen values, and NaN elsewhere."""
        table = np.full((len(rows.items), width), np.nan)
        for name, column in zip(rows.names, rows.columns, strict=True):
            known = self.columns.get(name)
            if known is None or (known.kind == "category") != isinstance(column, list):
                continue  # nothing is seen
            if not isinstance(column, list):
                table[:, known.features[0]] = column
                continue
            own = known.feature_of
            seen = [row for row, label in enumerate(column) if label is not None]
            table[np.ix_(seen, known.features)] = 0.0
            features = [
                own[label] if label in own else known.shared_feature(label)
                for label in column
                if label is not None
            ]
            table[seen, features] = 1.0
        return table

    def _out_of_range(self, table: FloatArray) -> InvalidTableError:
        row, feature = np.argwhere(np.abs(table) > LARGEST)[0]
        name = next(name for name, each in self.columns.items() if int(feature) in each.features)
        return InvalidTableError(
            f"column {name!r} must be finite and at most {LARGEST:g} in size, got "
            f"{table[row, feature]} in row {row}: leave it empty or correct it, {IGNORE}"
        )


class EncoderField:
    """The field of an encoder, whose owner has its settings."""

    def dump(self, value: Encoder) -> list[Any]:
        """Return the known columns as plain values."""
        return _COLUMNS.dump(value.columns.values())

    def load(self, name: str, plain: Any, sizes: state.Sizes) -> Encoder:
        """Return the encoder after checking its columns."""
        columns = _COLUMNS.load(name, plain, sizes)
        known = {column.name: column for column in columns}
        encoder = Encoder(sizes.owner.max_levels, sizes.owner.max_columns, known)
        features = sorted(feature for column in columns for feature in column.features)
        if features != list(range(encoder.width)) or len(known) < len(columns):
            raise ArchiveError("the columns of an encoder must have each feature exactly once")
        for column in columns:
            n_features = len(column.levels) + column.n_shared if column.kind == "category" else 1
            if len(column.features) != n_features or column.n_shared not in (0, N_SHARED):
                raise ArchiveError(f"column {column.name!r} must have {n_features} features")
        return encoder


def ids_alone() -> InvalidTableError:
    """Return the error for options without columns."""
    return InvalidTableError(
        "options must have at least one column with a seen value, got none: ids alone are for a "
        "policy that learns about items, such as LatentUcb()"
    )


def _warn_of_numerals(name: str, labels: Labels) -> None:
    """Log a warning if most strings of a new column are numbers."""
    words = {label: is_numeral(label) for label in labels if label is not None}
    n_numerals = sum(words.values())
    if 2 * n_numerals > len(words):
        first = next(label for label, is_number in words.items() if is_number)
        other = next((label for label, is_number in words.items() if not is_number), None)
        logger.warning(
            "column %r is a category, because it holds strings, although %s: if they are numbers, "
            "correct or convert it, or list it in the setting numeric; if they are names, list it "
            "in categorical",
            name,
            f"all are numbers, such as {first!r:.40}"
            if other is None
            else f"{n_numerals} of {len(words)} are numbers, such as {first!r:.40}, but not "
            f"{other!r:.40}",
        )


def _check_hidden(known: Column, column: FloatArray | Labels) -> None:
    """Raise an error if anything is seen in a column that is not of the known kind."""
    row = _first_seen(column)
    if row is not None:
        before = "numbers" if known.kind == "number" else "strings"
        raise InvalidTableError(
            f"column {known.name!r} held {before} before, got {column[row]!r} in row {row}: correct"
            " it, leave it empty, or list the column from the start in the setting categorical or "
            "numeric"
        )


def _first_seen(column: FloatArray | Labels) -> int | None:
    """Return the first row that is seen, if there is one."""
    if isinstance(column, list):
        return next((row for row, label in enumerate(column) if label is not None), None)
    seen = column == column
    return int(seen.argmax()) if seen.any() else None
