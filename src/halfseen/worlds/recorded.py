"""Recorded arms and rewards, from a CSV file or arrays."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from halfseen import checks, params, seeding
from halfseen.errors import InvalidInputError, InvalidSettingError
from halfseen.lazy import from_extra
from halfseen.values import LARGEST, FloatArray, Slate
from halfseen.worlds.base import Facts, Round, World, register_world
from halfseen.worlds.masking import MaskLaw, mask_param

if TYPE_CHECKING:
    from pandas import DataFrame


class Columns(NamedTuple):
    """Names of the columns of a table that are no features.

    With `items`, the column of arms has ids of items that come back.
    """

    round: str
    arm: str
    mean: str
    reward: str
    context: tuple[str, ...] = ()
    items: bool = False


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

    def to_dict(self) -> NoReturn:
        """Raise InvalidSettingError: arrays are no plain JSON types."""
        raise InvalidSettingError(
            "a table given as arrays has no JSON form: write it to a CSV file, and use "
            "TableWorld(path=…)"
        )


def record_arrays(
    found: Mapping[str, Any], source: str, lines: NDArray[np.int64] | None = None
) -> Recorded:
    """Check arrays by name, as `TableWorld` lists them; return the table.

    Arms have shape (rounds, n_arms, dim), or are a list of (n_arms, dim) arrays; or they have
    shape (n_rows, dim), with the round of each row in "rounds". Messages name `lines` if there are
    any, those of a CSV file.
    """
    given = [name for name in ("means", "rewards") if found.get(name) is not None]
    if found.get("arms") is None or len(given) != 1:
        raise InvalidInputError(
            f"{source} must have arms and either means or rewards, got {sorted(found)}"
        )
    values, starts = _rows("arms", found["arms"], 2, source)
    payoffs, payoff_starts = _rows(given[0], found[given[0]], 1, source)
    order: Any = slice(None)
    if found.get("rounds") is not None:
        order, starts = _grouped(found["rounds"])
        payoff_starts = starts
    if len(payoffs) != len(values) or not np.array_equal(starts, payoff_starts):
        raise InvalidInputError(
            f"{given[0]} of {source} must have one number per arm, {len(values)} in the same "
            f"rounds as the arms, got {len(payoffs)}"
        )
    names = tuple(str(name) for name in found.get("features", range(values.shape[1])))
    values, payoffs = (np.array(each[order], dtype=np.float64) for each in (values, payoffs))

    def place(row: int) -> str:
        if lines is not None:
            return f"line {lines[order][row]} of {source}"
        index = int(np.searchsorted(starts, row, side="right")) - 1
        return f"round {index}, arm {row - int(starts[index])} of {source}"

    for row, feature in np.argwhere(np.abs(values) > LARGEST).tolist():
        raise InvalidInputError(
            f"features must be finite and at most {LARGEST:g} in size, got {values[row, feature]} "
            f"in {place(row)}, feature {names[feature]!r}: correct it, or leave it empty (NaN) if "
            "it is not known"
        )
    for row in np.flatnonzero(~(np.abs(payoffs) <= LARGEST)).tolist():
        raise InvalidInputError(
            f"every arm must have a finite {given[0][:-1]}, got {payoffs[row]} in {place(row)}: "
            "fill it in, or leave out its round"
        )
    shares = (values == values).mean(axis=0)
    if not shares.all():
        name = names[int(np.argmin(shares))]
        raise InvalidInputError(f"feature {name!r} was never recorded: leave it out")
    if np.diff(starts).max() == 1:
        raise InvalidInputError(
            f"{source} has one row per round, so only the reward of the chosen option is known: a "
            "simulation needs every option of a round, each with its mean or reward"
        )
    context, items = (
        None if found.get(name) is None else np.asarray(found[name])[order]
        for name in ("context", "items")
    )
    return Recorded(
        values=values,
        payoffs=payoffs,
        starts=starts,
        noisy=given == ["rewards"],
        names=names,
        shares=shares,
        context=None if context is None else context[starts[:-1]],
        items=items,
    )


def _grouped(rounds: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the index that groups rows by round, and where rounds start."""
    order = np.argsort(rounds, kind="stable")
    rounds = rounds[order]
    first = np.concatenate([[True], rounds[1:] != rounds[:-1], [True]])
    return order, np.flatnonzero(first)


