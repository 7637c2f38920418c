"""Describe a table with missing values: its rank, and what its missing values depend on.

Every sentence of an inspection follows from a number that the table gives.
"""

import html
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse.csgraph import connected_components

from halfseen import checks
from halfseen.errors import InvalidInputError, InvalidTableError
from halfseen.factors.model import Factors, choose_rank, fit_rank
from halfseen.factors.table import fit_table, moved_by_seeing, posteriors, search_rows
from halfseen.frames.cells import Category, Labels, read_cells
from halfseen.frames.encoder import Encoder
from halfseen.frames.files import cells_of, columns_of
from halfseen.frames.parts import parts_of
from halfseen.frames.reading import Rows
from halfseen.latent.plausible import limits_of, n_implausible, plausible
from halfseen.lazy import from_extra
from halfseen.seeding import stream
from halfseen.values import LARGEST, BoolArray, FloatArray
from halfseen.values.decision import html_table, text_table
from halfseen.values.rows import evenly_spaced

MOST_ROWS = 20_000
"""A table with more rows is represented by a uniform sample: a share is then within .01."""

FEWEST_ROWS = 20
"""Fewer rows, or rewards, show nothing."""

FALSE_ALARM = 0.01
"""Share of tables with values missing completely at random for which a dependence is reported."""

# Seen entries that are hidden from the model, to see how well it infers them.
_HELD_SHARE = 0.1
# Rows on which dependence is looked for: each of the permutations takes time.
_CHECKED_ROWS = 5000
# Rows over which the worth of measuring is averaged.
_MEASURED_ROWS = 200
_MOST_LEVELS = 50
# Masks with this correlation or more are hidden together.
_TOGETHER = 0.8
# Filling from the rest of the row must lower the error below this share of the mean's.
_CLEARLY_LOWER, _LOWER = 0.9, 0.98
# Errors that differ by less are about the same.
_ABOUT = 1.03
_SHOWN_RANKS = (0, 1, 2, 3, 5, 8, 13, 21)


def _sample(table: Any, progress: bool) -> tuple[dict[str, Any], int]:
    """Return the columns of a table, or of a uniform sample of its rows, and its number of rows."""
    parts = parts_of(table)
    columns = {} if parts is not None else columns_of(table, progress=progress)
    n = len(next(iter(columns.values()), ()) if parts is None else parts)
    kept = np.arange(n)
    if n > MOST_ROWS:
        kept = np.sort(stream(0, "inspect", "rows").choice(n, MOST_ROWS, replace=False))
    if parts is not None:
        columns, kept = columns_of(parts.take(kept)), np.arange(len(kept))
    return {name: cells_of(column, kept) for name, column in columns.items()}, n


@dataclass(frozen=True)
class InspectedColumn:
    """What `inspect` found about a column.

    Attributes
    ----------
    name : str
    kind : str
        Its type, or why it is left out.
    seen : float or None
        Share of rows that show it, if it can be read.
    inferred : float or None
        Share of its variance that the rest of the row explains, on held-out entries.
    worth : float or None
        Mean change of the predicted reward when a missing entry is measured, as a share of the
        reward's standard deviation, divided by the cost.
    """

    name: str
    kind: str
    seen: float | None
    inferred: float | None = None
    worth: float | None = None


