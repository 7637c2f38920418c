"""Results of a run: tables per seed, over seeds and over rounds, and what is read off them.

The same cells give the same bytes on any machine and in any order; only `seconds` differ.
"""

import csv
import gzip
import io
import json
import math
import platform
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import halfseen
from halfseen import checks
from halfseen.errors import HalfseenError, InvalidInputError, StoreError
from halfseen.lazy import from_extra
from halfseen.simulation.cells import Cell, CellKey, Result
from halfseen.simulation.methods import Method, method_from
from halfseen.worlds.base import World, world_from
from halfseen.worlds.public_tables import RealTableWorld
from halfseen.worlds.recorded import TableWorld

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

_PLACE = ("setting", "p", "method")
_METHOD = CellKey._fields[:-1]  # over all seeds
_REGRET = ("n", "mean_regret", "se_regret", "mean_rank")

COLUMNS = {
    "per_seed": (*CellKey._fields, "final_regret", "final_rank", "status", "seconds"),
    "summary": (*_METHOD, *_REGRET),
    "trajectories": (*_METHOD, "round", *_REGRET, "se_rank"),
    "diagnostics": (*CellKey._fields, "name", "position", "value"),
}
"""Of each table."""

_TEXTS = ("study", "setting", "method", "status", "name")
_INTEGERS = ("seed", "n", "round", "position")  # all other columns are numbers or empty

Row = dict[str, Any]

_REMEDY = "run the study again into this folder; finished cells are not repeated"


class Mean(NamedTuple):
    """A mean and its standard error, which is None for one value."""

    mean: float | None
    standard_error: float | None


def mean_of(values: Sequence[float]) -> Mean:
    """Return mean and standard error (sample deviation over the root of the number of values).

    >>> mean_of([1.0, 3.0])
    Mean(mean=2.0, standard_error=1.0)
    """
    n = len(values)
    if n == 0:
        return Mean(None, None)
    mean = math.fsum(values) / n
    if n == 1:
        return Mean(mean, None)
    variance = math.fsum([(value - mean) ** 2 for value in values]) / (n - 1)
    return Mean(mean, math.sqrt(variance / n))


class Point(NamedTuple):
    """Where methods meet: a setting of a study and an observation probability in it."""

    setting: str
    p: float | None

    def __str__(self) -> str:
        """Return what people read, without the name that a single setting has.

        >>> str(Point("default", 0.3)), str(Point("blocks", None)), str(Point("default", None))
        ('p = 0.3', 'blocks', '')
        """
        prob = "" if self.p is None else f"p = {self.p:g}"
        if self.setting == "default":
            return prob
        # A setting that differs from others only in its probability may have it in its name.
        named = self.p is None or f"p{self.p:g}" in self.setting
        return self.setting if named else f"{self.setting}, {prob}"


class Setting(NamedTuple):
    """The worlds of a setting by observation probability, and its methods by key."""

    worlds: dict[float | None, World]
    methods: dict[str, Method]


