"""What would each policy have earned? Off-policy evaluation of a log with propensities.

Of a decision r is the reward, p the propensity, w = π/p with the probability π that a policy gives
the chosen option, and q a model of rewards that was fitted to other decisions. Estimates are means
over decisions of

    direct method   E_π[q]                  IPS            w·r
    doubly robust   E_π[q] + w·(r − q)      clipped IPS    min(w, √n)·r

and Σwr/Σw, the self-normalised IPS. For the log of a policy that learned there is the stabilised
doubly robust estimate: a mean with weights h. There h and q are known before the decision, so that
the terms are differences of a martingale (Luedtke & van der Laan 2016; Hadad, Hirshberg, Zhan,
Wager & Athey 2021). Here 1/h² is the mean of all earlier w².
"""

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from halfseen import checks
from halfseen.agent.agent import Agent
from halfseen.errors import InvalidInputError
from halfseen.latent.policy import LatentUcb
from halfseen.lazy import new_axes
from halfseen.policies.base import Policy
from halfseen.seeding import stream
from halfseen.tools import logs
from halfseen.tools.logs import Log
from halfseen.tools.targets import UNIFORM, Encoded, Models, Target, is_model, replayed, target
from halfseen.values import BoolArray, FloatArray
from halfseen.values.decision import html_table, text_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEVEL = 0.95
"""Of intervals."""

THIN = 50.0
"""With fewer effective decisions than this, overlap is too thin for an estimate."""

FEWEST = 10
"""Smallest number of decisions in a log."""

LOGGED, REPLAY, DIRECT = "as logged", "rejection replay", "direct method"
IPS, SNIPS, CLIPPED = "IPS", "self-normalised IPS", "clipped IPS"
ROBUST, STABILISED = "doubly robust", "stabilised doubly robust"
WEIGHT = "mean weight"  # no estimate: it should be 1

_N_RESAMPLES = 1000
_MOST_GROUPS = 5000  # decisions are resampled in at most so many groups
_CHECK_LEVEL = 0.999  # of the check of propensities, which should raise few false alarms
_LEAST_SPREAD = 0.05  # of a resample, as a share of the variance: it may have lost what varies

Weighted = tuple[FloatArray, FloatArray]
"""Weights and terms of a mean over decisions; shape (n,) each."""


@dataclass(frozen=True)
class Evaluation:
    """The result of `evaluate`: what policies would have earned per decision.

    Attributes
    ----------
    rows : list of dict
        For each policy and estimator: "policy", "estimator", "value", "low", "high", the
        "effective" number of decisions, and "warning": "thin overlap", "propensities wrong", or
        None.
    notes : list of str
        Notes for the interpretation of the numbers.

    Examples
    --------
    >>> log = {"item": ["hat", "coat"] * 50, "propensity": [0.5] * 100, "reward": [0, 1] * 50}
    >>> result = evaluate(log, ["coat"])
    >>> [row["estimator"] for row in result.shown]
    ['as logged', 'doubly robust']
    """

    rows: list[dict[str, Any]]
    notes: list[str]

    @property
    def shown(self) -> list[dict[str, Any]]:
        """The rows that are printed: the log, and the preferred estimate of each policy."""
        best = {LOGGED, REPLAY, STABILISED}
        if not any(row["estimator"] == STABILISED for row in self.rows):
            best.add(ROBUST)
        return [row for row in self.rows if row["estimator"] in best]

    def _cells(self) -> list[list[str]]:
        """Return the table of `shown`, with its head."""
        rows = self.shown
        widths = [
            row["high"] - row["low"]
            for row in rows
            if row["high"] > row["low"] and row["warning"] is None
        ]
        digits = max(0, 1 - math.floor(math.log10(min(widths, default=1.0))))
        head = [
            "policy",
            "earns",
            f"{100 * LEVEL:g} % interval",
            "effective decisions",
            "estimator",
        ]
        cells = [head]
        for row in rows:
            value, low, high = (f"{row[name]:.{digits}f}" for name in ("value", "low", "high"))
            interval, by = f"{low} … {high}", row["estimator"]
            if row["warning"] is not None:
                interval, by = "–", f"{by}: {row['warning']}"
            value = "–" if math.isnan(row["value"]) else value
            cells.append([row["policy"], value, interval, f"{row['effective']:,.0f}", by])
        return cells

    def __str__(self) -> str:
        return "\n".join([text_table(self._cells()), *self.notes])

    def _repr_html_(self) -> str:
        return html_table(self._cells()) + "".join(
            f"<p>{html.escape(note)}</p>" for note in self.notes
        )

    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """Draw policies with their intervals, and what the log earned as a line.

        Returns the axes; needs matplotlib (extra `paper`).
        """
        logged, *rows = self.shown
        axes = new_axes(6.0, 1.2 + 0.3 * len(rows)) if axes is None else axes
        axes.axvspan(logged["low"], logged["high"], color="0.9")
        axes.axvline(logged["value"], color="0.4", linestyle="--", label="as logged")
        names = []
        for at, row in enumerate(rows):
            warning, width = row["warning"], row["high"] - row["value"]
            names.append(f"{row['policy']} ({warning})" if warning else row["policy"])
            if not warning:
                axes.errorbar(row["value"], at, xerr=width, fmt="o", capsize=3, color="tab:blue")
        axes.set_yticks(range(len(rows)), names)
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlabel(f"mean reward, {100 * LEVEL:g} % intervals")
        axes.legend(loc="best")
        return axes


