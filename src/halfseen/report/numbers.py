"""Numbers for readers: how they are written, tables, paired differences, growth exponents."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from halfseen import seeding
from halfseen.simulation.results import Mean, Point, Results, mean_of
from halfseen.values import FloatArray

N_RESAMPLES = 2000
"""Of the seeds, for the interval of an exponent; the same ones in every run."""

_LEVEL = 0.95  # of every interval
_ROUNDING = 1e-12  # a standard error below this share of the mean is rounding

# How numbers are written

_WORDS = {
    "horizon": ("T", "rounds, T"),
    "n_arms": ("K", "arms per slate, K"),
    "n_shown": ("K", "arms shown per round, K"),
    "rank": ("m", "rank, m"),
    "dim": ("d", "features, d"),
    "conditioning": ("κ", "conditioning, κ"),
    "p": ("p", "share of entries seen, p"),
    "split": ("a", "first phase of T^a rounds, a"),
}


def words_for(name: str) -> tuple[str, str]:
    """Return the letter and the axis label of a setting; an unknown one stands for itself.

    >>> words_for("n_arms"), words_for("half_life")
    (('K', 'arms per slate, K'), ('half life', 'half life'))
    """
    plain = name.replace("_", " ")
    return _WORDS.get(name, (plain, plain))


def number(value: float, digits: int = 3) -> str:
    """Return a number as people write it: some significant digits, thousands apart, no exponent.

    Whole parts are never rounded. Numbers below a millionth or above a billion have a power of 10.

    >>> number(1265.04), number(0.012345), number(-12.34), number(12.0), number(3.2e15)
    ('1,265', '0.0123', '−12.3', '12', '3.2·10^15')
    """
    if not math.isfinite(value):
        return {math.inf: "∞", -math.inf: "−∞"}.get(value, "–")
    size = abs(value)
    if size and not 1e-6 <= size < 1e9:
        mantissa, power = f"{value:.{digits - 1}e}".split("e")
        text = f"{float(mantissa):g}·10^{int(power)}"
    else:
        places = 0 if size == 0 else digits - 1 - math.floor(math.log10(size))
        text = f"{value:,.{max(0, places)}f}"
        if "." in text:
            text = text.rstrip("0").rstrip(".")
    return text.replace("-", "−")


def format_mean(mean: Mean, digits: int = 3) -> str:
    """Return a mean and its standard error as a string.

    >>> format_mean(Mean(-1265.4, 1.0)), format_mean(Mean(0.0123, None))
    ('−1,265 ± 1', '0.0123')
    """
    value = "–" if mean.mean is None else number(mean.mean, digits)
    error = mean.standard_error
    if error is None:
        return value
    is_rounding = error < _ROUNDING * abs(mean.mean or 0.0)
    return f"{value} ± {'0' if is_rounding else number(error, 2)}"


def seed_ranges(seeds: Iterable[int]) -> str:
    """Return integers as a string, with runs abbreviated.

    >>> seed_ranges([0, 1, 2, 7])
    '0–2, 7'
    """
    runs: list[list[int]] = []
    for seed in seeds:
        if runs and seed == runs[-1][1] + 1:
            runs[-1][1] = seed
        else:
            runs.append([seed, seed])
    return ", ".join(str(low) if low == high else f"{low}–{high}" for low, high in runs)


# Tables of final regret


class Group(NamedTuple):
    """Points side by side: a caption, which may be empty, and a column head for each."""

    caption: str
    points: list[Point]
    heads: list[str]


class FinalTable(NamedTuple):
    """Mean final regret of every method at every point, where it was run.

    `oracles` are the methods that see or know what no player does; they come last.
    """

    points: list[Point]
    methods: list[str]
    cells: dict[tuple[Point, str], Mean]
    oracles: frozenset[str]

    @classmethod
    def of(
        cls, results: Results, means: dict[tuple[Point, str], Mean] | None = None
    ) -> "FinalTable":
        """Return mean final regrets, or other means, in the order of the study."""
        places = [(point, method) for point in results.points() for method in results.methods]
        if means is None:
            means = {place: results.mean(*place) for place in places}
        cells = {place: mean for place, mean in means.items() if mean.mean is not None}
        oracles = frozenset(
            key
            for setting in results.settings.values()
            for key, method in setting.methods.items()
            if method.view == "full" or method.policy == "Oracle"
        )
        points = [point for point in results.points() if any(at == point for at, _ in cells)]
        methods = [key for key in results.methods if any(each == key for _, each in cells)]
        methods.sort(key=lambda method: method in oracles)
        return cls(points, methods, cells, oracles)

    def is_best(self, point: Point, method: str) -> bool:
        """Tell whether a method has the lowest mean, as printed, of all that can be played."""
        means = {
            key: round(mean.mean or 0.0, self.digits)
            for (at, key), mean in self.cells.items()
            if at == point and key not in self.oracles
        }
        return method in means and means[method] == min(means.values())

    def rows(self, group: Group) -> list[str]:
        """Return the methods that were run at one of the points, oracles last."""
        run = {key for at, key in self.cells if at in group.points}
        return [method for method in self.methods if method in run]

    def begins_oracles(self, group: Group, method: str) -> bool:
        """Tell whether a line goes above a method: the first oracle, if others are above it."""
        known = self.rows(group)
        first = next((each for each in known if each in self.oracles), None)
        return method == first and method != known[0]

    def text(self, point: Point, method: str) -> str:
        """Return a cell as people read it, empty where nothing was run."""
        cell = self.cells.get((point, method))
        if cell is None:
            return ""
        mean, error = f"{cell.mean:,.{self.digits}f}", cell.standard_error
        return mean if error is None else f"{mean} ± {error:,.{self.digits}f}"

    @property
    def digits(self) -> int:
        """Digits after the decimal point, the same in the whole table."""
        sizes = [abs(mean.mean) for mean in self.cells.values() if mean.mean]
        return min(4, max(1, math.ceil(-math.log10(min(sizes))) + 1)) if sizes else 1

    def point_groups(self) -> list[Group]:
        """Return the points of each setting; those of settings that have only one together."""
        by_setting: dict[str, list[Point]] = {}
        for point in self.points:
            by_setting.setdefault(point.setting, []).append(point)
        alone = [points[0] for points in by_setting.values() if len(points) == 1]
        merges, groups = len(alone) > 1 or len(by_setting) == 1, []
        if alone and merges:
            groups.append(Group("", alone, [str(point) or "final regret" for point in alone]))
        for name, points in by_setting.items():
            if len(points) > 1 or not merges:
                heads = ["" if point.p is None else f"p = {point.p:g}" for point in points]
                groups.append(Group(name if len(by_setting) > 1 else "", points, heads))
        return groups


# Means and paired differences


class Interval(NamedTuple):
    """A mean over seeds with Student's 95 % interval; its ends are NaN for a single value."""

    mean: float
    low: float
    high: float
    n: int

    @classmethod
    def of(cls, values: Iterable[float]) -> "Interval":
        """Return that of some values.

        >>> str(Interval.of([1.0, 2.0, 3.0]))
        '2 [−0.484, 4.48]'
        """
        found = [float(value) for value in values]
        mean, error = mean_of(found)
        half = math.nan if error is None else _student(len(found)) * error
        mean = math.nan if mean is None else mean
        return cls(mean, mean - half, mean + half, len(found))

    @classmethod
    def of_difference(cls, ours: Sequence[float], theirs: Sequence[float]) -> "Interval":
        """Return that of the difference of two means of other seeds (Welch's).

        >>> str(Interval.of_difference([1.0, 2.0, 3.0], [7.0, 9.0]))
        '−6 [−12, −0.023]'
        """
        from scipy.stats import ttest_ind  # few reports need it, and it takes long to import

        n, mean = min(len(ours), len(theirs)), float(np.mean(ours) - np.mean(theirs))
        if n < 2:
            return cls(mean, math.nan, math.nan, n)
        ends = ttest_ind(ours, theirs, equal_var=False).confidence_interval(_LEVEL)
        return cls(mean, float(ends.low), float(ends.high), n)

    @classmethod
    def of_ratio(cls, ours: FloatArray, theirs: FloatArray) -> "Interval":
        """Return that of the ratio of two means, paired seed by seed (Fieller's).

        It has the ratios r for which that of ours − r · theirs has 0, and no ends where the mean of
        theirs is not clearly different from 0.

        >>> str(Interval.of_ratio(np.array([21.0, 19.0, 24.0]), np.array([10.0, 10.0, 11.0])))
        '2.06 [1.66, 2.39]'
        """
        n, means = len(ours), np.array([ours.mean(), theirs.mean()])
        ratio = float(means[0] / means[1]) if means[1] else math.nan
        if n < 2:
            return cls(ratio, math.nan, math.nan, n)
        # The ends solve (a − r b)² = t² var(a − r b).
        squares = np.outer(means, means) - _student(n) ** 2 * np.cov(ours, theirs) / n
        (aa, ab), (_, bb) = squares.tolist()
        if bb <= 0:
            return cls(ratio, -math.inf, math.inf, n)
        middle, half = ab / bb, math.sqrt(max(0.0, ab**2 - aa * bb)) / bb
        return cls(ratio, middle - half, middle + half, n)

    def __str__(self) -> str:
        """Return the mean and the interval as people read them."""
        return self._text(number)

    def fixed(self, places: int) -> str:
        """Return the same with as many digits after the decimal point.

        >>> Interval(-0.5, -math.inf, 0.25, 9).fixed(2)
        '−0.50 [−∞, 0.25]'
        >>> Interval(0.5, -math.inf, math.inf, 9).fixed(2)
        '0.50 (no finite interval)'
        """
        return self._text(lambda value: f"{value:.{places}f}")

    def _text(self, written: Callable[[float], str]) -> str:
        ends = "" if math.isnan(self.low) else f" [{written(self.low)}, {written(self.high)}]"
        text = f"{written(self.mean)}{ends}"
        text = text.replace("-", "−").replace("inf", "∞").replace("nan", "–")
        return text.replace("[−∞, ∞]", "(no finite interval)")


