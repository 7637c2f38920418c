"""What a study is: worlds, methods and seeds as data, and what is drawn and claimed from them."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from halfseen import checks
from halfseen.errors import HalfseenError, StudyError
from halfseen.paper.claims import Claims, judged
from halfseen.paper.published import compare_means, compare_seeds
from halfseen.report.figures import Figure, Keys, regret_over_p, regret_over_rounds
from halfseen.report.look import in_paper, label_of
from halfseen.report.numbers import Comparison
from halfseen.report.report import Report
from halfseen.simulation import simulate
from halfseen.simulation.cells import Cell, CellKey
from halfseen.simulation.methods import MEASURE, Method, method_from
from halfseen.simulation.results import Results, setting_from
from halfseen.simulation.results import Setting as BuiltSetting
from halfseen.simulation.store import Store
from halfseen.simulation.tune import Candidate, Grid, Task, applied, run_tasks, write_calibration

Plain = dict[str, Any]
"""Settings of a world or a method by name."""
Place = tuple[str, float | None, str]
"""Setting, observation probability and method."""


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """What is tuned before anything is reported, for each probability anew.

    `seeds` are for validation; `searches` are the values that are tried, by method; `shared` leads
    from a method to the one whose chosen settings it takes; `given` are settings that were chosen
    elsewhere, by method and probability.
    """

    seeds: Sequence[int]
    searches: Mapping[str, Grid]
    shared: Mapping[str, str] = field(default_factory=dict)
    given: Mapping[str, Mapping[float | None, Candidate]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Small:
    """How the small form of a study differs, which shows in seconds that everything works.

    `world` changes settings of the world; `settings` are those that are run.
    """

    seeds: Sequence[int] = range(2)
    observe_probs: Sequence[float] | None = None
    world: Plain = field(default_factory=dict)
    settings: Sequence[str] | None = None


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One world, swept over observation probabilities, and the methods in it.

    `world` is in plain form: its kind and its settings. `methods` are by key: a `Method`, or what
    differs from the standard method of this key ("method" names another one, "policy" a class).
    Without `observe_probs` the world keeps its own. `seeds` are given where they are not the
    study's. `reported` are by default all methods; others may be tuned for them.
    """

    world: Plain
    methods: Mapping[str, Plain | Method]
    observe_probs: Sequence[float] = ()
    seeds: Sequence[int] | None = None
    tuning: Tuning | None = None
    reported: Sequence[str] | None = None

    @property
    def keys(self) -> Sequence[str]:
        """The methods that are reported."""
        return list(self.methods) if self.reported is None else self.reported

    def method(self, key: str) -> Method:
        """Return a method."""
        return method_from(key, self.methods[key])

    def built(self) -> BuiltSetting:
        """Return its worlds by probability, and its reported methods."""
        methods = {key: self.method(key) for key in self.keys}
        return setting_from(self.world, self.observe_probs, methods)

    def source(self, key: str) -> str | None:
        """Return whose chosen settings a method takes; None where it keeps its own."""
        if self.tuning is None:
            return None
        return key if key in self.tuning.searches else self.tuning.shared.get(key)

    def tuned(self) -> list[str]:
        """Return the methods that are tuned: reported ones, and those on which these depend."""
        sources = {self.source(key) for key in self.keys}
        return [key for key in self.methods if key in sources]

    def smaller(self, small: Small) -> "Setting":
        """Return the small form."""
        tuning = self.tuning and replace(self.tuning, seeds=self.tuning.seeds[:1])
        probs = self.observe_probs if small.observe_probs is None else small.observe_probs
        world = {**self.world, **small.world}
        return replace(self, world=world, observe_probs=probs, seeds=None, tuning=tuning)