def _rows(
    name: str, given: Any, n_axes: int, source: str
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return an array with `n_axes` axes, rounds below each other, and where rounds start."""
    try:
        ragged = isinstance(given, list | tuple) and len({np.shape(item) for item in given}) > 1
        parts = [np.asarray(item) for item in given] if ragged else [np.asarray(given)]
        array = np.concatenate(parts) if ragged else parts[0]
    except ValueError as error:
        raise InvalidInputError(f"{name} of {source} is not a table of numbers: {error}") from None
    counts = [len(part) for part in parts]
    if not ragged and array.ndim == n_axes + 1:
        counts = [array.shape[1]] * len(array)
        array = array.reshape(-1, *array.shape[2:])
    if array.ndim != n_axes or array.dtype.kind not in "fiub" or not array.size or 0 in counts:
        raise InvalidInputError(
            f"{name} of {source} must be a table of numbers with {n_axes} axes, or {n_axes + 1} "
            f"with rounds as the first, not empty, got {array.dtype} of shape {np.shape(array)}"
        )
    return array, np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def load(path: str, columns: Columns) -> Recorded:
    """Return the table of a CSV file, which is read once as long as it does not change."""
    place = Path(path)
    if not place.exists():
        raise InvalidSettingError(f"{path!r} does not exist (seen from {Path.cwd()})", name="path")
    status = place.stat()
    return _load(str(place.resolve()), path, (status.st_mtime_ns, status.st_size), columns)


@lru_cache(maxsize=4)
def _load(resolved: str, path: str, stamp: tuple[int, int], columns: Columns) -> Recorded:
    return record_arrays(*read_csv(Path(resolved), columns, path))


CHOSEN = "chosen"
"""A column of this name says what was played; it is never a feature."""

MAX_LEVELS = 50
"""Number of different strings that a column may have."""


def read_csv(
    file: Path, columns: Columns, source: str
) -> tuple[dict[str, NDArray[Any]], str, NDArray[np.int64]]:
    """Return what `record_arrays` takes: the arrays of a file, its name, the line of each row.

    A column of strings alone is a category, one feature per string. A string among numbers is an
    error, and so are more strings than a category may have.

    Raises
    ------
    InvalidInputError
        Names the line and the column, the value got, and the remedy.
    """
    frame = _frame(file, source)
    names = [str(name) for name in frame.columns]
    for name in (columns.round, *columns.context, *([columns.arm] if columns.items else [])):
        if name not in names:
            raise InvalidSettingError(f"{source} has no column {name!r}, only {names}")
    paid = [name for name in (columns.mean, columns.reward) if name in names]
    if len(paid) != 1:
        raise InvalidInputError(
            f"{source} must have one of the columns {columns.mean!r} and {columns.reward!r}, got "
            f"{paid or names}: rename or remove columns, or set mean_column, reward_column"
        )
    rounds = _numbers(frame, columns.round, source)
    whole = (rounds == np.floor(rounds)) & (np.abs(rounds) < 2.0**53)
    for row in np.flatnonzero(~whole).tolist():
        raise InvalidInputError(
            f"column {columns.round!r} must be whole numbers, got {rounds[row]} in line "
            f"{frame.index[row] + 2} of {source}"
        )
    others = {columns.round, columns.arm, columns.mean, columns.reward, CHOSEN, *columns.context}
    features = [_features(frame, name, source) for name in names if name not in others]
    if not features:
        raise InvalidInputError(
            f"{source} has no features: no column besides {sorted(others & set(names))}"
        )
    _check_twins(frame, columns, source)
    arrays = _context_and_items(frame, columns, source) | {
        "arms": np.column_stack([values for values, _ in features]),
        "means" if paid == [columns.mean] else "rewards": _numbers(frame, paid[0], source),
        "rounds": rounds.astype(np.int64),
        "features": np.concatenate([names for _, names in features]),
    }
    return arrays, source, frame.index.to_numpy() + 2  # the header is line 1


def _frame(file: Path, source: str) -> "DataFrame":
    with from_extra("paper", "give the table as arrays: TableWorld.from_arrays"):
        import pandas as pd

    try:
        # Blank lines are read as rows, so that the index gives the number of the line.
        given: Any = {"skip_blank_lines": False, "skipinitialspace": True}
        header = pd.read_csv(file, header=None, nrows=1, dtype=str, **given).iloc[0].dropna()
        frame = pd.read_csv(file, low_memory=False, **given)
    except pd.errors.EmptyDataError:
        raise InvalidInputError(f"{source} is empty: its first line must name columns") from None
    except (pd.errors.ParserError, UnicodeDecodeError, OSError) as error:
        raise InvalidInputError(f"{source} cannot be read as a table: {error}") from None
    if not header.is_unique:  # pandas would call the second one "x.1"
        name = header[header.duplicated()].iloc[0]
        raise InvalidInputError(f"column {name!r} is twice in {source}: rename or remove one")
    if not isinstance(frame.index, pd.RangeIndex):
        raise InvalidInputError(f"{source} has lines with more cells than its first line has names")
    frame = frame.dropna(how="all")
    if not len(frame):
        raise InvalidInputError(f"{source} has no lines below its first: nothing was recorded")
    return frame


def _features(frame: "DataFrame", name: str, source: str) -> tuple[FloatArray, list[str]]:
    """Return the features of a column, shape (n_rows, n), and their names."""
    import pandas as pd

    column = frame[name]
    levels = column.dropna().unique()
    if not len(levels) or pd.to_numeric(column, errors="coerce").notna().any():
        remedy = "correct it, leave it empty, or leave out the column"
        return _numbers(frame, name, source, remedy)[:, None], [name]
    if len(levels) > MAX_LEVELS:
        raise InvalidInputError(
            f"column {name!r} of {source} has {len(levels)} different strings, more than the "
            f"{MAX_LEVELS} that a category may have: leave out the column"
        )
    is_level = np.asarray(column, object)[:, None] == np.asarray(levels, object)
    values = np.where(column.isna().to_numpy()[:, None], np.nan, is_level)
    return values, [f"{name}={level}" for level in levels]


def _context_and_items(
    frame: "DataFrame", columns: Columns, source: str
) -> dict[str, NDArray[Any]]:
    """Return the context and the item of each row, if they are asked for."""
    found: dict[str, NDArray[Any]] = {}
    for name in columns.context:
        changes = frame.groupby(columns.round)[name].nunique(dropna=False) > 1
        if changes.any():
            raise InvalidInputError(
                f"column {name!r} must have one value per round, because it is context, got "
                f"several in round {changes.idxmax()} of {source}: leave it out of the context"
            )
    if columns.context:
        parts = [_features(frame, name, source)[0] for name in columns.context]
        found["context"] = np.column_stack(parts)
    if columns.items:
        codes = frame[columns.arm].factorize()[0].astype(np.int64)
        for row in np.flatnonzero(codes < 0).tolist():
            raise InvalidInputError(
                f"column {columns.arm!r} is empty in line {frame.index[row] + 2} of {source}"
            )
        found["items"] = codes
    return found


def _numbers(frame: "DataFrame", name: str, source: str, remedy: str = "correct it") -> FloatArray:
    import pandas as pd

    column = frame[name]
    parsed = pd.to_numeric(column, errors="coerce")
    numbers: FloatArray = parsed.to_numpy(dtype=np.float64, na_value=np.nan)
    for row in np.flatnonzero(column.notna().to_numpy() & np.isnan(numbers)).tolist():
        raise InvalidInputError(
            f"column {name!r} must be numbers, got {column.iloc[row]!r} in line "
            f"{frame.index[row] + 2} of {source}: {remedy}"
        )
    return numbers


def _check_twins(frame: "DataFrame", columns: Columns, source: str) -> None:
    if columns.arm not in frame.columns:
        return
    twins = np.flatnonzero(frame.duplicated([columns.round, columns.arm]).to_numpy())
    if len(twins):
        row = frame.iloc[int(twins[0])]
        raise InvalidInputError(
            f"arm {row[columns.arm]} is twice in round {row[columns.round]}, the second time in "
            f"line {frame.index[int(twins[0])] + 2} of {source}"
        )


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
    """Recorded rounds: every arm with its features, holes included, and its mean or reward.

    A CSV file has one line per offered arm, with a column for the round, one of mean and reward,
    maybe one for the arm's name and one called `chosen`; all other columns are features. A column
    of strings is a category, one feature per string. Empty cells, NaN and NA are holes. Rounds may
    have different numbers of arms. A file is read at the first `realize`, and once per process.

    Parameters
    ----------
    path : str
    round_column, arm_column, mean_column, reward_column : str
        Names of columns that are no features.
    context_columns : sequence of str
        Columns that describe the round, such as its visitor, not its options.
    items : bool
        Whether policies see the column of arms, as ids of items that come back.
    observe_prob : float
        Probability that a recorded entry is shown; 1 shows all of them.
    masks : MaskLaw, str or mapping
        Which recorded entries are shown.
    noise_scale : float, optional
        Standard deviation of Gaussian noise that is added to means (by default none). Recorded
        rewards get no noise: there it is a fact for policies that need it.
    horizon : int, optional
        Use only that many rounds, the first after a shuffle.
    shuffle : bool
        Rounds come in an order drawn from the seed. Without it, without masks and without noise
        all seeds are the same.
    rank : int, optional
        A fact for methods that need one.
    recorded : Recorded, optional
        Instead of a path: see `from_arrays`.

    Examples
    --------
    >>> arms = [[[1.0, 2.0], [3.0, float("nan")]], [[0.0, 1.0], [1.0, 0.0]]]
    >>> world = TableWorld.from_arrays(arms, means=[[0.1, 0.7], [0.5, 0.2]])
    >>> [round.means.tolist() for round in world.realize(seed=0).rounds()]
    [[0.1, 0.7], [0.5, 0.2]]
    """

    path: str | None = params.custom(default=None, check=_path, kind="str")
    round_column: str = params.custom(default="round", check=checks.text, kind="str")
    arm_column: str = params.custom(default="arm", check=checks.text, kind="str")
    mean_column: str = params.custom(default="mean", check=checks.text, kind="str")
    reward_column: str = params.custom(default="reward", check=checks.text, kind="str")
    context_columns: tuple[str, ...] = params.custom(
        default=(), check=_column_names, kind="sequence of str", plain=list
    )
    items: bool = params.flag(default=False)
    observe_prob: float = params.probability(default=1.0)
    masks: MaskLaw = mask_param()
    noise_scale: float | None = params.real(default=None, low=0.0)
    horizon: int | None = params.horizon(default=None)
    shuffle: bool = params.flag(default=False)
    rank: int | None = params.integer(default=None, low=1)
    recorded: Recorded | None = params.custom(
        default=None, check=lambda _, value: value, kind="Recorded", plain=lambda it: it.to_dict()
    )

    def validate(self) -> None:
        """Raise InvalidSettingError unless there is either a file or arrays."""
        if (self.path is None) == (self.recorded is None):
            raise InvalidSettingError(
                f"must name a CSV file, got {self.path!r}: for arrays, use "
                f"TableWorld.from_arrays without a path",
                name="path",
            )

    @classmethod
    def from_arrays(
        cls, arms: Any, *, means: Any = None, rewards: Any = None, **settings: Any
    ) -> "TableWorld":
        """Return the world of arrays, which are copied.

        Parameters
        ----------
        arms : array_like, shape (rounds, n_arms, dim), or list of (n_arms, dim)
            NaN where nothing was recorded.
        means, rewards : array_like, shape (rounds, n_arms), or list of (n_arms,)
            One of the two.
        **settings
            All others of the class except for those of files.
        """
        found = {"arms": arms, "means": means, "rewards": rewards}
        given = {name: value for name, value in found.items() if value is not None}
        return cls(recorded=record_arrays(given, "the arrays given"), **settings)

    def table(self) -> Recorded:
        """Return the recorded table; a file is read if it has not been read yet."""
        if self.recorded is not None:
            return self.recorded
        names = (self.round_column, self.arm_column, self.mean_column, self.reward_column)
        return load(str(self.path), Columns(*names, self.context_columns, self.items))

    def shares(self) -> dict[str, float]:
        """Return which features the table has, and the share of recorded entries of each.

        >>> arms = [[[1.0, 2.0], [3.0, float("nan")]]]
        >>> TableWorld.from_arrays(arms, means=[[0.1, 0.7]]).shares()
        {'0': 1.0, '1': 0.5}
        """
        table = self.table()
        return dict(zip(table.names, table.shares.tolist(), strict=True))

    def data_paths(self) -> dict[str, Path]:
        """Return the file of the table."""
        return {} if self.path is None else {"path": Path(self.path)}

    def realize(self, seed: int) -> "TableRealization":
        """Return the realization of a seed."""
        return TableRealization(self, checks.integer("seed", seed, 0))


class TableRealization:
    """All rounds of a `TableWorld` in the order, with the masks and with the noise of a seed."""

    def __init__(self, world: TableWorld, seed: int) -> None:
        self.world, self.seed, self.table = world, seed, world.table()
        dim, n_rounds = len(self.table.names), self.table.n_rounds
        if world.horizon is not None and world.horizon > n_rounds:
            raise InvalidSettingError(
                f"must be in [1, {n_rounds}], as many rounds as are recorded, got "
                f"{world.horizon}: lower it or leave it out",
                name="horizon",
            )
        if world.rank is not None:
            checks.integer("rank", world.rank, 1, dim)
        world.masks.stated_prob(world.observe_prob, dim)

    @property
    def facts(self) -> Facts:
        """Facts about this realization.

        Where the whole table has holes, `observe_prob` is, for each feature, its share of recorded
        entries times the probability that one of these is shown.
        """
        world, table = self.world, self.table
        shown = world.masks.stated_prob(world.observe_prob, len(table.names))
        return Facts(
            seed=self.seed,
            dim=len(table.names),
            n_arms=table.n_arms,
            horizon=world.horizon or table.n_rounds,
            observe_prob=shown if table.shares.min() == 1.0 else table.shares * shown,
            noise_scale=world.noise_scale if table.noisy else world.noise_scale or 0.0,
            rank=world.rank,
        )

    def rounds(self) -> Iterator[Round]:
        """Yield all rounds; the full view of arms has the recorded holes."""
        world, table, seed = self.world, self.table, self.seed
        masks, noises = (seeding.stream(seed, "world", name) for name in ("masks", "noise"))
        order: Any = range(table.n_rounds)
        if world.shuffle:
            order = seeding.stream(seed, "world", "order").permutation(table.n_rounds)
        noise_scale = 0.0 if table.noisy else world.noise_scale or 0.0
        for index in order[: world.horizon]:
            rows = slice(table.starts[index], table.starts[index + 1])
            arms = table.values[rows].copy()
            mask = world.masks.mask(masks, arms, world.observe_prob)
            noise = noise_scale * noises.standard_normal()
            slate = Slate(
                np.where(mask, arms, np.nan),
                context=None if table.context is None else table.context[index],
                items=None if table.items is None else table.items[rows],
            )
            yield Round(slate, table.payoffs[rows].copy(), float(noise), arms)