@dataclass(frozen=True)
class Inspection:
    """The result of `inspect`, in numbers and in sentences.

    `print` shows it; `write("page.html")` writes an HTML page.

    Examples
    --------
    >>> found = inspect({"a": [1.0, None, 3.0, 5.0] * 5, "b": [2.0, 4.0, None, 1.0] * 5})
    >>> found.findings["Rows"]
    '20 rows. 25 % of the entries of 2 columns are missing; 50 % of the rows are complete.'

    Attributes
    ----------
    columns : tuple of InspectedColumn
    rank : int
        Number of latent dimensions: the smallest one whose error is close to the least.
    errors : dict of int to float
        Imputation error on held-out entries by rank, relative to imputing means.
    spectrum : tuple of float
        Share of the variance that each latent dimension explains.
    findings : dict of str to str
        Sentences by topic.
    """

    columns: tuple[InspectedColumn, ...]
    rank: int
    errors: dict[int, float]
    spectrum: tuple[float, ...]
    findings: dict[str, str]

    def _cells(self) -> list[tuple[str, ...]]:
        """Return the table of columns, with its head."""
        rows = [
            (each.name, each.kind, *map(percent, (each.seen, each.inferred, each.worth)))
            for each in self.columns
        ]
        return [("column", "type", "seen", "inferred", "worth"), *rows]

    def __str__(self) -> str:
        bars = [
            (str(rank), percent(error), "█" * round(40 * error) + " ← chosen" * (rank == self.rank))
            for rank, error in self.errors.items()
        ]
        tables = text_table(self._cells()), text_table([("rank", "error", ""), *bars])
        findings = [
            textwrap.fill(f"{topic}{':' * (topic[-1] != '?')} {text}", 80, subsequent_indent="  ")
            for topic, text in self.findings.items()
        ]
        return "\n\n".join([*tables, "\n".join(findings)])

    def _repr_html_(self) -> str:
        return html_table(self._cells()) + "".join(
            f"<p><b>{topic}</b> {html.escape(text)}</p>" for topic, text in self.findings.items()
        )

    def write(self, path: str | Path) -> Path:
        """Write an HTML page, and return its path."""
        with from_extra("paper"):
            from jinja2 import Environment, PackageLoader, StrictUndefined

        environment = Environment(
            loader=PackageLoader("halfseen.tools"), autoescape=True, undefined=StrictUndefined
        )
        environment.filters["percent"] = percent
        style = (Path(__file__).parents[1] / "report" / "assets" / "style.css").read_text("utf-8")
        page = environment.get_template("inspection.html.j2").render(found=self, style=style)
        Path(path).write_text(page, encoding="utf-8")
        return Path(path)


def percent(share: float | None) -> str:
    """Return a share as a percentage.

    >>> percent(0.314), percent(0.0004), percent(None)
    ('31 %', '< 1 %', '–')
    """
    if share is None:
        return "–"
    return "< 1 %" if 0.0 < share < 0.005 else f"{100 * share:.0f} %"


def inspect(
    table: Any,
    reward: str | int | None = None,
    *,
    costs: Mapping[str, float] | None = None,
    progress: bool = False,
) -> Inspection:
    """Describe a table with missing values before choosing a policy.

    Parameters
    ----------
    table : data frame, array of shape (n, dim), list of dicts, dict of columns, or path
        One row per offered option. Files are CSV or Parquet. If there are more than 20,000 rows, a
        uniform sample is used. A Parquet file, a folder of them, or a frame of Dask may be larger
        than memory.
    reward : str or int, optional
        The column with the reward of each row; for an array its index.
    costs : mapping of str to float, optional
        Cost of measuring a missing entry of a column; 1 by default.
    progress : bool
        Whether to show a progress bar while a CSV file is read.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> table = random.normal(size=(500, 2)) @ random.normal(size=(2, 8))
    >>> table[random.random(table.shape) < 0.4] = np.nan
    >>> found = inspect(table)
    >>> found.rank
    2
    >>> print(found.findings["Missing completely at random?"])
    Possibly: no column is missing more often where another one is high or low. The test has a \
false alarm rate of 1 % per table, and cannot detect entries that are missing because of their own \
values.
    """
    return Inspector(table, reward, costs, progress=progress).inspection()


