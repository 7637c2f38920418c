"""Recorded arms and rewards from a CSV file."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen import checks, params
from halfseen.errors import InvalidInputError, InvalidSettingError, InvalidTableError
from halfseen.frames import Encoder, Reader
from halfseen.frames.cells import read_cells
from halfseen.frames.encoder import Column
from halfseen.frames.files import cells_of, columns_of, numbers_of
from halfseen.seeding import stream
from halfseen.values import LARGEST, BoolArray, FloatArray, Slate
from halfseen.worlds.base import Facts, Round, World, register_world, streams
from halfseen.worlds.lowrank import half_seen


@dataclass(frozen=True, eq=False)
class Recorded:
    """All offered arms of all rounds, one row per arm.

    Attributes
    ----------
    values : ndarray, shape (n_rows, dim)
        NaN where nothing was recorded.
    payoffs : ndarray, shape (n_rows,)
        Mean rewards, or single rewards if `noisy`.
    starts : ndarray of int, shape (n_rounds + 1,)
        Round i has rows starts[i] to starts[i + 1].
    names : tuple of str
        Of the features.
    shares : ndarray, shape (dim,)
        Share of recorded entries of each feature.
    context : ndarray, shape (n_rounds, context_dim), or None
    items : ndarray of int, shape (n_rows,), or None
    """

    values: FloatArray
    payoffs: FloatArray
    starts: NDArray[np.int64]
    noisy: bool
    names: tuple[str, ...]
    shares: FloatArray
    context: FloatArray | None = None
    items: NDArray[np.int64] | None = None

    @property
    def n_rounds(self) -> int:
        """Number of recorded rounds."""
        return len(self.starts) - 1

    @property
    def n_arms(self) -> int | None:
        """Number of arms per round, None where it differs."""
        counts = np.diff(self.starts)
        return int(counts[0]) if counts.min() == counts.max() else None


@lru_cache(maxsize=4)
def _load(path: Path, stamp: tuple[int, int], world: "TableWorld") -> Recorded:
    """Return the table of a file, which is read once as long as its stamp does not change.

    Raises
    ------
    InvalidInputError
        Names the column and the row, the value got, and the remedy.
    """
    try:
        return _recorded(columns_of(path), world)
    except InvalidTableError as error:
        raise InvalidInputError(f"{path}: {error.args[0]}") from None


def _recorded(columns: Mapping[str, Any], world: "TableWorld") -> Recorded:
    round_column, own = world.round_column, [*world.context_columns]
    own += [] if world.id_column is None else [world.id_column]
    for name in (round_column, *own):
        if name not in columns:
            remedy = ": name the one that numbers the rounds, --round or round_column="
            raise InvalidTableError(
                f"there is no column {name!r}, only {list(columns)}"
                f"{remedy if name == round_column else ''}"
            )
    paid, *others = [
        name for name in (world.mean_column, world.reward_column) if name in columns
    ] or [""]
    if not paid or others:
        raise InvalidTableError(
            f"there must be one of the columns {world.mean_column!r} and {world.reward_column!r}, "
            f"got {list(columns)}: rename or remove columns, or set mean_column, reward_column"
        )
    rounds = numbers_of(round_column, columns[round_column], "whole numbers", _are_whole)
    want = "finite numbers for every arm"
    payoffs = numbers_of(paid, columns[paid], want, lambda x: abs(x) <= LARGEST)
    no_features = {round_column, paid, "arm", "chosen", *own}
    features = {name: each for name, each in columns.items() if name not in no_features}
    if not features or not len(rounds):
        raise InvalidTableError("there must be features and rows, got none: nothing was recorded")
    values, known = _encoded(features)
    for name in features.keys() - {column.name for column in known}:
        raise InvalidTableError(f"column {name!r} was never recorded: leave it out")
    order = np.argsort(rounds, kind="stable")
    starts = np.append(np.unique(rounds[order], return_index=True)[1], len(rounds))
    if np.diff(starts).max() == 1:
        raise InvalidTableError(
            "there is one row per round, so only the reward of the chosen option is known: a "
            "simulation needs every option of a round, each with its mean or reward, and "
            "`halfseen evaluate` is for a log with propensities"
        )
    context = None
    if world.context_columns:
        table, contexts = _encoded({name: columns[name] for name in world.context_columns})
        _check_contexts(table[order], contexts, rounds[order])
        context = table[order][starts[:-1]] if contexts else None
    return Recorded(
        values=values[order],
        payoffs=payoffs[order],
        starts=starts,
        noisy=paid == world.reward_column,
        names=tuple(name for column in known for name in column.names),
        shares=(values == values).mean(axis=0),
        context=context,
        items=None if world.id_column is None else _items(world.id_column, columns)[order],
    )


def _are_whole(numbers: FloatArray) -> BoolArray:
    return np.asarray((numbers % 1 == 0) & (abs(numbers) < 2**53))


def _encoded(columns: Mapping[str, Any]) -> tuple[FloatArray, list[Column]]:
    """Return the features of an agent that is offered all rows, column by column.

    Columns in which nothing is seen have none.
    """
    rows = Reader().read(columns)
    slate, encoder = Encoder(max_columns=len(columns)).encode(rows, dim=1)
    known = [encoder.columns[name] for name in columns if name in encoder.columns]
    order = [feature for column in known for feature in column.features]
    return np.ascontiguousarray(slate.table[:, order]), known


def _check_contexts(table: FloatArray, columns: list[Column], rounds: FloatArray) -> None:
    """Raise an error if a context, one row per arm, is not the same within a round."""
    changes = (table[1:] != table[:-1]) & ((table == table)[1:] | (table == table)[:-1])
    changes &= (rounds[1:] == rounds[:-1])[:, None]
    names = [column.name for column in columns for _ in column.features]
    for row, feature in np.argwhere(changes)[:1]:
        raise InvalidTableError(
            f"column {names[feature]!r} must have one value per round, because it is context, got "
            f"several in round {rounds[row]:g}: leave it out of the context"
        )


def _items(name: str, columns: Mapping[str, Any]) -> NDArray[np.int64]:
    """Return the item of each row, numbered in the order in which they appear."""
    labels = read_cells(name, cells_of(columns[name]), categorical=True)
    if None in labels:
        raise InvalidTableError(f"column {name!r} is empty in row {[*labels].index(None)}")
    places = {label: place for place, label in enumerate(dict.fromkeys(labels))}
    return np.array([places[label] for label in labels])


def _column_names(name: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise InvalidSettingError(f"must be a list of column names, got {value!r}", name=name)
    return tuple(str(each) for each in value)


def _path(name: str, value: Any) -> str:
    if not isinstance(value, str | os.PathLike):
        raise InvalidSettingError(f"must be a string, got {value!r}", name=name)
    return str(os.fspath(value))


@register_world("table")
class TableWorld(World):
    r"""Recorded rounds: every arm with its features, some missing, and its mean or reward.

    A CSV file has one line per offered arm, with a column for the round, one of mean and reward,
    maybe some called `arm` and `chosen`; all other columns are features, as for an `Agent`:
    numbers, or categories with one feature per string, where all beyond 50 share 16 features. A
    column of a CSV file is numbers if each of its cells is one or empty. Empty cells, NaN and NA
    are missing. The number of arms may vary. A file is read at the first `realize`, and once per
    process.

    Parameters
    ----------
    path : str
    round_column, mean_column, reward_column : str
        Names of columns that are not features.
    id_column : str, optional
        The column of ids of returning items, which policies see.
    context_columns : sequence of str
        Columns that describe the round, such as its visitor, not its options.
    observe_prob : float
        Probability that a recorded entry is shown; 1 shows all of them.
    noise_scale : float, optional
        Standard deviation of Gaussian noise that is added to means (by default none). Recorded
        rewards get no noise: there it is a fact for policies that need it.
    shuffle : bool
        Rounds come in an order drawn from the seed. Without it, without masks and without noise
        all seeds are the same.
    rank : int, optional
        A fact for methods that need one.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "offers.csv"
    >>> _ = file.write_text("round,mean,x,y\n1,0.1,1,2\n1,0.7,3,\n2,0.5,0,1\n2,0.2,1,0\n")
    >>> world = TableWorld(path=file)
    >>> [round.means.tolist() for round in world.realize(seed=0).rounds()]
    [[0.1, 0.7], [0.5, 0.2]]
    >>> world.shares()
    {'x': 1.0, 'y': 0.75}
    """

    path: str = params.custom(check=_path, kind="str")
    round_column: str = params.custom(default="round", check=checks.text, kind="str")
    id_column: str | None = params.custom(default=None, check=checks.text, kind="str")
    mean_column: str = params.custom(default="mean", check=checks.text, kind="str")
    reward_column: str = params.custom(default="reward", check=checks.text, kind="str")
    context_columns: tuple[str, ...] = params.custom(
        default=(), check=_column_names, kind="sequence of str", plain=list
    )
    observe_prob: float = params.probability(default=1.0)
    noise_scale: float | None = params.real(default=None, low=0.0)
    shuffle: bool = params.flag(default=False)
    rank: int | None = params.integer(default=None, low=1)

    def table(self) -> Recorded:
        """Return the recorded table; the file is read if it has not been read yet."""
        path = Path(self.path).resolve()
        if not path.exists():
            raise InvalidSettingError(
                f"{self.path!r} does not exist (seen from {Path.cwd()})", name="path"
            )
        stamp = path.stat().st_mtime_ns, path.stat().st_size
        return _load(path, stamp, self)

    def shares(self) -> dict[str, float]:
        """Return which features the table has, and the share of recorded entries of each."""
        table = self.table()
        return dict(zip(table.names, table.shares.tolist(), strict=True))

    def data_paths(self) -> dict[str, Path]:
        """Return the file of the table."""
        return {"path": Path(self.path)}

    def realize(self, seed: int) -> "TableRealization":
        """Return the realization of a seed."""
        return TableRealization(self, checks.integer("seed", seed, 0))


class TableRealization:
    """All rounds of a `TableWorld` in the order, with the masks and with the noise of a seed."""

    def __init__(self, world: TableWorld, seed: int) -> None:
        self.world, self.seed, self.table = world, seed, world.table()
        if world.rank is not None:
            checks.integer("rank", world.rank, 1, len(self.table.names))

    @property
    def facts(self) -> Facts:
        """Facts about this realization.

        If the whole table has missing values, `observe_prob` is, for each feature, its share of
        recorded entries times the probability that one of these is shown.
        """
        world, table = self.world, self.table
        shown = world.observe_prob
        return world.facts(
            self.seed,
            dim=len(table.names),
            n_arms=table.n_arms,
            horizon=table.n_rounds,
            observe_prob=shown if table.shares.min() == 1.0 else table.shares * shown,
            noise_scale=world.noise_scale if table.noisy else world.noise_scale or 0.0,
        )

    def rounds(self) -> Iterator[Round]:
        """Yield all rounds; the full view of arms has the recorded missing values."""
        world, table = self.world, self.table
        _, masks, noises = streams(self.seed)
        order: Any = range(table.n_rounds)
        if world.shuffle:
            order = stream(self.seed, "world", "order").permutation(table.n_rounds)
        noise_scale = 0.0 if table.noisy else world.noise_scale or 0.0
        for index in order:
            rows = slice(table.starts[index], table.starts[index + 1])
            arms = table.values[rows].copy()
            noise = noise_scale * noises.standard_normal()
            slate = Slate(
                half_seen(masks, arms, world.observe_prob),
                context=None if table.context is None else table.context[index],
                items=None if table.items is None else table.items[rows],
            )
            yield Round(slate, table.payoffs[rows].copy(), float(noise), arms)