def _student(n: int) -> float:
    """Return the quantile of Student's t for a mean of n values."""
    from scipy.special import stdtrit  # few reports need it, and it takes long to import

    return float(stdtrit(n - 1, (1 + _LEVEL) / 2))


def difference(ours: Mapping[int, float], theirs: Mapping[int, float]) -> dict[int, float]:
    """Return ours − theirs by seed, for the seeds that both have."""
    return {seed: value - theirs[seed] for seed, value in ours.items() if seed in theirs}


class Pair(NamedTuple):
    """Two methods at a point, over the seeds that both played."""

    point: Point
    method: str
    against: str
    seeds: tuple[int, ...]
    mean: float  # final regret
    other: float  # final regret of the other method
    difference: Interval  # of the first less the second, seed by seed

    @property
    def decided(self) -> bool:
        """Whether zero is outside the interval."""
        return self.difference.low > 0 or self.difference.high < 0

    @property
    def text(self) -> str:
        """The difference and its interval."""
        mean, low, high, n = self.difference
        text = f"{mean:+.3g} [{low:+.3g}, {high:+.3g}]" if n > 1 else f"{mean:+.3g}"
        return text.replace("-", "−")


class Comparison(NamedTuple):
    """Methods compared seed by seed; the name is that of a CSV file."""

    name: str
    caption: str
    points: list[Point]
    pairs: list[Pair]