@dataclass(kw_only=True, eq=False)
class Results:
    """All results of a run, as rows in the order of its cells; numbers of a failed cell are None.

    `settings` are what was run, `failures` the cells that failed, with their tracebacks. `folder`
    is where the tables were written; `manifest` says what was run in words, with versions.
    """

    settings: Mapping[str, Setting]
    per_seed: list[Row] = field(default_factory=list)
    trajectories: list[Row] = field(default_factory=list)
    diagnostics: list[Row] = field(default_factory=list)
    failures: list[tuple[CellKey, str]] = field(default_factory=list)
    folder: Path | None = None
    manifest: Mapping[str, Any] = field(default_factory=dict)
    _realizations: dict[Point, Any] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(cls, finished: Iterable[tuple[Cell, Result]]) -> "Results":
        """Return the results of finished cells."""
        settings: dict[str, Setting] = {}
        results = cls(settings=settings)
        groups: dict[tuple[Any, ...], list[Result]] = {}
        for cell, result in finished:
            key = cell.key
            setting = settings.setdefault(key.setting, Setting({}, {}))
            setting.worlds.setdefault(key.p, cell.world)
            setting.methods.setdefault(key.method, cell.method)
            row = {name: getattr(result, name) for name in ("final_regret", "final_rank", "status")}
            results.per_seed.append(key._asdict() | row | {"seconds": round(result.seconds, 4)})
            results.diagnostics += _diagnostics(key, result)
            group = groups.setdefault(key[:-1], [])
            if result.status == "ok":
                group.append(result)
            else:
                results.failures.append((key, result.error))
        for place, found in groups.items():
            results.trajectories += _over_time(place, found)
        return results

    @classmethod
    def load(cls, folder: str | Path, settings: Mapping[str, Setting] | None = None) -> "Results":
        """Read a results folder; `settings` are by default those that its manifest names.

        Raises
        ------
        StoreError
            A file is missing or damaged; the message names it and says what to do.
        """
        folder = Path(folder)
        manifest = _manifest(folder / "manifest.json")
        return cls(
            settings=settings or _settings(manifest),
            per_seed=_rows(folder, "per_seed"),
            trajectories=_rows(folder, "trajectories"),
            diagnostics=_rows(folder, "diagnostics"),
            folder=folder,
            manifest=manifest,
        )

    def to_pandas(self, name: str) -> "DataFrame":
        """Return a table as a data frame.

        Parameters
        ----------
        name : "per_seed", "summary", "trajectories" or "diagnostics"

        Examples
        --------
        >>> from halfseen import LowRankWorld, simulate
        >>> world = LowRankWorld(dim=6, rank=1, horizon=20)
        >>> results = simulate(["uniform"], world, range(2), jobs=1)
        >>> results.to_pandas("per_seed")[["method", "seed", "status"]]
            method  seed status
        0  uniform     0     ok
        1  uniform     1     ok
        """
        with from_extra("paper"):
            import pandas as pd
        columns = COLUMNS[checks.one_of("name", name, tuple(COLUMNS))]
        kinds = {each: "int64" if each in _INTEGERS else "float64" for each in columns}
        kinds = {each: kind for each, kind in kinds.items() if each not in _TEXTS}
        return pd.DataFrame(getattr(self, name), columns=columns).astype(kinds)

    def plot(self) -> "Figure":
        """Return a figure of regret over rounds, with bands of one standard error.

        It has a panel for each setting and observation probability.

        Raises
        ------
        InvalidInputError
            No cell has a regret.
        MissingExtraError
            The extra `paper` is not installed.

        Examples
        --------
        >>> from halfseen import LowRankWorld, simulate
        >>> world = LowRankWorld(dim=6, rank=1, horizon=20)
        >>> figure = simulate(["zf-oful", "uniform"], world, range(2), jobs=1).plot()
        >>> figure.savefig("regret.png")  # doctest: +SKIP
        """
        with from_extra("paper"):
            # Imports of this module that point upwards: see docs/decisions/installation.md.
            from halfseen.report.figures import regret_figure
        return regret_figure(self)

    def table(self) -> "DataFrame":
        """Return mean final regret with its standard error, by p and then the lowest first.

        Examples
        --------
        >>> from halfseen import LowRankWorld, simulate
        >>> world = LowRankWorld(dim=6, rank=1, horizon=50)
        >>> simulate(["uniform", "zf-oful"], world, range(3), jobs=1).table().index[0]
        'zf-oful'
        """
        frame = self.to_pandas("summary").sort_values(["p", "mean_regret"], kind="stable")
        return frame.set_index("method")[["p", "n", "mean_regret", "se_regret", "mean_rank"]]

    def _repr_html_(self) -> str:
        shown = self.table().reset_index()
        return str(shown.to_html(index=False, border=0, float_format="{:.4g}".format))

    def report(self, folder: str | Path | None = None) -> Path:
        """Write tables, figures and a page about them into a folder; return the page's path.

        Parameters
        ----------
        folder : path, optional
            By default the folder that the tables were written to.

        Raises
        ------
        InvalidInputError
            There is no folder.
        MissingExtraError
            The extra `paper` is not installed.

        Examples
        --------
        >>> import tempfile
        >>> from halfseen import LowRankWorld, simulate
        >>> world = LowRankWorld(dim=6, rank=1, horizon=20)
        >>> results = simulate(["uniform"], world, range(2), jobs=1)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     results.report(folder).name
        'report.md'
        """
        with from_extra("paper"):
            from halfseen.report.report import Report
        home = self.folder if folder is None else Path(folder)
        if home is None:
            raise InvalidInputError("a report needs a folder: results.report('folder')")
        if home != self.folder:
            self.write(home)
        return Report.of(self).write()

    def write(self, folder: Path) -> None:
        """Write all tables and the manifest into a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        failures = [f"{tuple(key)}\n{error}" for key, error in self.failures]
        contents = {
            "failures.txt": "\n".join(failures).encode(),
            "manifest.json": json.dumps(self.manifest, indent=1, allow_nan=False).encode() + b"\n",
        }
        for name, columns in COLUMNS.items():
            table = csv_bytes(columns, getattr(self, name))
            packed = gzip.compress(table, mtime=0)  # no time in the bytes
            contents[_file(name)] = packed if name == "trajectories" else table
        for name, content in contents.items():
            if content:
                (folder / name).write_bytes(content)
            else:  # of an earlier run
                (folder / name).unlink(missing_ok=True)
        self.folder = folder

    @property
    def name(self) -> str:
        """The name of the study."""
        return str(self._study.get("name", self.folder.name if self.folder else ""))

    @property
    def title(self) -> str:
        """The heading of the report."""
        return str(self._study.get("title", self.name))

    @property
    def _study(self) -> Mapping[str, Any]:
        return self.manifest.get("study") or {}

    @cached_property
    def summary(self) -> list[Row]:
        """Means over the seeds of each method."""
        return [_summary(key, rows) for key, rows in _grouped(self.per_seed, _METHOD).items()]

    @property
    def methods(self) -> list[str]:
        """Keys of all methods, in order of first appearance."""
        keys = (key for setting in self.settings.values() for key in setting.methods)
        return list(dict.fromkeys(keys))

    @property
    def seeds(self) -> list[int]:
        """All seeds that were run."""
        return sorted({row["seed"] for row in self.per_seed})

    def points(self, settings: Sequence[str] | None = None) -> list[Point]:
        """Return all points, or those of some settings, in the order of the study."""
        return [
            Point(name, p)
            for name, setting in self.settings.items()
            if settings is None or name in settings
            for p in setting.worlds
        ]

    def first_point(self, setting: str | None = None, p: float | None = None) -> Point:
        """Return a point, by default of the first setting and at its first probability."""
        name = next(iter(self.settings), "") if setting is None else setting
        if p is None and name in self.settings:
            p = next(iter(self.settings[name].worlds))
        return Point(name, p)

    # Numbers at a point

    @cached_property
    def _per_seed(self) -> dict[tuple[Any, ...], list[Row]]:
        return _grouped(self.per_seed, _PLACE)

    @cached_property
    def _over_time(self) -> dict[tuple[Any, ...], list[Row]]:
        return _grouped(self.trajectories, _PLACE)

    @cached_property
    def _diagnostics(self) -> dict[tuple[Any, ...], list[Row]]:
        return _grouped(self.diagnostics, (*_PLACE, "name"))

    def _finals(self, point: Point, method: str, column: str) -> dict[int, float]:
        rows = sorted(self._per_seed.get((*point, method), ()), key=lambda row: row["seed"])
        return {row["seed"]: row[column] for row in rows if row[column] is not None}

    def regrets(self, point: Point, method: str) -> dict[int, float]:
        """Return the final regrets of a method by seed, without failed cells."""
        return self._finals(point, method, "final_regret")

    def final_ranks(self, point: Point, method: str) -> dict[int, float]:
        """Return the ranks with which a method ended, by seed."""
        return self._finals(point, method, "final_rank")

    def mean(self, point: Point, method: str) -> Mean:
        """Return mean final regret and its standard error; both None where nothing was run."""
        return mean_of(list(self.regrets(point, method).values()))

    def over_time(self, point: Point, method: str) -> list[Row]:
        """Return the rows of a method over rounds."""
        return sorted(self._over_time.get((*point, method), ()), key=lambda row: row["round"])

    def diagnostic(self, point: Point, method: str, name: str) -> dict[int, dict[int, float]]:
        """Return a diagnostic of a method, by seed and position."""
        rows = self._diagnostics.get((*point, method, name), ())
        found: dict[int, dict[int, float]] = {}
        for row in sorted(rows, key=lambda row: row["seed"]):
            found.setdefault(row["seed"], {})[row["position"]] = row["value"]
        return found

    def irreducible(self, point: Point) -> dict[int, float]:
        """Return the regret that no policy can avoid by seed; empty where no world knows it."""
        found: dict[int, float] = {}
        for (*place, _, name), rows in self._diagnostics.items():
            if (*place, name) == (*point, "irreducible"):
                found |= {row["seed"]: row["value"] for row in rows}
        return dict(sorted(found.items()))

    def candidates(self, point: Point, method: str) -> list[tuple[dict[str, Any], float]]:
        """Return the settings of a method that were tried on validation seeds, with regrets."""
        path = (self.folder or Path()) / "calibration.csv"
        if not path.exists():
            return []
        place = (point.setting, "" if point.p is None else str(point.p), method)
        with path.open(newline="", encoding="utf-8") as file:
            return [
                (json.loads(row["candidate"]), float(row["final_regret"]))
                for row in csv.DictReader(file)
                if (row["setting"], row["p"], row["method"]) == place and row["final_regret"]
            ]

    # What the worlds know

    def realization(self, point: Point) -> Any:
        """Return the realization of the first seed; None where its data are not on this machine."""
        if point not in self._realizations:
            self._realizations[point] = None
            with suppress(HalfseenError, OSError, LookupError):
                world = self.settings[point.setting].worlds[point.p]
                self._realizations[point] = world.realize(next(iter(self.seeds), 0))
        return self._realizations[point]

    def fact(self, point: Point, name: str) -> Any:
        """Return a fact that the world at a point reveals; None where it is not known."""
        return getattr(getattr(self.realization(point), "facts", None), name, None)

    def number(self, point: Point, name: str) -> float | None:
        """Return p, κ ("conditioning") or a setting of the world; None where it has none."""
        if name == "p":
            return point.p
        if name == "conditioning":
            problem = getattr(self.realization(point), "problem", None)
            return None if problem is None else float(round(problem().conditioning, 9))
        value = getattr(self.settings[point.setting].worlds.get(point.p), name, None)
        return float(value) if isinstance(value, int | float) else None


def versions() -> dict[str, str]:
    """Return the versions of everything that may change the numbers."""
    found = {"halfseen": halfseen.__version__, "python": platform.python_version()}
    for name in ("numpy", "scipy", "numba", "scikit-learn", "joblib"):
        with suppress(metadata.PackageNotFoundError):  # the last two come with an extra
            found[name] = metadata.version(name)
    return found


def _summary(key: tuple[Any, ...], rows: list[Row]) -> Row:
    done = [row for row in rows if row["status"] == "ok"]
    regret = mean_of([row["final_regret"] for row in done if row["final_regret"] is not None])
    rank = mean_of([row["final_rank"] for row in done if row["final_rank"] is not None])
    return dict(zip(COLUMNS["summary"], (*key, len(done), *regret, rank.mean), strict=True))


def _over_time(key: tuple[Any, ...], results: list[Result]) -> Iterable[Row]:
    rounds = results[0].rounds if results else ()
    alike = [result for result in results if result.rounds == rounds]
    for index, round in enumerate(rounds):
        regret = mean_of([result.regret[index] for result in alike])
        rank = mean_of([r for result in alike if (r := result.ranks[index]) is not None])
        means = (len(alike), *regret, *rank)
        yield dict(zip(COLUMNS["trajectories"], (*key, round, *means), strict=True))


def _diagnostics(key: CellKey, result: Result) -> Iterable[Row]:
    for name, found in (result.diagnostics or {}).items():
        values = found if isinstance(found, list) else [found]
        for position, value in enumerate(values):
            if isinstance(value, int | float):
                yield key._asdict() | {"name": name, "position": position, "value": value}


def csv_bytes(columns: tuple[str, ...], rows: Iterable[Row]) -> bytes:
    """Return a table as the bytes of a file, the same for the same rows."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)  # floats in full, None as nothing
    return buffer.getvalue().encode()


