"""What a run left behind: its tables, and which methods played in which worlds."""

import csv
import gzip
import io
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from halfseen.errors import HalfseenError, StoreError
from halfseen.simulation.methods import Method, method_from
from halfseen.simulation.simulate import prob_of
from halfseen.simulation.tables import (
    DIAGNOSTICS,
    INTEGERS,
    PER_SEED,
    SUMMARY,
    TEXTS,
    TRAJECTORIES,
    Mean,
    Row,
    Tables,
    mean_of,
)
from halfseen.worlds.base import Facts, World, world_from

_FILES = {
    "per_seed.csv": PER_SEED,
    "summary.csv": SUMMARY,
    "trajectories.csv.gz": TRAJECTORIES,
    "diagnostics.csv": DIAGNOSTICS,
}
_REMEDY = "run the study again into this folder; finished cells are not repeated"


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

    worlds: Mapping[float | None, World]
    methods: Mapping[str, Method]


class Results:
    """The tables of a run, by point and method.

    Rows have the columns of `simulation.tables`; numbers are None where a cell failed.

    Attributes
    ----------
    settings : mapping from names to Setting
        What was run, in order.
    tables : Tables
    folder : Path
        Where files of the report go.
    manifest : mapping
        What was run, with versions.
    """

    def __init__(
        self,
        settings: Mapping[str, Setting],
        tables: Tables,
        folder: Path,
        manifest: Mapping[str, Any],
    ) -> None:
        self.settings, self.tables, self.folder, self.manifest = settings, tables, folder, manifest
        self._facts: dict[Point, Any] = {}

    @classmethod
    def of(cls, tables: Tables) -> "Results":
        """Return the results of cells that were just run."""
        found: dict[str, tuple[dict[float | None, World], dict[str, Method]]] = {}
        for cell in tables.cells:
            worlds, methods = found.setdefault(cell.key.setting, ({}, {}))
            worlds.setdefault(cell.key.p, cell.world)
            methods.setdefault(cell.key.method, cell.method)
        settings = {name: Setting(*each) for name, each in found.items()}
        return cls(settings, tables, tables.folder or Path(), tables.manifest)

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
        per_seed, summary, over_time, diagnostics = (
            _rows(folder / name, columns) for name, columns in _FILES.items()
        )
        skipped = folder / "skipped.csv"
        left_out = _rows(skipped, (*PER_SEED[:5], "note")) if skipped.exists() else []
        tables = Tables(per_seed, summary, over_time, diagnostics, [], left_out, folder)
        return cls(settings or _settings(manifest), tables, folder, manifest)

    @property
    def name(self) -> str:
        """The name of the study."""
        return str(self._study.get("name", self.folder.name))

    @property
    def title(self) -> str:
        """The heading of the report."""
        return str(self._study.get("title", self.name))

    @property
    def _study(self) -> Mapping[str, Any]:
        return self.manifest.get("study") or {}

    @property
    def methods(self) -> list[str]:
        """Keys of all methods, in order of first appearance."""
        keys = (key for setting in self.settings.values() for key in setting.methods)
        return list(dict.fromkeys(keys))

    @property
    def seeds(self) -> list[int]:
        """All seeds that were run."""
        return sorted({row["seed"] for row in self.tables.per_seed})

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
    def _per_seed(self) -> dict[tuple[Point, str], list[Row]]:
        return _grouped(self.tables.per_seed)

    @cached_property
    def _over_time(self) -> dict[tuple[Point, str], list[Row]]:
        return _grouped(self.tables.trajectories)

    @cached_property
    def _diagnostics(self) -> dict[tuple[Point, str], dict[str, dict[int, dict[int, float]]]]:
        found: dict[tuple[Point, str], dict[str, dict[int, dict[int, float]]]] = {}
        for place, rows in _grouped(self.tables.diagnostics).items():
            names = found.setdefault(place, {})
            for row in rows:
                if row["value"] is not None and row["value"] == row["value"]:
                    seeds = names.setdefault(row["name"], {})
                    seeds.setdefault(row["seed"], {})[row["position"]] = row["value"]
        return found

    def regrets(self, point: Point, method: str) -> dict[int, float]:
        """Return the final regrets of a method by seed, without failed cells."""
        rows = self._per_seed.get((point, method), ())
        found = {row["seed"]: row["final_regret"] for row in rows}
        return {seed: found[seed] for seed in sorted(found) if found[seed] is not None}

    def mean(self, point: Point, method: str) -> Mean:
        """Return mean final regret and its standard error; both None where nothing was run."""
        return mean_of(list(self.regrets(point, method).values()))

    def final_ranks(self, point: Point, method: str) -> list[float]:
        """Return the ranks with which a method ended."""
        ranks = [row["final_rank"] for row in self._per_seed.get((point, method), ())]
        return [rank for rank in ranks if rank is not None]

    def over_time(self, point: Point, method: str) -> list[Row]:
        """Return the rows of a method over rounds."""
        return sorted(self._over_time.get((point, method), ()), key=lambda row: row["round"])

    def diagnostic(self, point: Point, method: str, name: str) -> dict[int, dict[int, float]]:
        """Return a diagnostic of a method, by seed and position."""
        found = self._diagnostics.get((point, method), {}).get(name, {})
        return {seed: found[seed] for seed in sorted(found)}

    def irreducible(self, point: Point) -> dict[int, float]:
        """Return the regret that no policy can avoid by seed; empty where no world knows it."""
        found: dict[int, float] = {}
        for method in self.settings[point.setting].methods:
            for seed, values in self.diagnostic(point, method, "irreducible").items():
                found.setdefault(seed, values[0])
        return {seed: found[seed] for seed in sorted(found)}

    def candidates(self, point: Point, method: str) -> list[tuple[dict[str, Any], float]]:
        """Return the settings of a method that were tried on validation seeds, with regrets."""
        path = self.folder / "calibration.csv"
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
        if point not in self._facts:
            setting = self.settings.get(point.setting)
            world = None if setting is None else setting.worlds.get(point.p)
            try:
                self._facts[point] = world and world.realize(next(iter(self.seeds), 0))
            except (HalfseenError, OSError):
                self._facts[point] = None
        return self._facts[point]

    def facts(self, point: Point) -> Facts | None:
        """Return what the world at a point reveals, where it is known."""
        found: Facts | None = getattr(self.realization(point), "facts", None)
        return found

    def number(self, point: Point, name: str) -> float | None:
        """Return p, κ ("conditioning") or a setting of the world; None where it has none."""
        if name == "p":
            return point.p
        if name == "conditioning":
            problem = getattr(self.realization(point), "problem", None)
            return None if problem is None else float(round(problem().conditioning, 9))
        if name == "horizon":
            facts = self.facts(point)
            return None if facts is None else float(facts.horizon)
        setting = self.settings.get(point.setting)
        value = getattr(setting and setting.worlds.get(point.p), name, None)
        return float(value) if isinstance(value, int | float) else None