def compare(
    results: Results,
    name: str,
    caption: str,
    methods: Sequence[str],
    against: Sequence[str],
    *,
    settings: Sequence[str] | None = None,
    choose_seeds: Sequence[int] = (),
) -> Comparison:
    """Compare methods with the first of some others that was run at a point.

    With `choose_seeds` it is the best of the others on these seeds, compared on all other seeds.
    """
    points, pairs = results.points(settings), []
    for point in points:
        others = [method for method in against if results.regrets(point, method)]
        if others and choose_seeds:
            others = _by_regret(results, point, others, choose_seeds)
        found = [_pair(results, point, each, others[0], choose_seeds) for each in methods if others]
        pairs += [pair for pair in found if pair is not None]
    return Comparison(name, caption, points, pairs)


def _by_regret(
    results: Results, point: Point, methods: Sequence[str], seeds: Sequence[int]
) -> list[str]:
    """Return methods by their mean regret on some seeds, the best first.

    A method counts only if it has a regret on all of these seeds that were run.
    """
    regrets = {
        method: [value for seed, value in results.regrets(point, method).items() if seed in seeds]
        for method in methods
    }
    n_run = max(map(len, regrets.values()))
    complete = [method for method, found in regrets.items() if len(found) == n_run > 0]
    return sorted(complete, key=lambda method: float(np.mean(regrets[method])))


def _pair(
    results: Results, point: Point, method: str, other: str, without: Sequence[int]
) -> Pair | None:
    ours, theirs = results.regrets(point, method), results.regrets(point, other)
    seeds = tuple(seed for seed in ours if seed in theirs and seed not in without)
    if not seeds:
        return None
    mean, of_other = (float(np.mean([each[seed] for seed in seeds])) for each in (ours, theirs))
    found = Interval.of(ours[seed] - theirs[seed] for seed in seeds)
    return Pair(point, method, other, seeds, mean, of_other, found)


# Growth


class Growth(NamedTuple):
    """Means at some numbers, and the exponent of their growth.

    It is the slope of the log mean against the log number, NaN where a mean is not positive; its
    interval comes from resampling seeds, and worlds where there are several. `steps` are the slopes
    from each number to the next: only where they agree is there a power law.
    """

    numbers: tuple[float, ...]
    means: tuple[Mean, ...]  # in the first world
    exponent: Interval
    steps: tuple[Interval, ...]


