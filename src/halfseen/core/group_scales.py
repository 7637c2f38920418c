"""Prior scales of groups of features in a reward regression, chosen by evidence.

A reward is r = intercept + Σ_g φ_g'θ_g + u + noise. The coefficients of group g are normal with
deviation τ_g σ, where σ is the deviation of the noise. The effect u of an item, which is the same
each time the item is played, has deviation τ_u σ; other coefficients may differ by item, too. The
intercept has a flat prior. All τ have a weak prior: log τ is normal around a centre with deviation
1. So a scale stays where exploration goes on as long as the rewards say nothing about it, for
example if only one arm is played. For item effects the centre is relative to the deviation of the
items' mean rewards: an item that is played again and again shows how small the noise is, but
nothing about other items.

The scales maximise the posterior density. Those of item effects, and of other coefficients that
differ by item, are then replaced by the root of the posterior mean of τ²: while few items were
played its posterior is wide, and the mode understates how different the others may be.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from halfseen import checks
from halfseen.core.item_sums import ItemSums, rooted
from halfseen.core.samples import Samples
from halfseen.values import LARGEST, FloatArray

ITEM = "item"
"""The group of item effects; it has no features."""

PRIOR_DEVIATION = 1.0
"""Of every log τ around its centre."""

# Scales are searched by steps of these sizes in log τ.
_STEPS = (1.0, 0.5)
LOWEST, HIGHEST = -6.0, 8.0
# A step must gain this much log-evidence; less is rounding.
_LEAST_GAIN = 1e-6
_MOST_SWEEPS = 20
# The posterior of the items' log τ is summed over steps of this size, so far from its mode.
_MEAN_STEP, _MEAN_REACH = 0.5, 3.0
# The noise estimate includes this many pseudo-rewards whose squared residual is this share of the
# rewards' variance: a few rewards do not prove that there is no noise.
_PRIOR_REWARDS = 2.0
_PRIOR_SHARE = 0.05
# Smallest variance between items' means, in units of the mean square: without an intercept all
# rewards may be equal.
_LEAST_SPREAD = 1e-6
# Eigenvalues of a Gram matrix below this share of the largest are rounding.
_ROUNDING = 1e-12


class Scales(NamedTuple):
    """Scales of a reward regression.

    Attributes
    ----------
    logs : dict
        log τ of each group.
    noise : float
        σ > 0, in the unit of the rewards.
    """

    logs: dict[str, float]
    noise: float

    def of(self, group: str) -> float:
        """Return τ of a group, 0 if it has none."""
        return math.exp(self.logs[group]) if group in self.logs else 0.0

    def spread(self, columns: Mapping[str, slice]) -> FloatArray:
        """Return τ of the group of each column, for groups that stand side by side."""
        return spread({group: self.of(group) for group in columns}, columns)

    @classmethod
    def restored(cls, state: dict[str, Any], groups: Sequence[str]) -> "Scales":
        """Return the scales of some groups that were saved as plain numbers."""
        logs = {
            group: checks.real("logs", state["logs"][group], LOWEST, HIGHEST) for group in groups
        }
        return cls(logs, checks.real("noise", state["noise"], 0.0, LARGEST, low_open=True))


def estimate_scales(
    points: FloatArray,
    columns: Mapping[str, slice],
    samples: Samples,
    *,
    centres: Mapping[str, float],
    intercept: bool = True,
    last: Mapping[str, float] | None = None,
    sums: ItemSums | None = None,
    item_columns: Mapping[str, slice] | None = None,
) -> Scales:
    """Return the scales with the largest posterior density; for items the mean of τ² given these.

    Parameters
    ----------
    points : ndarray, shape (n_items, n_features)
        Features of every item. The first one is 1.
    columns : mapping
        For each group its columns, one group after the other, of norm about 1.
    samples : Samples
        Not all rewards are equal.
    centres : mapping
        Centre of each group's log τ. With `ITEM` among them, items have effects.
    intercept : bool
    last : mapping, optional
        log τ to start from.
    sums : ItemSums, optional
        Of the same rewards by item, if items differ by more than an effect, or if their features
        change; by default `samples` are summed up by item.
    item_columns : mapping, optional
        For each group of parts in `sums` its columns.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> points = np.column_stack([np.ones(300), random.normal(size=(300, 2))])
    >>> rewards = 7.0 + 3.0 * points[:, 1] + 0.5 * random.normal(size=300)
    >>> samples = Samples.of(np.arange(300), rewards)
    >>> columns, centres = {"a": slice(1, 2), "b": slice(2, 3)}, {"a": 0.0, "b": 0.0}
    >>> scales = estimate_scales(points, columns, samples, centres=centres)
    >>> round(scales.noise, 1), scales.of("a") > 10 * scales.of("b")
    (0.5, True)
    """
    evidence = _Evidence(points, columns, samples, intercept, sums, item_columns)
    logs = {group: (last or {}).get(group, centre) for group, centre in centres.items()}

    def value(logs: Mapping[str, float]) -> float:
        density, noise = evidence.of(logs)
        for group, centre in centres.items():
            unit = 0.5 * math.log(noise) - evidence.log_spread if group == ITEM else 0.0
            rest = (logs[group] + unit - centre) / PRIOR_DEVIATION
            density -= 0.5 * rest * rest
        return density

    best = value(logs)
    for step in _STEPS:
        for _ in range(_MOST_SWEEPS):
            before = best
            for group in logs:
                for change in (-step, step):
                    while True:
                        moved = logs | {group: logs[group] + change}
                        if not LOWEST <= moved[group] <= HIGHEST:
                            break
                        gained = value(moved)
                        if gained <= best + _LEAST_GAIN:
                            break
                        logs, best = moved, gained
            if best == before:
                break
    for group in [group for group in logs if group == ITEM or group in (item_columns or {})]:
        logs = logs | {group: _log_mean_scale(value, logs, group)}
    return Scales(logs, evidence.unit * math.sqrt(evidence.of(logs)[1]))


def _log_mean_scale(
    density: Callable[[Mapping[str, float]], float], logs: Mapping[str, float], group: str
) -> float:
    """Return ½ log E[τ²] of a group, given the log-density of all log τ and its mode `logs`."""
    mode = logs[group]
    shifts = np.arange(-_MEAN_REACH, _MEAN_REACH + _MEAN_STEP, _MEAN_STEP)
    grid = mode + shifts[(mode + shifts >= LOWEST) & (mode + shifts <= HIGHEST)]
    values = np.array([density({**logs, group: float(log)}) for log in grid])
    weights = np.exp(values - values.max())
    mean = float(weights @ np.exp(2.0 * (grid - mode))) / float(weights.sum())
    return min(max(mode + 0.5 * math.log(mean), LOWEST), HIGHEST)


class _Weighted(NamedTuple):
    """Rewards for given scales of items.

    The rows are as few as there are features, if samples are more: the rest of the targets does not
    depend on the other scales.

    Attributes
    ----------
    products : list of ndarray, shape (n_rows, n_rows)
        Products of the rows of each group's features.
    targets : ndarray, shape (n_rows,)
    rest : float
        Squares of the targets that the rows lack.
    log_det : float
    """

    products: list[FloatArray]
    targets: FloatArray
    rest: float
    log_det: float


class _Evidence:
    """Log-evidence and noise variance of rewards for given scales, in units of their deviation."""

    def __init__(
        self,
        points: FloatArray,
        columns: Mapping[str, slice],
        samples: Samples,
        intercept: bool,
        sums: ItemSums | None = None,
        item_columns: Mapping[str, slice] | None = None,
    ) -> None:
        self._samples, self._intercept, self._n = samples, intercept, samples.n_rewards
        targets = samples.targets(samples.mean() if intercept else 0.0)
        largest = max(float(np.abs(targets).max()), samples.within / math.sqrt(self._n))
        targets, within = targets / largest, (samples.within / largest) ** 2
        share = (float(samples.weights(0.0) @ (targets * targets)) + within) / self._n
        self.unit = largest * math.sqrt(share)
        self._targets, self._within = targets / math.sqrt(share), within / share
        self._columns, self._points = columns, samples.stacked(points)
        self._sums = None if sums is None else self._in_units(sums)
        self._item_columns = {ITEM: slice(0, 1)} if item_columns is None else item_columns
        # The deviation between the items' means, at least that which noise alone causes. A single
        # item says nothing about it: then that of the rewards.
        means, least = self._targets[: len(samples.means)], self._within
        if self._sums is not None:
            means, least = self._sums.sums[:, 0, -1] / self._sums.counts, self._n
        noise = least * len(means) / self._n**2
        between = max(float(means.var()), noise, _LEAST_SPREAD)
        self.log_spread = 0.5 * math.log(between) if len(means) > 1 else 0.0
        self._parts: dict[tuple[float, ...], _Weighted] = {}
        self._gram: FloatArray | None = None
        self._found: dict[tuple[float, ...], tuple[float, float]] = {}

    def of(self, logs: Mapping[str, float]) -> tuple[float, float]:
        """Return log-evidence, up to a constant, and the best noise variance."""
        key = tuple(logs.values())
        if key not in self._found:
            self._found[key] = self._computed(logs)
        return self._found[key]

    def _computed(self, logs: Mapping[str, float]) -> tuple[float, float]:
        products, targets, rest, log_det = self._weighted(
            tuple(math.exp(logs[group]) if group in logs else 0.0 for group in self._item_columns)
        )
        covariance = np.zeros((len(targets), len(targets)))
        for group, product in zip(self._columns, products, strict=True):
            covariance += math.exp(2.0 * logs[group]) * product
        # Less than its share of the trace would be lost to rounding.
        noise = max(1.0, _ROUNDING * float(covariance.trace()))
        covariance.ravel()[:: len(targets) + 1] += noise
        factor = np.linalg.cholesky(covariance)
        white = np.linalg.solve(factor, targets)
        log_det += 2.0 * float(np.log(factor.diagonal()).sum())
        n = self._n - self._intercept + _PRIOR_REWARDS
        left = float(white @ white) + rest + _PRIOR_REWARDS * _PRIOR_SHARE
        return -0.5 * (n * math.log(left / n) + log_det), left / n

    def _weighted(self, item_scales: tuple[float, ...]) -> _Weighted:
        """Return what remains to be computed for scales of the other groups."""
        if item_scales not in self._parts:
            found = (
                self._by_row(item_scales[0]) if self._sums is None else self._by_item(item_scales)
            )
            rows, targets, rest, log_det = found
            blocks = [rows[:, part.start - 1 : part.stop - 1] for part in self._columns.values()]
            products = [block @ block.T for block in blocks]
            self._parts[item_scales] = _Weighted(products, targets, rest + self._within, log_det)
        return self._parts[item_scales]

    def _by_row(self, item_scale: float) -> tuple[FloatArray, FloatArray, float, float]:
        """Return rows, targets, the squares that they lack, and a log det: a row for each item."""
        roots = np.sqrt(self._samples.weights(item_scale))
        log_det = self._samples.log_det(item_scale)
        ones = roots * self._points[:, 0]
        features, targets = roots[:, None] * self._points[:, 1:], roots * self._targets
        if self._intercept:  # integrated out
            total = float(ones @ ones)
            features = features - np.outer(ones, (ones @ features) / total)
            targets = targets - ones * (float(ones @ targets) / total)
            log_det += math.log(total / self._n)
        return *_compressed(features, targets), log_det

    def _by_item(
        self, item_scales: tuple[float, ...]
    ) -> tuple[FloatArray, FloatArray, float, float]:
        """Return the same, from sums over the rewards of each item."""
        assert self._sums is not None
        if self._gram is None:
            rows = np.column_stack([self._points, self._targets])
            self._gram = rows.T @ (self._samples.weights(0.0)[:, None] * rows)
        scales = spread(dict(zip(self._item_columns, item_scales, strict=True)), self._item_columns)
        taken, log_det = self._sums.taken_away(scales)
        gram = self._gram - taken
        if self._intercept:
            total = max(gram[0, 0], _ROUNDING * self._n)
            log_det += math.log(total / self._n)
            gram = gram - np.outer(gram[:, 0], gram[0]) / total
        return *rooted(gram[1:, 1:], _ROUNDING), log_det

    def _in_units(self, sums: ItemSums) -> ItemSums:
        """Return sums with rewards as `_targets`."""
        shifted = sums.shifted(self._samples.mean() if self._intercept else 0.0)
        shifted.sums[:, :, -1] /= self.unit
        return shifted


def spread(scales: Mapping[str, float], columns: Mapping[str, slice]) -> FloatArray:
    """Return the scale of the group of each column, for groups that stand side by side."""
    sizes = [each.stop - each.start for each in columns.values()]
    return np.repeat([scales[group] for group in columns], sizes)


def _compressed(rows: FloatArray, targets: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """Return rows and targets with the same products, and the squares of the targets they lack.

    With AᵀA = VΛVᵀ the rows are Λ^½Vᵀ and the targets Λ^-½VᵀAᵀb.
    """
    n, dim = rows.shape
    if n <= dim:
        return rows, targets, 0.0
    values, vectors = np.linalg.eigh(rows.T @ rows)
    real = values > _ROUNDING * values.max(initial=0.0)
    roots, vectors = np.sqrt(values[real]), vectors[:, real]
    short = (vectors.T @ (rows.T @ targets)) / roots
    return (
        roots[:, None] * vectors.T,
        short,
        max(0.0, float(targets @ targets) - float(short @ short)),
    )