@dataclass(frozen=True, kw_only=True)
class Study:
    """Methods compared on the same realizations.

    `notes` are what a reader of the report should know, such as where published code and text
    differ. `figures`, `claims` and `comparisons` are functions of the results: what the report
    draws, which statements it checks, which methods it compares. `scale` is "paper" or "smoke".
    """

    name: str
    title: str
    seeds: Sequence[int]
    settings: Mapping[str, Setting]
    small: Small
    notes: Sequence[str] = ()
    figures: Callable[[Results], Iterable[Figure]]
    claims: Callable[[Results], Claims]
    comparisons: Callable[[Results], Iterable[Comparison]] = lambda results: ()
    scale: str = "paper"

    @classmethod
    def of(cls, name: str, module: ModuleType) -> "Study":
        """Return the study that a module describes."""
        names = ("title", "seeds", "settings", "small", "notes")
        data = {each: getattr(module, each.upper()) for each in names}
        draws = {each: getattr(module, each) for each in ("figures", "claims")}
        draws["comparisons"] = getattr(module, "comparisons", cls.comparisons)
        return cls(name=name, **data, **draws)

    @property
    def methods(self) -> list[str]:
        """Keys of all reported methods, in order of first appearance."""
        return list(dict.fromkeys(key for each in self.settings.values() for key in each.keys))

    @property
    def observe_probs(self) -> list[float | None]:
        """All observation probabilities, in order of first appearance."""
        found = (p for each in self.settings.values() for p in each.built().worlds)
        return list(dict.fromkeys(found))

    @property
    def n_cells(self) -> int:
        """How many cells there are."""
        return sum(
            max(1, len(each.observe_probs)) * len(each.keys) * len(each.seeds or self.seeds)
            for each in self.settings.values()
        )

    def places(self) -> dict[str, BuiltSetting]:
        """Return its settings as a report takes them."""
        return {name: setting.built() for name, setting in self.settings.items()}

    def no_results(self, folder: Path) -> Results:
        """Return the results of a study of which nothing was run."""
        return Results(settings=self.places(), folder=folder)

    def cells(self, chosen: Mapping[Place, Candidate] | None = None) -> list[Cell]:
        """Return all cells in the order of the tables, with what tuning has chosen, by place."""
        found, cells = chosen or {}, []
        for name, setting in self.settings.items():
            for p, world in setting.built().worlds.items():
                for key in setting.keys:
                    given = setting.tuning.given.get(key, {}) if setting.tuning else {}
                    tuned = found.get((name, p, setting.source(key) or key)) or given.get(p, {})
                    method = applied(setting.method(key), tuned)
                    cells += [
                        Cell(key=CellKey(self.name, name, p, key, s), world=world, method=method)
                        for s in setting.seeds or self.seeds
                    ]
        return cells

    def tasks(self) -> list[Task]:
        """Return what is to be tuned first."""
        return [
            Task(
                place=CellKey(self.name, name, p, key, 0),
                method=setting.method(key),
                grid=setting.tuning.searches[key],
                world=world,
                seeds=tuple(setting.tuning.seeds),
            )
            for name, setting in self.settings.items()
            if setting.tuning is not None and setting.tuned()
            for p, world in setting.built().worlds.items()
            for key in setting.tuned()
        ]

    def unit(self, key: CellKey) -> Place | CellKey:
        """Return what a cell shares a shard with: all that is tuned together, or nothing."""
        source = self.settings[key.setting].source(key.method)
        return key if source is None else (key.setting, key.p, source)

    def shard(self, place: int, n_shards: int) -> set[Place | CellKey]:
        """Return what is run in one of several shards, which have about as many rounds to play."""
        rounds: Counter[Place | CellKey] = Counter()
        for cell in self.cells():
            rounds[self.unit(cell.key)] += cell.horizon
        for task in self.tasks():
            rounds[self.unit(task.place)] += sum(cell.horizon for cell in task.cells())
        totals, mine = [0] * n_shards, set()
        for unit, number in rounds.most_common():
            least = totals.index(min(totals))
            totals[least] += number
            if least == place - 1:
                mine.add(unit)
        return mine

    def at(self, scale: str) -> "Study":
        """Return the study at a scale: "paper" is the full size."""
        checks.one_of("scale", scale, ("paper", "smoke"))
        if scale == "paper":
            return self
        settings = {
            name: setting.smaller(self.small)
            for name, setting in self.settings.items()
            if self.small.settings is None or name in self.small.settings
        }
        return replace(self, settings=settings, seeds=self.small.seeds, scale=scale)

    def narrowed(
        self,
        *,
        seeds: Sequence[int] | None = None,
        observe_probs: Iterable[float] | None = None,
        methods: Iterable[str] | Mapping[str, Any] | None = None,
    ) -> "Study":
        """Return a part of the study, perhaps on other seeds and with other methods.

        A method that the study does not have joins every setting: a standard one, a registered
        policy by the name of its class ("MyPolicy" or "my-policy"), or what a mapping describes as
        in `simulate`.

        Raises
        ------
        StudyError
            A method or probability is unknown, or nothing is left.
        """
        study = self
        if methods is not None:
            study = study._with_methods(methods)
        if seeds is not None:
            settings = {name: replace(each, seeds=None) for name, each in study.settings.items()}
            study = replace(study, seeds=tuple(seeds), settings=settings)
        if observe_probs is not None:
            study = study._with_probs(tuple(observe_probs))
        if not study.settings or not study.seeds:
            raise StudyError(f"nothing is left of {self.name} with these seeds, p and methods")
        study._check_seeds()
        return study

    def _with_methods(self, given: Iterable[str] | Mapping[str, Any]) -> "Study":
        keys = [given] if isinstance(given, str) else given
        given = keys if isinstance(keys, Mapping) else dict.fromkeys(keys)
        known = self.methods
        for key, value in given.items():
            if value is not None and key in known:
                raise StudyError(f"{key!r} is a method of {self.name}: choose another name")
        others = {key: value for key, value in given.items() if key not in known}
        try:
            own = simulate.methods_from(others) if others else {}
        except HalfseenError as error:
            raise StudyError(f"{error}; the methods of {self.name} are {known}") from None
        settings = {
            name: replace(setting, methods={**setting.methods, **own}, reported=keys)
            for name, setting in self.settings.items()
            if (keys := [key for key in given if key in own or key in setting.keys])
        }
        return replace(self, settings=settings)

    def _with_probs(self, probs: Sequence[float]) -> "Study":
        known = self.observe_probs
        if set(known) == {None}:
            raise StudyError(f"{self.name} sets no observe_prob: leave out p")
        for p in probs:
            if p not in known:
                raise StudyError(f"p must be among those of {self.name}, {known}, got {p!r}")
        settings = {
            # One that sweeps nothing stays as it is: its cells are the same ones.
            name: replace(each, observe_probs=[p for p in each.observe_probs if p in probs])
            for name, each in self.settings.items()
            if set(each.built().worlds) & set(probs)
        }
        return replace(self, settings=settings)

    def _check_seeds(self) -> None:
        """Raise StudyError if a validation seed is also reported on."""
        for setting in self.settings.values():
            if setting.tuning is None or not setting.tuned():
                continue
            both = sorted({*setting.tuning.seeds} & {*(setting.seeds or self.seeds)})
            if both:
                raise StudyError(
                    f"seeds must have none on which settings are chosen, got {both}: a method "
                    "looks too good on the seeds that it was tuned on"
                )

    def to_dict(self) -> dict[str, Any]:
        """Return what was run as plain JSON types, for the manifest."""
        settings = {
            name: {
                "world": dict(setting.world),
                "observe_prob": list(setting.observe_probs),
                "methods": {key: setting.method(key).to_dict() for key in setting.keys},
            }
            for name, setting in self.settings.items()
        }
        return {
            "name": self.name,
            "title": self.title,
            "seeds": list(self.seeds),
            "settings": settings,
        }

    def report(self, results: Results) -> Report:
        """Return the report on a run of the study, or of a part of it."""
        scale = results.manifest.get("scale", "paper")
        full = scale == "paper"
        means = compare_means(results)
        played = [
            key
            for setting in results.settings.values()
            for key, method in setting.methods.items()
            if method.policy != MEASURE
        ]
        return Report(
            results=results,
            specs=list(self.figures(results)),
            verdicts=judged(self.claims(results), scale),
            comparisons=list(self.comparisons(results)),
            notes=self.notes,
            published=compare_seeds(results).groups if full else (),
            published_means=means if full and means.excesses else None,
            reproduces_paper=True,
            not_from_paper=[label_of(key) for key in dict.fromkeys(played) if not in_paper(key)],
        )


