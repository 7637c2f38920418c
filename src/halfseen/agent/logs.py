"""The log of an agent as data frames: one row for each place of each decision."""

import datetime
import json
import os
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from halfseen import checks
from halfseen.agent.database import opened
from halfseen.agent.events import EXPIRY
from halfseen.agent.sql_journal import SqlJournal
from halfseen.errors import MissingExtraError, StorageError
from halfseen.lazy import LazyModule

nw = LazyModule("narwhals")

BACKENDS = ("pandas", "polars", "pyarrow")
_CHUNK = 10_000
COLUMNS = (
    "id", "time", "place", "item", "probability", "reward", "status", "late", "late_reward",
    "context", "items", "probabilities",
)  # fmt: skip


def read_log(
    url: str | os.PathLike[str],
    name: str = "default",
    *,
    backend: str = "pandas",
    chunk: int | None = None,
) -> Any:
    """Return the log of an agent in a database, without opening the agent.

    A row for each place of each decision, in the order of decisions:

    - `id`, `time` (UTC), `place` (from 0), `item`, and its `probability` given the places before;
    - `reward`: the sum of its parts, None while there is none;
    - `status`: "pending", "rewarded" or "expired";
    - `late`: how many rewards came after that, and `late_reward`, their sum, which is not learned;
    - `context` as JSON, `items` with all that was offered, and for the first place the
      `probabilities` of all of them; None if the item was not drawn.

    Items are strings, also where they were whole numbers.

    Parameters
    ----------
    url, name
        As in `Agent.open`.
    backend : "pandas", "polars" or "pyarrow"
    chunk : int, optional
        Largest number of decisions in a frame: then frames are returned one after the other, for
        logs that do not fit into memory.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from halfseen import Agent
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     agent = Agent.open(pathlib.Path(folder) / "shop.db")
    ...     agent.learn(agent.choose(["hat"]), 0.5)
    ...     log = read_log(pathlib.Path(folder) / "shop.db")
    ...     agent.close()
    >>> log[["item", "probability", "reward", "status"]].values.tolist()
    [['hat', 1.0, 0.5, 'rewarded']]
    """
    storage = SqlJournal(opened(url, must_exist=True), name)
    if not storage.find():
        raise StorageError(f"{storage.place} has no agent {name!r}: give the name= of another one")
    return frames_of(storage, backend, chunk)


def frames_of(storage: SqlJournal, backend: str, chunk: int | None) -> Any:
    """Return the log as one frame, or as an iterator of frames."""
    checks.one_of("backend", backend, BACKENDS)
    try:
        import_module(backend)
    except ModuleNotFoundError:
        others = ", ".join(repr(each) for each in BACKENDS if each != backend)
        raise MissingExtraError(
            f"{backend} is missing: pip install {backend}, or choose another backend: {others}"
        ) from None
    if chunk is not None:
        checks.integer("chunk", chunk, 1)
        return (_frame(rows, backend) for rows in _rows(storage, chunk))
    return _frame([row for rows in _rows(storage, _CHUNK) for row in rows], backend)


def _frame(rows: list[dict[str, Any]], backend: str) -> Any:
    data = {name: [row[name] for row in rows] for name in COLUMNS}
    return nw.from_dict(data, backend=backend).to_native()


def _rows(storage: SqlJournal, chunk: int) -> Iterator[list[dict[str, Any]]]:
    """Yield the rows of some decisions, again and again."""
    last = 0
    while rows := rows_after(storage, last, chunk):
        yield rows
        last = rows[-1]["number"]


def rows_after(storage: SqlJournal, after: int, most: int) -> list[dict[str, Any]]:
    """Return a row for each place of the decisions after an event: its number and `COLUMNS`."""
    rows = []
    made, rewards = storage.logged(after, most)
    for number, time, options, body, law in made:
        context = body.get("context")
        if context is not None:
            values = (column[0] for column in context["columns"])
            context = dict(zip(context["names"], values, strict=True))
        drawn = zip(body["items"], body["probabilities"], strict=True)
        for place, (item, probability) in enumerate(drawn):
            own = [reward for reward in rewards[body["id"]] if reward[0] == place]
            row = {
                "number": number,
                "id": body["id"],
                "time": datetime.datetime.fromtimestamp(time, datetime.UTC),
                "place": place,
                "item": str(item),
                "probability": probability,
                **outcome(own),
                "context": json.dumps(context),
                "items": [str(each) for each in storage.rows(options).items],
                "probabilities": None if place or law is None else law.tolist(),
            }
            rows.append(row)
    return rows


def outcome(rewards: list[Any]) -> dict[str, Any]:
    """Return the reward of a place, its status, and number and sum of those that came late."""
    total: float | None = None
    status, late = "pending", []
    for _, key, value, final, _ in rewards:
        if status != "pending":
            late.append(value)
        elif key == EXPIRY:
            total, status = value, "expired"
        else:
            total = value + (total or 0.0)
            status = "rewarded" if final else status
    late_reward = sum(late) if late else None
    return {"reward": total, "status": status, "late": len(late), "late_reward": late_reward}
