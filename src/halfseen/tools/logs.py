"""Logs with one row per decision: who was offered, who was chosen how likely, and the reward."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.agent.logs import read_log
from halfseen.checks import did_you_mean
from halfseen.errors import InvalidTableError
from halfseen.frames import Encoder, Reader, Rows
from halfseen.frames.files import cells_of, columns_of, numbers_of
from halfseen.lazy import from_extra
from halfseen.values import LARGEST, BoolArray, FloatArray, Item
from halfseen.values.decision import listed

IntArray = NDArray[np.intp]
Option = Item | Mapping[str, Any]

ITEMS = (str, int, np.integer)
_DATABASES = (".db", ".sqlite")  # of agents
_OF_AGENTS = frozenset(("item", "probability", "reward", "place", "items", "context"))
_DSJSON = (".dsjson", ".json", ".jsonl")
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
    offered, chosen : ndarray of int, shape (n,)
        The set of each decision, and the chosen option.
    propensity, reward : ndarray, shape (n,)
    context : Rows, optional
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
    offered: IntArray
    chosen: IntArray
    propensity: FloatArray
    reward: FloatArray
    context: Rows | None
    encoder: Encoder
    n_without_reward: int
    is_agents: bool

    def __len__(self) -> int:
        return len(self.reward)

    def parts(self) -> Iterator[Part]:
        """Yield all decisions, part by part, so that memory is bounded."""
        sizes = np.array([len(each) for each in self.sets])[self.offered]
        n, step = len(self), max(1, _MOST_PAIRS * len(self) // int(sizes.sum()))
        for first in range(0, n, step):
            rows = np.arange(first, min(first + step, n))
            starts = np.cumsum(sizes[rows]) - sizes[rows]
            row = np.repeat(np.arange(len(rows)), sizes[rows])
            option = np.concatenate([self.sets[at] for at in self.offered[rows]])
            is_chosen = option == self.chosen[rows][row]
            yield Part(rows, self.contexts(rows), starts, row, option, is_chosen)

    def contexts(self, rows: IntArray) -> FloatArray | None:
        """Return the contexts of decisions as numbers, shape (n, context_dim)."""
        if self.context is None:
            return None
        columns = [cells_of(column, rows) for column in self.context.columns]
        some = Rows(rows.tolist(), self.context.names, columns)
        return self.encoder.encode(some, dim=1).slate.table

    def context_dicts(self, rows: IntArray) -> Iterator[dict[str, Any]]:
        """Yield the contexts of decisions as dicts; None where hidden."""
        if self.context is None:
            yield from ({} for _ in rows)
            return
        columns = [cells_of(column, rows) for column in self.context.columns]
        for cells in zip(*map(listed, columns), strict=True):
            seen = (None if cell != cell else cell for cell in cells)
            yield dict(zip(self.context.names, seen, strict=True))


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
    known = columns_of(log)
    is_agents = _OF_AGENTS.issubset(known) and propensity not in known
    if is_agents:
        propensity, context, offered = "probability", "context", "items"
    names = [context] if isinstance(context, str) else list(context)
    wanted = [item, propensity, reward, *names, *([] if offered is None else [offered])]
    for name in wanted:
        if name not in known:
            need = ""
            if name == propensity:
                need = (
                    "; evaluation needs the probability of each choice: name its column with "
                    "propensity=…"
                )
            near = did_you_mean(name, known) or f": it has {str([*known][:10])[1:-1] or 'none'}"
            error = InvalidTableError(f"the log has no column {name!r}{near}{need}")
            error.page = "docs/evaluate.md"
            raise error
    want = f"numbers of size at most {LARGEST:g}"
    rewards = numbers_of(reward, known[reward], want, lambda x: ~(np.abs(x) > LARGEST))
    place = np.zeros(len(rewards))
    if is_agents:
        place = numbers_of("place", known["place"], "whole numbers", lambda x: x >= 0.0)
    is_known = (rewards == rewards) & (place == 0.0)
    chances = numbers_of(
        propensity, known[propensity], "in (0, 1]", lambda x: (x > 0.0) & (x <= 1.0) | ~is_known
    )
    kept = np.flatnonzero(is_known)
    if not len(kept):
        raise InvalidTableError(f"column {reward!r} is empty: at least one decision needs a reward")
    offers = None if offered is None else cells_of(known[offered], kept)
    items = Reader(id=item, unique=False).read({item: cells_of(known[item], kept)}).items
    sets = _always_all(items) if offers is None else _sets(items, item, offers, kept.tolist())
    rows = _contexts({name: cells_of(known[name], kept) for name in names})
    encoder = Encoder() if rows is None else Encoder().grown(rows)
    n_without = int((place == 0.0).sum()) - len(kept)
    return Log(*sets, chances[kept], rewards[kept], rows, encoder, n_without, is_agents)


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


Sets = tuple[list[Option], list[Item], list[IntArray], IntArray, IntArray]
"""Options, their items, sets, and for each decision its set and the chosen option, as in `Log`."""


def _always_all(items: list[Item]) -> Sets:
    """Return the sets of a log in which every item was always offered."""
    known = list(dict.fromkeys(items))
    places = {item: place for place, item in enumerate(known)}
    chosen = np.array([places[item] for item in items])
    return [*known], known, [np.arange(len(known))], np.zeros_like(chosen), chosen


def _sets(items: list[Item], name: str, offered: Any, rows: list[int]) -> Sets:
    """Return the sets of a log that says what was offered; equal ones are found once."""
    options: list[Option] = []
    ids: list[Item] = []
    places: dict[Any, int] = {}  # of options
    sets: dict[tuple[Any, ...], tuple[int, dict[Item, int]]] = {}  # number, and places of items
    numbers, chosen = [], []
    for row, item, cell in zip(rows, items, offered, strict=True):
        given = _offers(cell, row, name)
        keys = tuple([tuple(e.items()) if isinstance(e, Mapping) else e for e in given])
        try:
            is_new = keys not in sets
        except TypeError:
            raise InvalidTableError(
                f"row {row} must offer features that are numbers or strings, got {given[0]!r:.60}"
            ) from None
        if is_new:
            for key, option in zip(keys, given, strict=True):
                if key not in places:
                    places[key] = len(options)
                    options.append(option)
                    ids.append(option[name] if isinstance(option, Mapping) else option)
            sets[keys] = len(sets), {ids[places[key]]: places[key] for key in keys}
            if len(sets[keys][1]) < len(keys):
                raise InvalidTableError(f"row {row} offers an item twice: {given!r:.60}")
        number, place_of = sets[keys]
        if item not in place_of:
            raise InvalidTableError(
                f"row {row} chose {item!r}, which is not among the offered {list(place_of)[:10]}"
            )
        numbers.append(number)
        chosen.append(place_of[item])
    members = [np.array(list(place_of.values())) for _, place_of in sets.values()]
    return options, ids, members, np.array(numbers), np.array(chosen)


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