def growth_of(
    results: Results,
    method: str,
    over: str = "horizon",
    *,
    value: str | None = None,
    settings: Sequence[str] | None = None,
    worlds: Sequence[Sequence[str]] | None = None,
    p: float | None = None,
) -> Growth | None:
    """Return how the mean final regret of a method grows over settings; None for one number.

    Parameters
    ----------
    over : str
        "p", "conditioning" (κ) or a setting of the world, such as "horizon" or "n_arms". If it is
        "p", only the probabilities of one setting count, by default the first.
    value : str, optional
        A diagnostic of the method, at its last position, instead of its regret.
    settings, p : optional
        Where: by default in all settings, at the first probability of each. Of several settings
        with the same number the first counts.
    worlds : optional
        Several lists of settings instead of one, each of which is one world at all numbers. Slopes
        are means over worlds, at the numbers that all of them have.

    A seed that failed at one number is left out at all: a slope compares the same seeds.
    """
    by_seed = results.regrets if value is None else partial(_ends, results, value)
    columns = []
    for names in [settings] if worlds is None else worlds:
        points = growth_points(results, over, names, p).items()
        found = {at: values for at, point in points if (values := by_seed(point, method))}
        columns += [found] if found else []
    numbers = tuple(sorted(set.intersection(*map(set, columns)))) if columns else ()
    if len(numbers) < 2:
        return None
    tables = []
    for found in columns:
        seeds = sorted(set.intersection(*(set(found[at]) for at in numbers)))
        if not seeds:
            return None
        tables.append(np.array([[found[at][seed] for at in numbers] for seed in seeds]))
    means = tuple(mean_of(column.tolist()) for column in tables[0].T)
    steps = [
        _slope(numbers[at : at + 2], *(e[:, at : at + 2] for e in tables))
        for at in range(len(numbers) - 1)
    ]
    return Growth(numbers, means, _slope(numbers, *tables), tuple(steps))


def _ends(results: Results, value: str, point: Point, method: str) -> dict[int, float]:
    """Return a diagnostic at its last position, by seed."""
    found = results.diagnostic(point, method, value)
    last = max((position for each in found.values() for position in each), default=0)
    return {seed: each[last] for seed, each in found.items() if last in each}


def growth_points(
    results: Results, over: str, settings: Sequence[str] | None = None, p: float | None = None
) -> dict[float, Point]:
    """Return the points over which something grows, by their numbers, as in `growth_of`."""
    names = [name for name in results.settings if settings is None or name in settings]
    if over == "p":
        points = results.points(names[:1])
    else:
        first = [(name, next(iter(results.settings[name].worlds))) for name in names]
        points = [Point(name, at if p is None else p) for name, at in first]
    found: dict[float, Point] = {}
    for point in points:
        at = results.number(point, over)
        if at is not None:
            found.setdefault(at, point)
    return found


def _slope(numbers: Sequence[float], *tables: FloatArray) -> Interval:
    """Return the slope of mean regret, averaged over tables, one per world; with its interval."""
    mean = float(np.mean([_slopes(numbers, table.mean(axis=0)) for table in tables]))
    return Interval(mean, *slope_interval(numbers, *tables), min(map(len, tables)))


def slope_interval(numbers: Sequence[float], *tables: FloatArray) -> tuple[float, float]:
    """Return the 95 % interval of the mean slope, from resampling (percentile bootstrap).

    Each table is a world, of shape (n_seeds, n_numbers). All numbers of a seed are resampled
    together: they share its subspace. Of several worlds as many are drawn with replacement, and
    then the seeds of each. A resample in which a mean is not positive has no slope: it counts as
    beyond both ends, so that with many of them the interval has no end.
    """
    if min(map(len, tables)) < 2:
        return math.nan, math.nan
    random = seeding.stream(0, "report", "bootstrap")
    each = np.empty((len(tables), N_RESAMPLES))
    for at, table in enumerate(tables):
        drawn = random.integers(len(table), size=(N_RESAMPLES, len(table)))
        each[at] = _slopes(numbers, table[drawn].mean(axis=1))
    worlds = random.integers(len(tables), size=each.shape)
    slopes = np.take_along_axis(each, worlds, axis=0).mean(axis=0)
    low = np.quantile(np.nan_to_num(slopes, nan=-math.inf), (1 - _LEVEL) / 2, method="lower")
    high = np.quantile(np.nan_to_num(slopes, nan=math.inf), (1 + _LEVEL) / 2, method="higher")
    return float(low), float(high)


def _slopes(numbers: Sequence[float], means: FloatArray) -> FloatArray:
    """Return the least-squares slope of each row of log means, shape (..., n), on log numbers.

    It is NaN where a mean is not positive.
    """
    x = np.log(np.asarray(numbers, dtype=float))
    x -= x.mean()
    logs = np.log(means, out=np.full_like(means, math.nan), where=means > 0)
    slopes: FloatArray = logs @ x / (x @ x)
    return slopes