def _grouped(rows: Iterable[Row]) -> dict[tuple[Point, str], list[Row]]:
    found: dict[tuple[Point, str], list[Row]] = {}
    for row in rows:
        found.setdefault((Point(row["setting"], row["p"]), row["method"]), []).append(row)
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


def setting_from(
    world: Mapping[str, Any], probs: Iterable[float], methods: Mapping[str, Mapping[str, Any]]
) -> Setting:
    """Return a setting from plain data; without probabilities the world keeps its own."""
    worlds: dict[float | None, World] = {
        float(p): world_from({**world, "observe_prob": p}) for p in probs
    }
    if not worlds:
        alone = world_from(world)
        worlds[prob_of(alone)] = alone
    return Setting(worlds, {key: method_from(key, plain) for key, plain in methods.items()})


def _rows(path: Path, columns: tuple[str, ...]) -> list[Row]:
    """Return the rows of a table in their types; only numbers that are not whole may be missing."""
    try:
        content = path.read_bytes()
        text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
        lines = csv.reader(io.StringIO(text))
        header = next(lines, [])
        places = [header.index(name) for name in columns]
        kinds = [_kind(name) for name in columns]
        return [
            {name: kind(line[at]) for name, at, kind in zip(columns, places, kinds, strict=True)}
            for line in lines
        ]
    except FileNotFoundError:
        raise StoreError(f"{path} is not there: {_REMEDY}") from None
    except (ValueError, IndexError, OSError, EOFError, zlib.error, csv.Error) as error:
        raise StoreError(f"{path} is damaged ({error}): {_REMEDY}") from None


def _kind(name: str) -> Any:
    """Return what turns the text of a column into a value."""
    if name in INTEGERS:
        return int
    return _word if name in TEXTS else lambda text: float(text) if text else None


def _word(text: str) -> str:
    if not text:
        raise ValueError("a name is empty")
    return text


def _manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise StoreError(f"{path} is not there: {_REMEDY}") from None
    except (ValueError, RecursionError, OSError) as error:
        raise StoreError(f"{path} is damaged ({error}): {_REMEDY}") from None
    if not isinstance(manifest, dict) or not isinstance(manifest.get("versions", {}), dict):
        raise StoreError(f"{path} is damaged (it is not a table of tables): {_REMEDY}")
    return manifest