def evaluate(
    log: Any,
    policies: Any = None,
    *,
    item: str = "item",
    propensity: str = "propensity",
    reward: str = "reward",
    context: str | Sequence[str] = (),
    offered: str | None = None,
    model: Any = None,
    adaptive: bool = False,
    seed: int = 0,
) -> Evaluation:
    """Estimate what policies would have earned on a log with one row per decision.

    Parameters
    ----------
    log : frame, list of dicts, dict of columns, or path
        In chronological order. Files are Parquet, CSV, or Vowpal Wabbit's dsjson; Parquet files,
        folders of them and frames of Dask may be larger than memory. The path or URL
        of an agent's database also works. For `agent.log()`, column names are not needed, and
        only first places are evaluated. Decisions without a reward are left out.
    policies : list, or dict of names, optional
        An item, which is chosen wherever it is offered; "uniform"; a function of the options (a
        list) and the context (a dict) that returns a probability for each option; an `Agent`, or a
        regressor or classifier of scikit-learn, which is trained on the earlier fifths of the log
        and chooses the largest estimate; a `Policy`, which learns from scratch, by rejection
        replay. By default "uniform" and `Agent()`.
    item, propensity, reward : str
        Columns of the chosen item, of the probability with which it was chosen, and of the reward.
    context : list of str
        Columns that describe the decision, not its options; or one column of dicts.
    offered : str, optional
        Column with the list of offered items, or of dicts with the item and its features. By
        default all items of the log were always offered.
    model : regressor or classifier, optional
        Reward model for the direct method and the doubly robust estimate, with scikit-learn's
        `fit` and `predict`. Its input has a column for each of the first 50 items, the features of
        the option, and the context; missing values are NaN. By default `LatentUcb()`.
    adaptive : bool
        Whether the logging policy learned from these rewards. If so, models are fitted to earlier
        decisions only, and there is a stabilised estimate.
    seed : int

    Raises
    ------
    InvalidInputError
        Names the column, the row or the policy, the value got, and the remedy.

    Examples
    --------
    >>> import numpy as np
    >>> random = np.random.default_rng(0)
    >>> item = random.choice(["hat", "coat"], size=1000, p=[0.8, 0.2])
    >>> log = {
    ...     "item": item,
    ...     "propensity": np.where(item == "hat", 0.8, 0.2),
    ...     "reward": (random.random(1000) < np.where(item == "hat", 0.1, 0.3)).astype(float),
    ... }
    >>> print(evaluate(log, ["uniform", "coat"]))
    policy   earns  95 % interval  effective decisions  estimator
    log      0.173  0.149 … 0.197  1,000                as logged
    uniform  0.241  0.204 … 0.277  640                  doubly robust
    coat     0.359  0.287 … 0.430  212                  doubly robust
    """
    checks.boolean("adaptive", adaptive)
    table = logs.read(
        log, item=item, propensity=propensity, reward=reward, context=context, offered=offered
    )
    n, adaptive = len(table), adaptive or table.is_agents
    if n < FEWEST:
        raise InvalidInputError(f"a log must have at least {FEWEST} decisions, got {n}")
    encoded, named = Encoded(table, item), _named(policies)
    learners = {name: each for name, each in named.items() if isinstance(each, Policy)}
    targets = {
        name: target(each, encoded, seed) for name, each in named.items() if name not in learners
    }
    model = LatentUcb() if model is None else model
    if not is_model(model):
        raise InvalidInputError(
            f"model must have fit and predict, as in scikit-learn, got {model!r}"
        )
    models = (Models.forward if adaptive else Models.crossed)(encoded, model, seed)
    logged, sums = _sums(encoded, models, targets, seed, adaptive)
    book = _Book(table, logged, adaptive)
    for name in named:
        if name in learners:
            rows, weights = replayed(learners[name], encoded, seed)
            found = Sums.of({REPLAY: (weights, table.reward[rows])}, weights, seed)
            book.add(name, found)
        else:
            book.add(name, sums[name])
            book.check(name, sums[name], targets[name].first)
    return Evaluation(book.rows, book.notes)


