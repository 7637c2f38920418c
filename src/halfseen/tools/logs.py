"""Logs with one row per decision: who was offered, who was chosen how likely, and the reward."""

import json
import os
import tempfile
import weakref
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.agent.logs import read_log
from halfseen.checks import did_you_mean
from halfseen.errors import InvalidTableError
from halfseen.frames import Encoder, Reader, Rows
from halfseen.frames.cells import Labels
from halfseen.frames.files import cells_of, columns_of, numbers_of
from halfseen.frames.parts import parts_of
from halfseen.lazy import from_extra
from halfseen.values import LARGEST, BoolArray, FloatArray, Item
from halfseen.values.decision import listed

IntArray = NDArray[np.intp]
Option = Item | Mapping[str, Any]

ITEMS = (str, int, np.integer)
_DATABASES = (".db", ".sqlite")  # of agents
_OF_AGENTS = frozenset(("item", "probability", "reward", "place", "items", "context"))
_DSJSON = (".dsjson", ".json", ".jsonl")
_ROWS = 65_536  # numbers of a file that are read at once
_MOST_PAIRS = 100_000  # decisions with about so many options are worked on at once


class Part(NamedTuple):
    """Some decisions with all their options: pairs of decision and option, one after the other.

    Attributes
    ----------
    rows : ndarray of int, shape (n,)
        The decisions.
    contexts : ndarray, shape (n, context_dim), optional
    starts : ndarray of int, shape (n,)
        The first pair of each decision.
    row : ndarray of int, shape (n_pairs,)
        The place of each pair's decision in `rows`.
    option : ndarray of int, shape (n_pairs,)
    is_chosen : ndarray of bool, shape (n_pairs,)
    """

    rows: IntArray
    contexts: FloatArray | None
    starts: IntArray
    row: IntArray
    option: IntArray
    is_chosen: BoolArray

    def sets(self) -> list[IntArray]:
        """Return the options of each decision."""
        return np.split(self.option, self.starts[1:])