class Inspector:
    """A table as features, and what is computed from it."""

    def __init__(
        self,
        table: Any,
        reward: str | int | None = None,
        costs: Mapping[str, float] | None = None,
        *,
        progress: bool = False,
    ) -> None:
        sampled, self.n_rows = _sample(table, progress)
        self.costs = {str(name): cost for name, cost in (costs or {}).items()}
        if self.n_rows < FEWEST_ROWS:
            raise InvalidTableError(
                f"a table must have at least {FEWEST_ROWS} rows, got {self.n_rows}"
            )
        reward = None if reward is None else str(reward)
        for name in (*self.costs, *([reward] if reward else [])):
            if name not in sampled:
                hint = checks.did_you_mean(name, sampled)
                known = ", ".join(sampled)
                raise InvalidInputError(f"the table has no column {name!r}{hint}: it has {known}")
        for name, cost in self.costs.items():
            checks.real(f"the cost of {name!r}", cost, 0.0, low_open=True)
        read, self.kinds, self.shares = _read(sampled)
        self.paid: FloatArray | None = None
        if reward is not None:
            paid = read.pop(reward, None)
            if not isinstance(paid, np.ndarray):
                raise InvalidTableError(
                    f"the reward {reward!r} must be numbers that vary, got {self.kinds[reward]}"
                )
            if (n := int((paid == paid).sum())) < FEWEST_ROWS:
                raise InvalidTableError(
                    f"the reward {reward!r} must be known in at least {FEWEST_ROWS} rows, got {n}"
                )
            self.paid = paid
        if not read:
            raise InvalidTableError(f"a table must have a column that varies, got {self.kinds}")
        self.names = list(read)
        rows = Rows([*range(len(read[self.names[0]]))], tuple(read), list(read.values()))
        slate, encoder = Encoder(_MOST_LEVELS).encode(rows)
        columns = [encoder.columns[name] for name in self.names]
        # One level of a category follows from the others.
        kept = [column.features[bool(column.levels) :] for column in columns]
        ends = np.cumsum([len(features) for features in kept]).tolist()
        self.table: FloatArray = np.ascontiguousarray(slate.table[:, np.concatenate(kept)])
        limits = limits_of(self.table)
        self.n_implausible = n_implausible(self.table, limits).astype(int)
        self.table = plausible(self.table, limits)
        self.features = [
            [*range(end - len(each), end)] for end, each in zip(ends, kept, strict=True)
        ]
        # Of each feature its column, and the level of a category where it is high.
        self.places: list[tuple[str, Any]] = [
            (column.name, level)
            for column in columns
            for level in (*column.levels[1:], *["a rare level"] * column.n_shared) or [None]
        ]
        self.places += [] if reward is None else [(reward, None)]
        # Of each column, which rows hide it.
        self.hidden: BoolArray = np.isnan(self.table[:, [some[0] for some in self.features]])

    def inspection(self) -> Inspection:
        """Return all that is found."""
        rank, errors, inferred = self._held_out()
        model, dependent = fit_table(self.table, rank), self.dependent()
        worth, explained = self._worth(model)
        strengths = np.linalg.svd(model.loadings, compute_uv=False) ** 2
        total = strengths.sum() + model.noise[model.scale > 0.0].sum()
        findings = {
            "Rows": self._rows_text(),
            **self._implausible_text(),
            "Missing together?": self._together_text(),
            "Low-rank?": _rank_text(rank, errors[rank]),
            "Missing completely at random?": _random_text(dependent, bool(self.hidden.any())),
        }
        if self.paid is not None:
            findings["Worth measuring?"] = _worth_text(worth)
        advice = self._policy_text(errors[rank], bool(dependent))
        findings["Advice"] = f"{advice} {_reward_text(explained)}"
        return Inspection(
            tuple(
                InspectedColumn(name, kind, self.shares[name], inferred.get(name), worth.get(name))
                for name, kind in self.kinds.items()
            ),
            rank,
            errors,
            tuple((strengths / total).tolist()),
            findings,
        )

    # Low-rank, and what can be inferred

    def _held_out(self) -> tuple[int, dict[int, float], dict[str, float]]:
        """Return the rank, errors by rank, and the explained share of each column's variance.

        Some seen entries are hidden from the models that are judged by them. The rank is the
        smallest one whose error is about the least.
        """
        held = stream(0, "inspect", "held").random(self.hidden.shape) < _HELD_SHARE
        judged = np.zeros(self.table.shape, dtype=np.bool_)
        for column, features in enumerate(self.features):
            judged[:, features] = (held & ~self.hidden)[:, [column]]
        train = np.where(judged, np.nan, self.table)
        rows = search_rows(train)
        likely = choose_rank(rows).model.rank
        squares = {}
        shown = {rank for rank in _SHOWN_RANKS if rank < likely} | {0, likely, likely + 1}
        highest = max(likely, len(self.features) - 1)
        for rank in sorted(rank for rank in shown if rank <= highest):
            model = fit_rank(rows, rank).model
            unit = np.where(model.scale > 0.0, model.scale, np.inf)
            squares[rank] = np.zeros(len(unit))
            for place, found in posteriors(model, train):
                rest = np.where(judged[place], (found.filled - self.table[place]) / unit, 0.0)
                squares[rank] += (rest * rest).sum(axis=0)
        # Each column counts as one, however many levels it has.
        left = {
            rank: np.array([total[some].sum() for some in self.features])
            for rank, total in squares.items()
        }
        known = left[0] > 0.0
        errors = {
            rank: float(np.sqrt(np.mean(each[known] / left[0][known]))) if known.any() else 1.0
            for rank, each in left.items()
        }
        rank = min(rank for rank in errors if errors[rank] <= _ABOUT * min(errors.values()))
        shares = np.maximum(0.0, 1.0 - left[rank] / np.where(known, left[0], np.inf))
        inferred = {name: float(shares[at]) for at, name in enumerate(self.names) if known[at]}
        return rank, errors, inferred

    # Missing completely at random

    def dependent(self) -> list[str]:
        """Return, in words, which columns' missingness depends on other columns or on the reward.

        A dependence is real if it is stronger than all of the permuted tables have, in which each
        column's seen values change places.
        """
        rows = evenly_spaced(len(self.table), _CHECKED_ROWS)
        values, hides = self.table[rows], self.hidden[rows].astype(np.float64)
        if self.paid is not None:
            values = np.column_stack([values, self.paid[rows]])
        seen = values == values
        ranks = _centred_ranks(values)
        counts, sizes = seen.sum(axis=0), (ranks * ranks).sum(axis=0)
        share = hides.T @ seen / np.maximum(counts, 1)
        spread = np.sqrt(share * (1.0 - share) * sizes * counts / np.maximum(counts - 1, 1))
        for column, features in enumerate(self.features):
            spread[column, features] = 0.0  # a missing entry does not reveal its own value

        def strengths(ranks: FloatArray) -> FloatArray:
            sums = hides.T @ ranks
            return np.asarray(np.divide(sums, spread, out=np.zeros_like(sums), where=spread > 0.0))

        random, limit = stream(0, "inspect", "permutations"), 0.0
        for _ in range(round(1.0 / FALSE_ALARM) - 1):
            limit = max(limit, float(np.abs(strengths(_shuffled(ranks, seen, random))).max()))
        found = strengths(ranks)
        strongest = np.abs(found).argmax(axis=1)
        alarms = np.abs(found[np.arange(len(found)), strongest])
        return [
            self._dependence(column, values, int(strongest[column]), hides)
            for column in np.argsort(-alarms)
            if alarms[column] > limit
        ]

    def _dependence(self, column: int, values: FloatArray, feature: int, hides: FloatArray) -> str:
        """Return how often a column is hidden where a feature is high, and elsewhere."""
        which, seen = values[:, feature], ~np.isnan(values[:, feature])
        middle = float(np.median(which[seen]))
        high = which > middle if (which[seen] > middle).any() else which >= middle
        on, level = self.places[feature]
        there, elsewhere = (
            percent(float(hides[rows, column].mean())) for rows in (seen & high, seen & ~high)
        )
        where = f"above {checks.significant(middle, 3)}" if level is None else level
        return (
            f"{self.names[column]} is missing in {there} of the rows where {on} is {where}, and in "
            f"{elsewhere} of the others"
        )

    # What the reward depends on

    def _worth(self, model: Factors) -> tuple[dict[str, float], float | None]:
        """Return the value of measuring each incomplete column, and the explained share of rewards.

        The share is that of the reward's variance, by leave-one-out cross-validation of a ridge
        regression.
        """
        if self.paid is None:
            return {}, None
        with from_extra("paper"):
            from sklearn.linear_model import RidgeCV

        rows = np.flatnonzero(~np.isnan(self.paid))
        table, target = self.table[rows], self.paid[rows]
        holes, unit = np.isnan(table), np.where(model.scale > 0.0, model.scale, np.inf)
        inferred = np.vstack([found.filled for _, found in posteriors(model, table)])
        points = (np.where(holes, inferred, table) - model.location) / unit
        ridges = np.geomspace(1e-3, 1e3, 13) * len(rows)
        target = (target - target.mean()) / np.ptp(target)  # squares of tiny rewards would be 0
        fit = RidgeCV(ridges).fit(points, target / target.std())
        some = evenly_spaced(len(rows), _MEASURED_ROWS)
        moves = np.array(
            [
                moved_by_seeing(hides, model.loadings, model.noise, fit.coef_, self.features)
                for hides in holes[some] & (model.scale > 0.0)
            ]
        )
        counts = self.hidden[rows[some]].sum(axis=0)
        worth = {
            name: float(total / count) / self.costs.get(name, 1.0)
            for name, total, count in zip(self.names, moves.sum(axis=0), counts, strict=True)
            if count
        }
        return worth, max(0.0, 1.0 + float(fit.best_score_))

    # Sentences

    def _rows_text(self) -> str:
        n = len(self.table)
        hidden = percent(float(self.hidden.mean()))
        whole = percent(float((~self.hidden.any(axis=1)).mean()))
        sampled = f", of which a random sample of {n:,} was used" if n < self.n_rows else ""
        return (
            f"{self.n_rows:,} rows{sampled}. {hidden} of the entries of {len(self.names)} columns "
            f"are missing; {whole} of the rows are complete."
        )

    def _implausible_text(self) -> dict[str, str]:
        counts = {
            name: int(self.n_implausible[features].sum())
            for name, features in zip(self.names, self.features, strict=True)
        }
        listed = ", ".join(f"{n:,} in {name}" for name, n in counts.items() if n)
        if not listed:
            return {}
        text = "are so far from the other values that they count as missing, as in LatentUcb"
        return {"Implausible values?": f"Yes: {listed} {text}."}

    def _together_text(self) -> str:
        some = np.flatnonzero(self.hidden.any(axis=0) & ~self.hidden.all(axis=0))
        if len(some) < 2:
            return "Fewer than two columns have missing values."
        _, group = connected_components(np.corrcoef(self.hidden[:, some].T) >= _TOGETHER)
        groups = [[self.names[at] for at in some[group == label]] for label in np.unique(group)]
        listed = "; ".join(" and ".join(names) for names in groups if len(names) > 1)
        return f"Yes: {listed}." if listed else "No two columns are missing together."

    def _policy_text(self, error: float, depends: bool) -> str:
        if not self.hidden.any():
            return f"Nothing is missing: AmbientOful(dim={self.table.shape[1]}) is enough."
        more = " Missingness is informative; LatentUcb() uses it." if depends else ""
        if error < _LOWER:
            return (
                "Use LatentUcb(): it infers missing entries from the rest of the row, with "
                f"{percent(1.0 - error)} less error than column means.{more}"
            )
        return (
            "Missing entries cannot be inferred, so LatentUcb() will do about as well as "
            f'Imputed(imputer="mean").{more}'
        )