class Terms(NamedTuple):
    """What estimates of a policy are made of, for each decision; shape (n,) each.

    Attributes
    ----------
    rewards, weights : ndarray
    own, direct : ndarray
        The model's reward of the chosen option, and under the policy.
    as_logged : ndarray of bool
        Whether the policy leaves the decision as it was.
    """

    rewards: FloatArray
    weights: FloatArray
    own: FloatArray
    direct: FloatArray
    as_logged: BoolArray

    def after(self, first: int) -> "Terms":
        """Return the terms of later decisions."""
        return Terms(*[each[first:] for each in self])  # type: ignore[arg-type]

    def estimators(
        self, adaptive: bool, n: int | None = None, n_before: int = 0, squares_before: float = 0.0
    ) -> dict[str, Weighted]:
        """Return for each estimator the weights and terms of its mean.

        These decisions may be a part of n: then there are so many before them, with this Σw².
        """
        r, w = self.rewards, self.weights
        ones, n = np.ones(len(r)), len(r) if n is None else n
        robust = self.direct + w * (r - self.own)
        found = {
            ROBUST: (ones, robust),
            DIRECT: (ones, self.direct),
            IPS: (ones, w * r),
            SNIPS: (w, r),
            CLIPPED: (ones, np.minimum(w, math.sqrt(n)) * r),
        }
        if adaptive:
            earlier = squares_before + np.cumsum(w * w) - w * w
            found[STABILISED] = np.sqrt((n_before + np.cumsum(ones)) / (1.0 + earlier)), robust
        return found