# What studies share

LATENT_UCB_NOTE = (
    "Latent UCB is not from the paper: it estimates everything itself. A second form is given the "
    "rank and knows that all means are 0. None of its settings was chosen on the seeds of this "
    "study."
)


def standard(keys: str) -> dict[str, Plain]:
    """Return standard methods with their usual settings; spaces are between their keys."""
    return {key: {} for key in keys.split()}


def threshold(constant: float, cap: int, **more: float) -> Plain:
    """Return the published practical rule for the rank, as all studies but the main one have it."""
    rule = {"rule": "PracticalThreshold", "scale": 1.0, "failure_prob": 0.05}
    return {**rule, "constant": constant, "cap": cap, **more}


def with_own(results: Results, methods: Keys, known: Iterable[str]) -> list[str]:
    """Return methods, and those of the results that a study does not have: the user's own."""
    shown, of_study = methods.split() if isinstance(methods, str) else list(methods), set(known)
    return shown + [key for key in results.methods if key not in of_study]


def main_figure(
    results: Results, label: str, caption: str, methods: Keys, known: Iterable[str]
) -> Figure:
    """Return regret over rounds at every probability, and final regret over these.

    `known` are all methods of the study: others join those that are shown.
    """
    methods = with_own(results, methods, known)
    over_time = [regret_over_rounds(results, methods, p=at.p) for at in results.points()]
    return Figure(label, caption, [*over_time, regret_over_p(results, methods)])