def _read(
    columns: Mapping[str, Any],
) -> tuple[dict[str, FloatArray | Labels], dict[str, str], dict[str, float | None]]:
    """Return columns that can be used; of all what they are taken for, and the share seen."""
    used: dict[str, FloatArray | Labels] = {}
    kinds: dict[str, str] = {}
    shares: dict[str, float | None] = {}
    for name, cells in columns.items():
        try:
            column = read_cells(name, cells, isinstance(cells, Category))
        except InvalidTableError as error:
            reason = str(error).partition("must ")[2].partition(",")[0]
            kinds[name], shares[name] = f"left out: must {reason}", None
            continue
        seen = [cell for cell in column if cell is not None and cell == cell]
        n_levels = len(set(seen))
        kind = f"category of {n_levels} levels" if isinstance(column, list) else "number"
        if n_levels < 2:
            kind = "constant" if n_levels else "empty"
        elif isinstance(column, list) and n_levels > max(_MOST_LEVELS, len(seen) / 2):
            kind = "left out: looks like an id"
        elif not isinstance(column, list) and np.fmax.reduce(np.abs(column)) > LARGEST:
            kind = f"left out: must be at most {LARGEST:g} in size"
        else:
            used[name] = column
        kinds[name], shares[name] = kind, len(seen) / max(1, len(column))
    return used, kinds, shares