def _grouped(rows: Iterable[Row], names: Sequence[str]) -> dict[tuple[Any, ...], list[Row]]:
    """Return rows by their values in some columns."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    return found


def _settings(manifest: Mapping[str, Any]) -> dict[str, Setting]:
    """Return the settings that a manifest names."""
    try:
        return {
            name: setting_from(each["world"], each["observe_prob"], each["methods"])
            for name, each in manifest["study"]["settings"].items()
        }
    except (KeyError, TypeError, AttributeError):
        raise StoreError(
            "its manifest.json does not say what was run: run the study again"
        ) from None


def prob_of(world: World) -> float | None:
    """Return the observation probability of a world in tables; None for a world without one.

    A table from which nothing more is hidden has none: it has its own missing values.
    """
    prob = getattr(world, "observe_prob", None)
    shown = not (isinstance(world, TableWorld | RealTableWorld) and prob == 1)
    return float(prob) if isinstance(prob, float | int) and shown else None


def setting_from(
    world: Mapping[str, Any], probs: Iterable[float], methods: Mapping[str, Any]
) -> Setting:
    """Return a setting from plain data; without probabilities the world keeps its own."""
    worlds: dict[float | None, World] = {
        float(p): world_from({**world, "observe_prob": p}) for p in probs
    }
    worlds |= {prob_of(each): each for each in ([] if worlds else [world_from(world)])}
    return Setting(worlds, {key: method_from(key, plain) for key, plain in methods.items()})


def _file(name: str) -> str:
    return f"{name}.csv.gz" if name == "trajectories" else f"{name}.csv"


def _rows(folder: Path, name: str) -> list[Row]:
    """Return the rows of a table in their types; only numbers that are not whole may be missing."""
    path, columns = folder / _file(name), COLUMNS[name]
    with _reading(path):
        content = path.read_bytes()
        text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
        lines = csv.reader(io.StringIO(text))
        if next(lines, None) != list(columns):
            raise ValueError(f"its columns are not {', '.join(columns)}")
        kinds: dict[str, Any] = {each: int if each in _INTEGERS else _number for each in columns}
        kinds |= {each: str for each in columns if each in _TEXTS}
        return [
            {each: kind(text) for (each, kind), text in zip(kinds.items(), line, strict=True)}
            for line in lines
        ]


def _number(text: str) -> float | None:
    return float(text) if text else None


def _manifest(path: Path) -> dict[str, Any]:
    with _reading(path):
        manifest = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(manifest, dict) or not isinstance(manifest.get("versions", {}), dict):
            raise ValueError("it is not a table of tables")
    return manifest


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn any error of reading a file into a StoreError with a remedy."""
    try:
        yield
    except FileNotFoundError:
        raise StoreError(f"{path} is not there: {_REMEDY}") from None
    except (ValueError, OSError, EOFError, zlib.error, csv.Error, RecursionError) as error:
        raise StoreError(f"{path} is damaged ({error}): {_REMEDY}") from None