class Log(NamedTuple):
    """A log of n decisions, in the order of time.

    Attributes
    ----------
    options : list
        All that was ever offered: ids, or dicts with features.
    items : list
        The id of each option.
    sets : list of ndarray of int
        The different sets of options that were offered.
    offered, chosen : column of int
        The set of each decision, and the chosen option. What rows index is an array.
    propensity, reward : column of float
    context : dict of columns, optional
    encoder : Encoder
        Knows the columns of the context.
    n_without_reward : int
        Decisions left out.
    is_agents : bool
        Whether it is the log of an agent, which learned from it.
    """

    options: list[Option]
    items: list[Item]
    sets: list[IntArray]
    offered: "_Numbers"
    chosen: "_Numbers"
    propensity: "_Numbers"
    reward: "_Numbers"
    context: Mapping[str, "_Cells"] | None
    encoder: Encoder
    n_without_reward: int
    is_agents: bool

    def __len__(self) -> int:
        return len(self.reward)

    def parts(self) -> Iterator[Part]:
        """Yield all decisions, part by part, so that memory is bounded."""
        sizes, n = np.array([len(each) for each in self.sets]), len(self)
        some = (self.offered[first : first + _MOST_PAIRS] for first in range(0, n, _MOST_PAIRS))
        n_pairs = sum(int(sizes[each].sum()) for each in some)
        step = max(1, _MOST_PAIRS * n // n_pairs)
        for first in range(0, n, step):
            rows = np.arange(first, min(first + step, n))
            offered = self.offered[rows]
            ends = np.cumsum(sizes[offered])
            row = np.repeat(np.arange(len(rows)), sizes[offered])
            option = np.concatenate([self.sets[at] for at in offered])
            is_chosen = option == self.chosen[rows][row]
            yield Part(rows, self.contexts(rows), ends - sizes[offered], row, option, is_chosen)

    def contexts(self, rows: IntArray) -> FloatArray | None:
        """Return the contexts of decisions as numbers, shape (n, context_dim)."""
        if self.context is None:
            return None
        columns = [column[rows] for column in self.context.values()]
        some = Rows(rows.tolist(), tuple(self.context), columns)
        return self.encoder.encode(some, dim=1).slate.table

    def context_dicts(self, rows: IntArray) -> Iterator[dict[str, Any]]:
        """Yield the contexts of decisions as dicts; None where hidden."""
        if self.context is None:
            yield from ({} for _ in rows)
            return
        columns = [column[rows] for column in self.context.values()]
        for cells in zip(*map(listed, columns), strict=True):
            seen = (None if cell != cell else cell for cell in cells)
            yield dict(zip(self.context, seen, strict=True))


def read(
    log: Any,
    *,
    item: str,
    propensity: str,
    reward: str,
    context: str | Sequence[str],
    offered: str | None,
) -> Log:
    """Read a log: a frame, a list of dicts, a dict of columns, or the path of a file.

    Raises
    ------
    InvalidTableError
        Names the column or the row, the value got, and the remedy.
    """
    if isinstance(log, str | os.PathLike):
        if Path(log).suffix in _DSJSON:
            context, offered = context or "context", offered or "offered"
            log = read_dsjson(log, item)
        elif Path(log).suffix in _DATABASES or "://" in str(log):
            with from_extra("paper"):
                log = read_log(log)
    parts = parts_of(log)
    reading: _Reading | None = None
    for batch in [log] if parts is None else parts:
        known = columns_of(batch)
        if reading is None:
            names = [context] if isinstance(context, str) else list(context)
            reading = _Reading(item, propensity, reward, names, offered, known, parts is not None)
        reading.add(known)
    if reading is None or not reading.chosen.n:
        raise InvalidTableError(f"column {reward!r} is empty: at least one decision needs a reward")
    return reading.log()


class _Numbers:
    """A column that grows: an array of its own or, of a table in parts, a temporary file.

    Indexing by a slice or by ascending rows returns an array; of a file, memory holds only that.
    """

    def __init__(self, kind: type, is_spooled: bool) -> None:
        self.n, self._kind = 0, np.dtype(kind)
        self._file = tempfile.TemporaryFile() if is_spooled else None  # noqa: SIM115 (kept open)
        if self._file is not None:
            weakref.finalize(self, self._file.close)
        self._array: Any = np.empty(0, dtype=kind)

    def add(self, values: Any) -> None:
        """Append numbers; an array is taken once."""
        self.n += len(values)
        values = np.asarray(values, dtype=self._kind)
        if self._file is None:
            self._array = values
        else:
            self._file.write(values.tobytes())

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, rows: Any) -> Any:
        if self._file is None:
            return self._array[rows]
        if isinstance(rows, slice):
            rows = np.arange(*rows.indices(self.n))
        if not len(rows):
            return self._array
        found, size = np.empty(len(rows), self._kind), self._kind.itemsize
        for first in range(rows[0] // _ROWS * _ROWS, rows[-1] + 1, _ROWS):
            start, end = np.searchsorted(rows, [first, first + _ROWS])
            self._file.seek(first * size)
            block = np.frombuffer(self._file.read(_ROWS * size), self._kind)
            found[start:end] = block[rows[start:end] - first]
        self._file.seek(0, os.SEEK_END)
        return found


class _Cells:
    """A column of the context that grows: numbers, or labels as numbers of their levels."""

    def __init__(self, n_hidden: int, is_spooled: bool) -> None:
        self._numbers = _Numbers(float, is_spooled)
        if n_hidden:
            self._numbers.add(np.full(n_hidden, np.nan))
        self._levels: dict[str, int] = {}

    def add(self, column: FloatArray | Labels) -> None:
        """Append the cells of some decisions."""
        if isinstance(column, list):
            known = self._levels
            column = np.array(
                [np.nan if each is None else known.setdefault(each, len(known)) for each in column]
            )
        self._numbers.add(column)

    def __getitem__(self, rows: Any) -> FloatArray | Labels:
        numbers: FloatArray = self._numbers[rows]
        if not self._levels:
            return numbers
        levels = [*self._levels, None]
        return [levels[at] for at in np.where(np.isnan(numbers), -1, numbers).astype(int)]


class _Reading:
    """A log that is being read, batch by batch."""

    def __init__(
        self,
        item: str,
        propensity: str,
        reward: str,
        context: list[str],
        offered: str | None,
        known: Mapping[str, Any],
        in_parts: bool,
    ) -> None:
        self.is_agents = _OF_AGENTS.issubset(known) and propensity not in known
        if self.is_agents:
            propensity, context, offered = "probability", ["context"], "items"
        self.item, self.propensity, self.reward = item, propensity, reward
        self.context_names, self.offered_name, self.in_parts = context, offered, in_parts
        self._check_names(known)
        self.sets = _Sets(item, has_offers=offered is not None)
        self.offered, self.chosen = (_Numbers(np.int32, in_parts) for _ in range(2))
        self.propensities, self.rewards = (_Numbers(float, in_parts) for _ in range(2))
        self.context: dict[str, _Cells] = {}
        self.encoder = Encoder()
        self.n_rows = self.n_without_reward = 0

    def _check_names(self, known: Mapping[str, Any]) -> None:
        offered = [] if self.offered_name is None else [self.offered_name]
        for name in [self.item, self.propensity, self.reward, *self.context_names, *offered]:
            if name in known:
                continue
            need = ""
            if name == self.propensity:
                need = (
                    "; evaluation needs the probability of each choice: name its column with "
                    "propensity=…"
                )
            near = did_you_mean(name, known) or f": it has {str([*known][:10])[1:-1] or 'none'}"
            error = InvalidTableError(f"the log has no column {name!r}{near}{need}")
            error.page = "docs/evaluate.md"
            raise error

    def add(self, known: Mapping[str, Any]) -> None:
        """Read some more decisions, in the order of time."""
        first, want = self.n_rows, f"numbers of size at most {LARGEST:g}"
        rewards = numbers_of(
            self.reward, known[self.reward], want, lambda x: ~(np.abs(x) > LARGEST), first
        )
        self.n_rows += len(rewards)
        place = np.zeros(len(rewards))
        if self.is_agents:
            place = numbers_of("place", known["place"], "whole numbers", lambda x: x >= 0.0, first)
        is_known = (rewards == rewards) & (place == 0.0)
        chances = numbers_of(
            self.propensity,
            known[self.propensity],
            "in (0, 1]",
            lambda x: (x > 0.0) & (x <= 1.0) | ~is_known,
            first,
        )
        kept = np.flatnonzero(is_known)
        self.n_without_reward += int((place == 0.0).sum()) - len(kept)
        if not len(kept):
            return
        offers = None
        if self.offered_name is not None:
            offers = cells_of(known[self.offered_name], kept)
        items = Reader(id=self.item, unique=False).read(
            {self.item: cells_of(known[self.item], kept)}
        )
        offered, chosen = self.sets.add(items.items, offers, (first + kept).tolist())
        self._add_contexts(
            {name: cells_of(known[name], kept) for name in self.context_names}, len(kept)
        )
        self.offered.add(offered)
        self.chosen.add(chosen)
        self.propensities.add(chances[kept])
        self.rewards.add(rewards[kept])

    def _add_contexts(self, columns: dict[str, Any], n: int) -> None:
        rows = _contexts(columns)
        if rows is None and not self.context:
            return
        read = {} if rows is None else dict(zip(rows.names, rows.columns, strict=True))
        self.encoder = self.encoder if rows is None else self.encoder.grown(rows)
        for name in {**self.context, **read}:
            if name not in self.context:
                self.context[name] = _Cells(self.chosen.n, self.in_parts)
            self.context[name].add(read.get(name, np.full(n, np.nan)))

    def log(self) -> "Log":
        """Return all that was read."""
        return Log(
            *self.sets.found(),
            self.offered,
            self.chosen,
            self.propensities,
            self.rewards,
            self.context or None,
            self.encoder,
            self.n_without_reward,
            self.is_agents,
        )


def read_dsjson(path: str | os.PathLike[str], item: str = "item") -> dict[str, list[Any]]:
    """Read a log of Vowpal Wabbit, with one decision per line, into columns.

    Parameters
    ----------
    path : path
    item : str
        The feature that names an action, such as "Action.id". An action without it is named by
        its JSON.

    Returns
    -------
    dict
        The chosen `item`, "propensity", "reward" (minus the cost), "context", "option" (the chosen
        action) and "offered" (all actions), as `evaluate` and `Agent.observe` take them. Features
        are called "namespace.feature".

    Raises
    ------
    InvalidTableError
        Names the line.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> line = (
    ...     '{"_label_cost": -1.0, "_label_probability": 0.8, "_label_Action": 2, "c": {"User":'
    ...     '{"age": 30}, "_multi": [{"A": {"id": "hat"}}, {"A": {"id": "coat"}}]}}'
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "log.dsjson"
    ...     _ = path.write_text(line)
    ...     log = read_dsjson(path, item="A.id")
    >>> log["A.id"], log["reward"], log["context"], log["option"]
    (['coat'], [1.0], [{'User.age': 30}], [{'A.id': 'coat'}])
    """
    names = (item, "propensity", "reward", "context", "option", "offered")
    table: dict[str, list[Any]] = {name: [] for name in names}
    known: dict[str, dict[str, Any]] = {}  # equal actions are one object
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                event = json.loads(line) if line.strip() else {}
                if "c" not in event:  # no decision
                    continue
                offered = [_action(each, item, known) for each in event["c"].pop("_multi")]
                chosen = offered[int(event["_label_Action"]) - 1]
                chance, cost = float(event["_label_probability"]), float(event["_label_cost"])
                row = (chosen[item], chance, -cost, _flat(event["c"]), chosen, offered)
            except (ValueError, LookupError, TypeError, AttributeError) as error:
                raise InvalidTableError(
                    f"line {number} of {path} is not a decision of Vowpal Wabbit: "
                    f"{type(error).__name__}: {error}"
                ) from None
            for name, cell in zip(names, row, strict=True):
                table[name].append(cell)
    return table


def _action(plain: dict[str, Any], item: str, known: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the features of an action, with its name."""
    text = json.dumps(plain, sort_keys=True)
    if text not in known:
        known[text] = {item: text} | _flat(plain)
    return known[text]


def _flat(plain: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return features by names such as "User.age"; lists are numbered."""
    flat: dict[str, Any] = {}
    for name, value in plain.items():
        if isinstance(value, list):
            value = {str(at): each for at, each in enumerate(value)}
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{name}.")
        elif not name.startswith("_"):
            flat[prefix + name] = value
    return flat


def _contexts(columns: dict[str, Any]) -> Rows | None:
    """Return the context: some columns, or one column of dicts, which may be JSON."""
    if not columns:
        return None
    if len(columns) == 1:
        (given,) = columns.values()
        cells = [None if isinstance(cell, float) and cell != cell else cell for cell in given]
        seen = next((cell for cell in cells if cell not in (None, {}, "null")), None)
        if seen is None:
            return None
        if isinstance(seen, str) and seen.startswith("{"):
            seen, cells = {}, [None if cell is None else json.loads(cell) for cell in cells]
        if isinstance(seen, Mapping):
            return Reader().read_contexts([cell or {} for cell in cells])
    return Reader().read_contexts(columns)


class _Sets:
    """The different sets of options of a log that is being read; equal ones are found once.

    Without a column of offers, all items of the log were always offered.
    """

    def __init__(self, name: str, *, has_offers: bool) -> None:
        self._name, self._has_offers = name, has_offers
        self._options: list[Option] = []
        self._ids: list[Item] = []
        self._places: dict[Any, int] = {}  # of options
        # Of each set its number, and the places of its items.
        self._sets: dict[tuple[Any, ...], tuple[int, dict[Item, int]]] = {}

    def add(self, items: list[Item], offers: Any, rows: list[int]) -> tuple[list[int], list[int]]:
        """Return the set and the chosen option of each decision."""
        if not self._has_offers:
            for item in dict.fromkeys(items):
                self._place(item, item)
            return [0] * len(items), [self._places[item] for item in items]
        numbers, chosen = [], []
        for row, item, cell in zip(rows, items, offers, strict=True):
            number, place_of = self._set(_offers(cell, row, self._name), row)
            if item not in place_of:
                raise InvalidTableError(
                    f"row {row} chose {item!r}, which is not among the offered "
                    f"{list(place_of)[:10]}"
                )
            numbers.append(number)
            chosen.append(place_of[item])
        return numbers, chosen

    def _set(self, given: list[Any], row: int) -> tuple[int, dict[Item, int]]:
        """Return the number of a set, and the places of its items."""
        keys = tuple([tuple(e.items()) if isinstance(e, Mapping) else e for e in given])
        try:
            if keys in self._sets:
                return self._sets[keys]
        except TypeError:
            raise InvalidTableError(
                f"row {row} must offer features that are numbers or strings, got {given[0]!r:.60}"
            ) from None
        places = [self._place(key, option) for key, option in zip(keys, given, strict=True)]
        place_of = {self._ids[place]: place for place in places}
        if len(place_of) < len(keys):
            raise InvalidTableError(f"row {row} offers an item twice: {given!r:.60}")
        self._sets[keys] = len(self._sets), place_of
        return self._sets[keys]

    def _place(self, key: Any, option: Option) -> int:
        """Return the place of an option, perhaps a new one."""
        if key not in self._places:
            self._places[key] = len(self._options)
            self._options.append(option)
            self._ids.append(option[self._name] if isinstance(option, Mapping) else option)
        return self._places[key]

    def found(self) -> tuple[list[Option], list[Item], list[IntArray]]:
        """Return all options, their items, and the options of each set."""
        members = [np.array(list(place_of.values())) for _, place_of in self._sets.values()]
        if not self._has_offers:
            members = [np.arange(len(self._options))]
        return self._options, self._ids, members


def _offers(cell: Any, row: int, name: str) -> list[Any]:
    """Return the offered options of a row; in a CSV they are JSON."""
    try:
        given = json.loads(cell) if isinstance(cell, str) else cell
    except ValueError:
        given = None
    if not isinstance(given, list | tuple | np.ndarray) or not len(given):
        raise InvalidTableError(
            f"row {row} must list what was offered, such as ['hat', 'coat'], got {cell!r:.60}"
        )
    for option in given:
        has_id = name in option if isinstance(option, Mapping) else isinstance(option, ITEMS)
        if not has_id:
            raise InvalidTableError(
                f"row {row} must offer items, or dicts with an item {name!r}, got {option!r:.60}"
            )
    return list(given)
