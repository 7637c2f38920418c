"""What can be evaluated on a log: policies as probabilities, learners, and models of rewards."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.agent.agent import Agent
from halfseen.errors import InvalidInputError
from halfseen.frames import Encoder, Reader, Rows
from halfseen.latent.policy import LatentUcb
from halfseen.policies.abilities import UsesContext, UsesItems
from halfseen.policies.base import Policy
from halfseen.seeding import stream
from halfseen.tools.logs import IntArray, Log, Part
from halfseen.values import BoolArray, FloatArray

UNIFORM = "uniform"

N_FOLDS = 3
"""Parts of a log; the model for each is fitted to the others."""

N_BLOCKS = 5
"""Parts of a log in time; the model for each is fitted to the earlier ones."""

MOST_FITTED = 10_000
"""Decisions to which a model is fitted; of more, a random sample."""

MOST_LABELS = 50
"""Items that have their own feature in a regression."""

_BLOCK = 1_000_000
_LEAST_PROPENSITY = 0.05  # quantile of the propensities that replay brings all decisions down to

Predict = Callable[[IntArray, FloatArray | None], FloatArray]
"""Returns rewards of options (n,) with contexts (n, context_dim)."""


class Encoded:
    """A log as numbers.

    Attributes
    ----------
    log : Log
    table : ndarray, shape (n_options, dim)
        Features of all options; NaN where hidden.
    numbers : ndarray of int, shape (n_options,)
        A number for each item.
    features : ndarray, shape (n_options, n)
        The same for models that do not know items: the first items have their own columns.
    """

    def __init__(self, log: Log, item: str) -> None:
        rows = Rows(log.items, (), [])
        if isinstance(log.options[0], Mapping):
            rows = Reader(id=item, unique=False).read(log.options)
        self.log, self.numbers = log, np.array(rows.numbers())
        self.table: FloatArray = Encoder().encode(rows, dim=1).slate.table
        places = {each: at for at, each in enumerate(dict.fromkeys(log.items))}
        own = np.array([places[each] for each in log.items])
        labels = own[:, None] == np.arange(min(len(places), MOST_LABELS))
        seen = self.table[:, ~np.isnan(self.table).all(axis=0)]
        self.features: FloatArray = np.hstack([labels, seen])

    def fitted(self, model: Any, is_in: BoolArray, random: np.random.Generator) -> Predict:
        """Return a model fitted to the rewards of some decisions."""
        rows = _sample(is_in, random)
        log, model = self.log, deepcopy(model)
        options, contexts, rewards = log.chosen[rows], log.contexts(rows), log.reward[rows]
        if isinstance(model, LatentUcb):
            return self._latent(model, options, contexts, rewards)

        def design(options: IntArray, contexts: FloatArray | None) -> FloatArray:
            rows = self.features[options]
            return rows if contexts is None else np.hstack([rows, contexts])

        def predict(options: IntArray, contexts: FloatArray | None) -> FloatArray:
            values = np.asarray(_expected(model, design(options, contexts)), dtype=np.float64)
            if values.shape != options.shape or not np.isfinite(values).all():
                raise InvalidInputError(
                    f"a model must predict a finite number for each row, got {values!r:.60}"
                )
            return values

        model.fit(design(options, contexts), rewards)
        if hasattr(model, "classes_") and not hasattr(model, "predict_proba"):
            raise InvalidInputError(
                "a classifier must have predict_proba, because labels do not rank options, got "
                f"{model!r:.60}: use one that has it, or a regressor"
            )
        return predict

    def _latent(
        self, policy: LatentUcb, options: IntArray, contexts: FloatArray | None, rewards: FloatArray
    ) -> Predict:
        table, numbers = self.table, self.numbers
        policy.learn_logged(table[options], rewards, contexts=contexts, items=numbers[options])
        policy.fit_models()
        return lambda options, contexts: policy.predict(
            table[options], contexts=contexts, items=numbers[options]
        )


def _expected(model: Any, design: FloatArray) -> Any:
    """Return the rewards that a model expects: of a classifier the mean of its classes."""
    if hasattr(model, "classes_"):
        return model.predict_proba(design) @ np.asarray(model.classes_, dtype=np.float64)
    return model.predict(design)


def _sample(is_in: BoolArray, random: np.random.Generator) -> IntArray:
    """Return which decisions are in, in order; of many a random sample."""
    n, before = int(np.count_nonzero(is_in)), 0
    if n <= MOST_FITTED:
        return np.flatnonzero(is_in)
    wanted, found = np.sort(random.choice(n, MOST_FITTED, replace=False)), []
    for first in range(0, len(is_in), _BLOCK):  # all places at once take much memory
        places = first + np.flatnonzero(is_in[first : first + _BLOCK])
        start, end = np.searchsorted(wanted, [before, before + len(places)])
        found.append(places[wanted[start:end] - before])
        before += len(places)
    return np.concatenate(found)


class Models(NamedTuple):
    """Models of rewards, each for a part of the log and fitted to others.

    Attributes
    ----------
    of : ndarray of int, shape (n,)
        Which model is for which decision.
    models : list
        None predicts 0.
    """

    of: NDArray[np.int8]
    models: list[Predict | None]

    @classmethod
    def crossed(cls, encoded: Encoded, model: Any, seed: int) -> "Models":
        """Fit a model for each random part of the log to the others."""
        random, n = stream(seed, "folds"), len(encoded.log)
        of = np.tile(np.arange(N_FOLDS, dtype=np.int8), n // N_FOLDS + 1)[:n]
        random.shuffle(of)
        return cls(of, [encoded.fitted(model, of != fold, random) for fold in range(N_FOLDS)])

    @classmethod
    def forward(cls, encoded: Encoded, model: Any, seed: int) -> "Models":
        """Fit a model for each block of time to the earlier ones; there is none for the first."""
        random, n = stream(seed, "blocks"), len(encoded.log)
        ends = [-(-block * n // N_BLOCKS) for block in range(N_BLOCKS + 1)]
        of = np.repeat(np.arange(N_BLOCKS, dtype=np.int8), np.diff(ends))
        later = range(1, N_BLOCKS)
        return cls(of, [None, *(encoded.fitted(model, of < block, random) for block in later)])

    def predict(self, part: Part) -> FloatArray:
        """Return the expected reward of each pair."""
        values, of = np.zeros(len(part.row)), self.of[part.rows][part.row]
        for at in np.unique(of):
            model, mine = self.models[at], of == at
            if model is None:
                continue
            if part.contexts is None:  # few different options
                options, back = np.unique(part.option[mine], return_inverse=True)
                values[mine] = model(options, None)[back]
            else:
                values[mine] = model(part.option[mine], part.contexts[part.row[mine]])
        return values


class Target(NamedTuple):
    """A policy whose probabilities are known.

    Attributes
    ----------
    law : callable
        Returns a probability for each pair of a part; NaN where the decision stays as logged.
    first : int
        The first decision for which it is known.
    """

    law: Callable[[Part], FloatArray]
    first: int = 0


def is_model(model: Any) -> bool:
    """Return whether rewards can be learned by it: `LatentUcb`, regressor or classifier."""
    has_both = hasattr(model, "fit") and hasattr(model, "predict")
    return isinstance(model, LatentUcb) or (has_both and not isinstance(model, type))


def target(policy: Any, encoded: Encoded, seed: int) -> Target:
    """Return the probabilities of a policy: an item, "uniform", a function, or what is trained."""
    if isinstance(policy, Agent):
        policy = LatentUcb() if policy.policy is None else policy.policy
        if not isinstance(policy, LatentUcb):
            raise InvalidInputError(
                f"an agent must have the policy LatentUcb to be trained on a log, got {policy!r}: "
                "pass the policy itself, which is replayed"
            )
    if is_model(policy):
        models = Models.forward(encoded, policy, seed)
        return Target(lambda part: _greedy(part, models), int(np.argmax(models.of > 0)))
    if policy == UNIFORM:
        return Target(lambda part: 1.0 / np.bincount(part.row)[part.row])
    if callable(policy) and not isinstance(policy, type):
        return Target(lambda part: _called(policy, encoded.log, part))
    is_item = np.array([str(each) == str(policy) for each in encoded.log.items])
    if not is_item.any():
        known = ", ".join(map(repr, encoded.log.items[:10]))
        raise InvalidInputError(
            "a policy must be an item of the log, 'uniform', a function, an Agent or a Policy, got "
            f"{policy!r}: items are {known}"
        )
    return Target(lambda part: _always(is_item, part))


def _greedy(part: Part, models: Models) -> FloatArray:
    """Return equal probabilities for the options of each decision with the largest estimate."""
    values, row = models.predict(part), part.row
    is_best = values == np.maximum.reduceat(values, part.starts)[row]
    law: FloatArray = is_best / np.bincount(row, is_best)[row]
    return law


def _always(is_item: BoolArray, part: Part) -> FloatArray:
    """Return 1 for an item; NaN where it is not offered."""
    hits, row = is_item[part.option], part.row
    with np.errstate(invalid="ignore"):
        law: FloatArray = hits / np.bincount(row, hits)[row]
    return law


def _called(function: Callable[..., Any], log: Log, part: Part) -> FloatArray:
    """Return what a function says of the options and the context of each decision."""
    found, contexts = [], log.context_dicts(part.rows)
    for row, places, context in zip(part.rows, part.sets(), contexts, strict=True):
        options = [log.options[place] for place in places]
        answer = function(options, context)
        try:
            law = np.asarray(answer, dtype=np.float64)
        except (TypeError, ValueError):
            law = np.array(np.nan)
        if law.shape != (len(options),) or not (law.min() >= 0.0 and abs(law.sum() - 1.0) < 1e-6):
            raise InvalidInputError(
                f"a policy must return {len(options)} probabilities that add up to 1, one for each "
                f"option, got {answer!r:.60} for row {row}"
            )
        found.append(law)
    return np.concatenate(found)


def replayed(policy: Policy, encoded: Encoded, seed: int) -> tuple[IntArray, FloatArray]:
    """Let a learner choose along the log; return the decisions that it learns, and their weights.

    A decision counts if the learner chooses what was chosen, and with probability c/p, where c is
    a small quantile of the propensities: then all options are equally likely to count (Li, Chu,
    Langford & Wang 2011). The few decisions with p < c weigh c/p. Others never happened.
    """
    log, policy = encoded.log, deepcopy(policy)
    propensity = log.propensity[:]
    least = float(np.quantile(propensity, _LEAST_PROPENSITY))
    kept = stream(seed, "replay").random(len(log)) * propensity < least
    uses_items = isinstance(policy, UsesItems)
    features = encoded.table if uses_items else encoded.features
    accepted = []
    for part in log.parts():
        chosen, rewards = log.chosen[part.rows], log.reward[part.rows]
        for at, (row, options) in enumerate(zip(part.rows.tolist(), part.sets(), strict=True)):
            given: dict[str, Any] = {}
            if uses_items:
                given["items"] = encoded.numbers[options]
            if part.contexts is not None and isinstance(policy, UsesContext):
                given["context"] = part.contexts[at]
            trial = policy.fork()
            decision = trial.choose(features[options], **given)
            if kept[row] and options[decision.arm] == chosen[at]:
                trial.learn(decision, float(rewards[at]))
                accepted.append(row)
                policy = trial
    rows = np.array(accepted, dtype=np.intp)
    return rows, np.maximum(1.0, least / propensity[rows])