class Sums:
    """Sums over groups of decisions, from which estimates and their intervals follow.

    Decisions come part by part, in order, and are not kept. Each is a group of its own, or in a
    random one of `_MOST_GROUPS`.

    Attributes
    ----------
    n : int
        Decisions in all.
    weight, squares, reward, n_as_logged : float
        Sums of w, of w² and of rewards, and decisions that a policy leaves as they were.
    """

    def __init__(self, n: int, seed: int) -> None:
        self.n, self._seed, self._n_added = n, seed, 0
        self._n_groups = min(n, _MOST_GROUPS)
        self._random = stream(seed, "groups")
        self._sums: dict[str, FloatArray] = {}
        self.weight = self.squares = self.reward = self.n_as_logged = 0.0

    @classmethod
    def of(cls, estimators: Mapping[str, Weighted], weights: FloatArray, seed: int) -> "Sums":
        """Return the sums of all decisions at once."""
        sums = cls(len(weights), seed)
        sums.add(estimators, weights)
        return sums

    def add(self, estimators: Mapping[str, Weighted], weights: FloatArray) -> None:
        """Add the next decisions: the weights and terms of each estimator, and weights w."""
        n, n_groups = len(weights), self._n_groups
        groups = self._n_added + np.arange(n)
        if self.n > n_groups:
            groups = self._random.integers(n_groups, size=n)
        for name, (each, terms) in estimators.items():
            new = [np.bincount(groups, column, n_groups) for column in (each * terms, each)]
            self._sums[name] = np.add(self._sums.get(name, 0.0), new)
        self._n_added += n
        self.weight += float(weights.sum())
        self.squares += float(weights @ weights)

    def add_terms(self, terms: Terms, adaptive: bool) -> None:
        """Add the next decisions under a policy, whose mean weight is added as well."""
        before = self._n_added, self.squares
        weights = {WEIGHT: (np.ones(len(terms.weights)), terms.weights)}
        self.add(terms.estimators(adaptive, self.n, *before) | weights, terms.weights)
        self.reward += float(terms.rewards.sum())
        self.n_as_logged += int(terms.as_logged.sum())

    @property
    def estimators(self) -> list[str]:
        """The estimators that have been added."""
        return [name for name in self._sums if name != WEIGHT]

    @property
    def effective(self) -> float:
        """The effective sample size (Σw)²/Σw²."""
        return self.weight**2 / self.squares if self.squares else 0.0

    def intervals(
        self, level: float, names: Sequence[str] | None = None
    ) -> dict[str, tuple[float, float, float]]:
        """Return weighted means with their bootstrap intervals: value, low, high.

        Studentised, because weights are skewed: the bootstrap gives a quantile of the absolute
        error divided by its standard error.
        """
        names, n_groups = list(names or self._sums), self._n_groups
        columns, values = [], []
        for products, weights in map(self._sums.__getitem__, names):
            total = weights.sum()
            values.append(float(products.sum() / total))
            columns.append((products - values[-1] * weights) * (n_groups / total))
        sums, random = np.column_stack(columns), stream(self._seed, "bootstrap")
        sums -= sums.mean(axis=0)
        errors = np.sqrt((sums * sums).mean(axis=0) / n_groups)
        ratios = np.empty((_N_RESAMPLES, len(columns)))
        for at in range(_N_RESAMPLES):
            counts = np.bincount(random.integers(n_groups, size=n_groups), minlength=n_groups)
            means, squares = counts @ sums / n_groups, counts @ (sums * sums) / n_groups
            spread = np.maximum(squares - means * means, _LEAST_SPREAD * errors**2 * n_groups)
            ratios[at] = means / np.sqrt(np.maximum(spread / n_groups, 1e-300))
        widths = np.quantile(np.abs(ratios), level, axis=0) * errors
        lows, highs = values - widths, values + widths
        found = zip(values, lows.tolist(), highs.tolist(), strict=True)
        return dict(zip(names, found, strict=True))