def _centred_ranks(values: FloatArray) -> FloatArray:
    """Return the ranks of seen values around their mean, 0 where hidden."""
    from scipy.stats import rankdata  # loads slowly

    ranks = rankdata(values, axis=0, nan_policy="omit")
    return np.asarray(np.nan_to_num(ranks - np.nanmean(ranks, axis=0)))


def _shuffled(ranks: FloatArray, seen: BoolArray, random: np.random.Generator) -> FloatArray:
    """Return each column with its seen values in another order."""
    shuffled = np.zeros_like(ranks)
    for column, shown in enumerate(seen.T):
        shuffled[shown, column] = random.permutation(ranks[shown, column])
    return shuffled


def _rank_text(rank: int, error: float) -> str:
    if rank == 0 or error >= _LOWER:
        return "No: the columns hardly predict each other, so column means impute as well."
    degree = "Yes" if error < _CLEARLY_LOWER else "A little"
    numbers = "one factor describes" if rank == 1 else f"{rank} factors describe"
    return (
        f"{degree}: {numbers} what the columns have in common. Imputing from the rest of the row "
        f"has {percent(1.0 - error)} less error than column means."
    )


def _random_text(dependent: list[str], has_holes: bool) -> str:
    if not has_holes:
        return "Nothing is missing."
    ending = (
        f" The test has a false alarm rate of {percent(FALSE_ALARM)} per table, and cannot detect "
        "entries that are missing because of their own values."
    )
    if not dependent:
        return (
            "Possibly: no column is missing more often where another one is high or low." + ending
        )
    more = f" ({len(dependent) - 3} more)" if len(dependent) > 3 else ""
    return f"No: {'; '.join(dependent[:3])}{more}.{ending}"


def _worth_text(worth: dict[str, float]) -> str:
    ordered = sorted(worth, key=lambda name: -worth[name])
    if not ordered or worth[ordered[0]] < 0.01:
        return "No: a missing entry, once known, would hardly change the predicted reward."
    listed = ", ".join(f"{name} ({percent(worth[name])})" for name in ordered[:3])
    return (
        f"Most of all {listed}: the mean change of the predicted reward once a missing entry is "
        "known, as a share of the reward's standard deviation, divided by the cost."
    )


def _reward_text(explained: float | None) -> str:
    if explained is None:
        return "Name the reward column (reward=…) to see how much of it the columns explain."
    if explained < 0.01:
        return (
            "The columns do not explain the reward (less than 1 % of its variance), so only item "
            "ids can help."
        )
    return f"The columns explain {percent(explained)} of the reward's variance."
