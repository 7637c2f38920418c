"""Recorded arms and rewards from a CSV file."""

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen import checks, params, seeding
from halfseen.errors import InvalidInputError, InvalidSettingError
from halfseen.lazy import from_extra
from halfseen.values import LARGEST, BoolArray, FloatArray, Slate
from halfseen.worlds.base import Facts, Round, World, register_world
from halfseen.worlds.lowrank import half_seen

if TYPE_CHECKING:
    from pandas import DataFrame


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


NO_FEATURES = ("arm", "chosen")
"""Columns of these names say what was offered and played; they are never features."""

MAX_LEVELS = 50
"""Number of different strings that a column may have."""


@lru_cache(maxsize=4)
def _load(path: Path, stamp: tuple[int, int], world: "TableWorld") -> Recorded:
    """Return the table of a CSV file, which is read once as long as its stamp does not change.

    A column of strings alone is a category, one feature per string. A string among numbers is an
    error, and so are more strings than a category may have.

    Raises
    ------
    InvalidInputError
        Names the line and the column, the value got, and the remedy.
    """
    file = _File(world, _frame(path))
    round_column, paid = world.round_column, file.paid_column()
    rounds = file.numbers(round_column, "whole numbers", lambda x: (x % 1 == 0) & (abs(x) < 2**53))
    payoffs = file.numbers(paid, "finite numbers for every arm", lambda x: abs(x) <= LARGEST)
    others = {round_column, paid, world.id_column, *world.context_columns, *NO_FEATURES}
    values, names = file.features([name for name in file.frame.columns if name not in others])
    if not names:
        raise InvalidInputError(f"{path} has no features: all its columns have another use")
    shares = (values == values).mean(axis=0)
    if not shares.all():
        name = names[int(shares.argmin())]
        raise InvalidInputError(f"feature {name!r} of {path} was never recorded: leave it out")
    order = np.argsort(rounds, kind="stable")
    starts = np.append(np.unique(rounds[order], return_index=True)[1], len(rounds))
    if np.diff(starts).max() == 1:
        raise InvalidInputError(
            f"{path} has one row per round, so only the reward of the chosen option is known: a "
            "simulation needs every option of a round, each with its mean or reward, and "
            "`halfseen evaluate` is for a log with propensities"
        )
    return Recorded(
        values=values[order],
        payoffs=payoffs[order],
        starts=starts,
        noisy=paid == world.reward_column,
        names=names,
        shares=shares,
        context=file.context()[order[starts[:-1]]] if world.context_columns else None,
        items=None if world.id_column is None else file.items(world.id_column)[order],
    )


def _frame(path: Path) -> "DataFrame":
    with from_extra("paper"):
        import pandas as pd

    try:
        # Blank lines are read as rows, so that the index gives the number of the line.
        given: Any = {"skip_blank_lines": False, "skipinitialspace": True}
        header = pd.read_csv(path, header=None, nrows=1, dtype=str, **given).iloc[0].dropna()
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame = pd.read_csv(path, low_memory=False, index_col=False, **given)
    except pd.errors.ParserWarning:
        raise InvalidInputError(
            f"{path} has lines with more cells than its first line has names"
        ) from None
    except (ValueError, OSError) as error:
        raise InvalidInputError(f"{path} cannot be read as a table: {error}") from None
    if not header.is_unique:  # pandas would call the second one "x.1"
        name = header[header.duplicated()].iloc[0]
        raise InvalidInputError(f"column {name!r} is twice in {path}: rename or remove one")
    frame = frame.dropna(how="all")
    if not len(frame):
        raise InvalidInputError(f"{path} has no lines below its first: nothing was recorded")
    return frame