def all_methods(
    results: Results,
    label: str,
    caption: str,
    methods: Keys,
    known: Iterable[str],
    p: float,
    minus: str | None = None,
) -> Figure:
    """Return regret over rounds at one probability, and over all, on logarithmic axes.

    Where all regrets are large, that over rounds is shown `minus` that of a method. `known` is
    that of `main_figure`.
    """
    methods = with_own(results, methods, known)
    panels = [
        regret_over_rounds(results, methods, p=p, log=minus is None, minus=minus),
        regret_over_p(results, methods, log=True),
    ]
    return Figure(label, f"{caption}. Latent UCB is not from the paper", panels)


def run_study(
    study: Study,
    store: Store | None = None,
    *,
    write: bool = True,
    shard: tuple[int, int] = (1, 1),
    **how: Any,
) -> Results:
    """Run what a store does not have of a study, and return (and write) its results.

    `how` are `jobs` and `progress`; these and `write` are as in `simulate.run`. What was chosen
    joins the manifest and `calibration.csv`. `shard` is a part of the study: (3, 20) is the third
    of 20, which together have every cell once.

    Raises
    ------
    HalfseenError
        A candidate failed on a validation seed.
    """
    manifest: dict[str, Any] = {"study": study.to_dict(), "scale": study.scale}
    if shard != (1, 1):
        manifest["shard"] = list(shard)
    mine = study.shard(*shard)
    tasks = [task for task in study.tasks() if study.unit(task.place) in mine]
    started = time.perf_counter()
    found = run_tasks(tasks, store, **how) if tasks else []
    chosen = {task.place[1:4]: each.chosen for task, each in zip(tasks, found, strict=True)}
    if tasks:
        rows = [
            {"setting": setting, "p": p, "method": key, "settings": settings}
            for (setting, p, key), settings in chosen.items()
        ]
        manifest["tuned"] = {"chosen": rows, "seconds": round(time.perf_counter() - started, 1)}
    cells = [cell for cell in study.cells(chosen) if study.unit(cell.key) in mine]
    results = simulate.run(cells, store, write=write, manifest=manifest, **how)
    if store is not None and write:
        if found:
            write_calibration(store.folder, found)
        else:  # of an earlier command
            (store.folder / "calibration.csv").unlink(missing_ok=True)
    return results