def _sums(
    encoded: Encoded, models: Models, targets: Mapping[str, Target], seed: int, adaptive: bool
) -> tuple[Sums, dict[str, Sums]]:
    """Apply policies and models to a log, part by part; return the log's own sums, and theirs."""
    log = encoded.log
    n = len(log)
    sums = {name: Sums(n - each.first, seed) for name, each in targets.items()}
    logged = Sums(n, seed)
    for part in log.parts():
        rewards, propensities = log.reward[part.rows], log.propensity[part.rows]
        ones, values = np.ones(len(part.rows)), models.predict(part)
        logged.add({LOGGED: (ones, rewards)}, ones)
        own = values[part.is_chosen]
        for name, each in targets.items():
            first = max(0, each.first - int(part.rows[0]))
            if first >= len(part.rows):
                continue
            law = each.law(part)
            mine, expected = law[part.is_chosen], np.add.reduceat(law * values, part.starts)
            stays = np.isnan(mine)
            weights = np.where(stays, 1.0, mine / propensities)
            direct = np.where(stays, own, expected)
            terms = Terms(rewards, weights, own, direct, stays)
            sums[name].add_terms(terms.after(first), adaptive)
    return logged, sums


class _Book:
    """The rows and notes of an evaluation."""

    def __init__(self, log: Log, logged: Sums, adaptive: bool) -> None:
        self.rows: list[dict[str, Any]] = []
        self.notes: list[str] = []
        if log.n_without_reward:
            self.notes.append(f"Decisions without a reward are left out: {log.n_without_reward:,}.")
        if adaptive:
            self.notes.append(
                "The policy that made these decisions learned from them, so they are not "
                "independent: only intervals of the stabilised estimate are valid."
            )
        self.add("log", logged)

    def add(self, name: str, sums: Sums) -> None:
        """Add a row for each estimator of a policy."""
        effective, warning = sums.effective, None
        if effective < THIN and LOGGED not in sums.estimators:
            warning = "thin overlap"
            self.notes.append(
                f"Overlap is too thin to evaluate {name!r}: it has {effective:.0f} effective "
                f"decisions, and at least {THIN:.0f} are needed."
            )
        known = [key for key in sums.estimators if effective or key == DIRECT]
        found = sums.intervals(LEVEL, known) if sums.n and known else {}
        for key in sums.estimators:
            value, low, high = found.get(key, (math.nan,) * 3)
            row = {"policy": name, "estimator": key, "value": value, "low": low, "high": high}
            self.rows.append(row | {"effective": effective, "warning": warning})

    def check(self, name: str, sums: Sums, first: int) -> None:
        """Add notes on propensities, and on decisions that a policy does not make."""
        mean, low, high = sums.intervals(_CHECK_LEVEL, [WEIGHT])[WEIGHT]
        if sums.effective >= THIN and not low <= 1.0 <= high:
            for row in self.rows:
                if row["policy"] == name and row["estimator"] != LOGGED:
                    row["warning"] = "propensities wrong"
            self.notes.append(
                f"Propensities look wrong: the mean weight of {name!r} is {mean:.3f} "
                f"({low:.3f} … {high:.3f}) and should be 1. The logged probabilities or the "
                "offered options are wrong, or some options are never chosen."
            )
        if sums.n_as_logged:
            self.notes.append(
                f"{name!r} is not offered in {sums.n_as_logged / sums.n:.0%} of the decisions; "
                "there the logged choice stands."
            )
        if first:
            self.notes.append(
                f"{name!r} is trained on earlier decisions and evaluated on the last "
                f"{sums.n:,}, in which the log earned {checks.significant(sums.reward / sums.n)}."
            )


def _named(policies: Any) -> dict[str, Any]:
    """Return policies by name."""
    policies = [UNIFORM, Agent()] if policies is None else policies
    if isinstance(policies, Mapping):
        return {str(name): policy for name, policy in policies.items()}
    if isinstance(policies, str) or not isinstance(policies, Sequence):
        raise InvalidInputError(f"policies must be a list, or a dict of names, got {policies!r}")
    named: dict[str, Any] = {}
    for policy in policies:
        name = str(policy)
        if not isinstance(policy, logs.ITEMS):
            name = getattr(policy, "__name__", type(policy).__name__)
        if name in named:
            raise InvalidInputError(f"two policies are called {name!r}: pass a dict with names")
        named[name] = policy
    return named