class _File(NamedTuple):
    """A table that is being read; the index of the frame counts lines below the first."""

    world: "TableWorld"
    frame: "DataFrame"

    def place(self, row: int) -> str:
        """Return where a row is in the file."""
        return f"in line {self.frame.index[row] + 2} of {self.world.path}"

    def paid_column(self) -> str:
        """Return the column of means or rewards after checking that all named columns exist."""
        world, names = self.world, [str(name) for name in self.frame.columns]
        for name in (world.round_column, world.id_column, *world.context_columns):
            if name is not None and name not in names:
                raise InvalidSettingError(f"{world.path} has no column {name!r}, only {names}")
        paid = [name for name in (world.mean_column, world.reward_column) if name in names]
        if len(paid) != 1:
            raise InvalidInputError(
                f"{world.path} must have one of the columns {world.mean_column!r} and "
                f"{world.reward_column!r}, got {paid or names}: rename or remove columns, or set "
                "mean_column, reward_column"
            )
        return paid[0]

    def numbers(self, name: str, want: str, fits: Callable[[FloatArray], BoolArray]) -> FloatArray:
        """Return a column of numbers, NaN where a cell is empty, after checking each."""
        import pandas as pd

        column = self.frame[name]
        parsed = pd.to_numeric(column, errors="coerce")
        numbers: FloatArray = parsed.to_numpy(dtype=np.float64, na_value=np.nan)
        good = fits(numbers) & (np.isnan(numbers) == column.isna().to_numpy())
        for row in np.flatnonzero(~good).tolist():
            raise InvalidInputError(
                f"column {name!r} must be {want}, got {column.iloc[row]} {self.place(row)}: "
                "correct it, or leave out the column or the round"
            )
        return numbers

    def features(self, names: Iterable[str]) -> tuple[FloatArray, tuple[str, ...]]:
        """Return the features of some columns, shape (n_rows, n), and their names."""
        found = {each: values for name in names for each, values in self._encoded(name).items()}
        table = np.column_stack([*found.values()]) if found else np.empty((len(self.frame), 0))
        return table, tuple(found)

    def _encoded(self, name: str) -> dict[str, FloatArray]:
        import pandas as pd

        column = self.frame[name]
        levels = column.dropna().unique()
        if not len(levels) or pd.to_numeric(column, errors="coerce").notna().any():
            want = f"numbers of size at most {LARGEST:g}, or empty"
            return {name: self.numbers(name, want, lambda x: ~(abs(x) > LARGEST))}
        if len(levels) > MAX_LEVELS:
            raise InvalidInputError(
                f"column {name!r} of {self.world.path} has {len(levels)} different strings, more "
                f"than the {MAX_LEVELS} that a category may have: leave out the column"
            )
        return {
            f"{name}={level}": np.where(column.isna(), np.nan, column == level) for level in levels
        }

    def context(self) -> FloatArray:
        """Return the context of each row."""
        for name in self.world.context_columns:
            changes = self.frame.groupby(self.world.round_column)[name].nunique(dropna=False) > 1
            if changes.any():
                raise InvalidInputError(
                    f"column {name!r} must have one value per round, because it is context, got "
                    f"several in round {changes.idxmax()} of {self.world.path}: leave it out of "
                    "the context"
                )
        return self.features(self.world.context_columns)[0]

    def items(self, name: str) -> NDArray[np.int64]:
        """Return the item of each row, numbered in the order in which they appear."""
        codes: NDArray[np.int64] = self.frame[name].factorize()[0].astype(np.int64)
        for row in np.flatnonzero(codes < 0).tolist():
            raise InvalidInputError(f"column {name!r} is empty {self.place(row)}")
        return codes


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
    maybe some called `arm` and `chosen`; all other columns are features. A column of strings is a
    category, one feature per string. Empty cells, NaN and NA are missing. The number of arms may
    vary. A file is read at the first `realize`, and once per process.

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
        world, table, seed = self.world, self.table, self.seed
        masks, noises = (seeding.stream(seed, "world", name) for name in ("masks", "noise"))
        order: Any = range(table.n_rounds)
        if world.shuffle:
            order = seeding.stream(seed, "world", "order").permutation(table.n_rounds)
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
