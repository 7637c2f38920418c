"""The policy without settings: a latent model of half-seen arms, and one model of their rewards.

In each round the arm with the largest score is chosen,

    score = estimate + √((α·deviation of φ̃'θ)² + (α_item·deviation of c'δ_i)²),

with α_item = .375·`width_scale`·κ·ν·√(2 log t) and α = max(κ·`width_scale`, α_item), where ν is the
share of all items that the round offers. κ = (1 + ρη)/2 is less if less of what is learned about an
arm will be useful again: ρ is the share of arms that had been offered before, and η the share of
differences between arms that does not depend on contexts.

In rounds 2, 3, 4, 5, 7, 9, … an epoch opens: models are fitted anew (`epoch`).
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from halfseen import checks
from halfseen.errors import ArchiveError, InvalidSettingError
from halfseen.factors.model import HalfSeenRows
from halfseen.latent import explanation
from halfseen.latent.epoch import Epoch, LatentRecord, is_informative
from halfseen.latent.groups import ALL_GROUPS
from halfseen.latent.history import DEFAULT_MEMORY, History, arms_kept
from halfseen.latent.offered import OfferedRows, Sample
from halfseen.latent.pending import IN_WIDTHS, Pending, PendingField
from halfseen.latent.plausible import n_implausible
from halfseen.latent.reward_model import Candidates, RewardModel
from halfseen.latent.row_model import RowModel
from halfseen.latent.saving import HISTORY, RECORD, EpochField
from halfseen.latent.settings import Settings
from halfseen.latent.surprise import SURPRISE, Surprise
from halfseen.linear.drawing import drawn, inverse_gap, inverse_gap_rate
from halfseen.linear.history import LARGEST_GROWTH
from halfseen.params import choice, custom, flag, integer, real
from halfseen.policies.abilities import (
    AwaitsRewards,
    Draws,
    Explains,
    Exploits,
    Grows,
    Refits,
    Reports,
    UsesContext,
    UsesItems,
)
from halfseen.policies.base import Policy
from halfseen.policies.optimism import EXPLORATIONS, scale_param
from halfseen.policies.registry import register_policy
from halfseen.state import Each, Levels, Maybe, Part, Value, Whole
from halfseen.values import Choice, FloatArray, Note, Slate
from halfseen.values.reasons import Groups, Reasons
from halfseen.values.rows import NO_ITEM, item_keys, widened_rows

INVERSE_GAP = "inverse-gap"

WIDTH_SCALE = 2.0
"""Chosen, like `LatentUcb._item_share`, by benchmarks/choose_defaults.py, on worlds and seeds that
no study reports."""

# Records of this many epochs are kept.
_LONGEST_LOG = 1000
# An epoch opens so many rounds after the first context.
_SOON = 8
# The model of widths is made anew when it has so many times as many rows as rewards are pending.
_MOST_FORGOTTEN = 1.1


class _Schedule(NamedTuple):
    """When the next epoch opens.

    Attributes
    ----------
    next_due : int
        The round after which one is due.
    context_since : int
        Round before the first context.
    """

    next_due: int = 1
    context_since: int = 0

    def next(self, round: int, growth: float, longest: float) -> "_Schedule":
        """Return the schedule after an epoch that starts in a round."""
        length = min((growth - 1.0) * round, longest)
        if self.context_since:  # it came late: what it means is learned soon
            since = round - self.context_since
            length = min(length, max(_SOON, (growth - 1.0) * since))
        return self._replace(next_due=round - 1 + max(1, math.ceil(length)))


@register_policy
class LatentUcb(
    Explains,
    Exploits,
    Grows,
    UsesContext,
    UsesItems,
    AwaitsRewards,
    Refits,
    Reports,
    Draws,
    Policy,
):
    """Optimism in a latent factor model of half-seen arms; needs no settings.

    - **Arms**: x = μ + Wz + ε, fitted by maximum likelihood to the seen entries of all offered
      arms, played or not; the evidence chooses the number of latent coordinates z.
    - **Rewards**: intercept + θ₁'z + θ₂'x̂ + θ₃'(mask − share seen) + effect of the item, where x̂ is
      the arm with hidden entries imputed, and an item is an arm that returns. Each part has its
      own prior variance, which the evidence chooses.
    - **Choice**: the largest estimate plus a multiple of its posterior deviation. While all rewards
      are equal, arms are chosen at random.

    A context adds its own latent coordinates, filled entries and mask, their products with those of
    the arms, and coefficients that differ by item. Features and scales are frozen in epochs that
    start in rounds 2, 3, 4, 5, 7, 9, …; coefficients learn every reward. Choices do not depend on
    units and offsets of features and rewards, nor on the order of features (with "thompson": in
    distribution). A decision has the exact probabilities of all arms.

    Examples
    --------
    >>> import numpy as np
    >>> policy = LatentUcb()
    >>> random = np.random.default_rng(0)
    >>> directions = random.normal(size=(2, 12))
    >>> for _ in range(20):
    ...     arms = 5.0 + random.normal(size=(6, 2)) @ directions
    ...     decision = policy.choose(np.where(random.random(arms.shape) < 0.5, arms, np.nan))
    ...     policy.learn(decision, float(arms[decision.arm].sum()))
    >>> policy.dim, policy.current_rank
    (12, 2)
    """

    _item_share: ClassVar[float] = 0.375
    """Share of `width_scale`, times √(2 log t), for effects of items that are always offered."""

    STATE: ClassVar = {
        "_first_levels": Levels("dim"),
        "_context_first_levels": Levels("context_dim"),
        "_arms": Part(),
        "_contexts": Part(),
        "_history": HISTORY,
        "_pending": PendingField(),
        "_epoch": Maybe(EpochField()),
        "_log": Each(RECORD),
        "_surprise": SURPRISE,
        "_schedule": Value(
            _Schedule,
            next_due=Whole(),
            context_since=Whole(),
        ),
    }

    needs: ClassVar[tuple[str, ...]] = ("seed",)

    dim: int | None = integer(  # type: ignore[assignment]
        default=None,
        low=1,
        high=checks.LARGEST_SIZE,
        doc="Number of features; by default taken from the first slate.",
    )
    rank: int | None = integer(
        default=None,
        low=0,
        doc="""Number of latent coordinates. At most one fewer than features are used, which
    `warnings` says, and still fewer as long as there are too few entries. By default the evidence
    chooses.""",
    )
    through_origin: bool = flag(
        default=False,
        doc="""Whether all features and rewards are known to have mean zero, as in the paper: then
    there is no mean and no intercept.""",
    )
    groups: Any = custom(
        default=ALL_GROUPS,
        check=lambda name, value: _checked_groups(name, value),
        plain=list,
        kind="sequence of str",
        doc="""Groups of columns in the reward model: "latent", "filled", "mask", "item", "context".
    Groups that carry no information are left out in any case.""",
    )
    exploration: str = choice(
        default="ucb",
        words=(*EXPLORATIONS, INVERSE_GAP),
        doc="""Optimism, posterior sampling, no exploration, or inverse-gap weighting (SquareCB):
    the lower an estimate, the less likely the arm.""",
    )
    uniform_share: float = real(
        default=0.0,
        low=0.0,
        high=1.0,
        doc="Share of the rounds in which every arm is chosen with the same probability.",
    )
    width_scale: float = scale_param(
        WIDTH_SCALE, doc='Multiple of the posterior deviation in a score, for "ucb".'
    )
    growth: float = real(
        default=1.25,
        low=1.0,
        high=LARGEST_GROWTH,
        low_open=True,
        doc="Factor between epoch starts.",
    )
    half_life: float | None = real(
        default=None,
        low=1.0,
        high=1e15,
        doc="""Age in rounds at which arms and rewards have half their weight, for rewards that
    change over time; at twice that age they have a sixteenth. By default all have weight 1.""",
    )
    refit: str = choice(
        default="inline",
        words=("inline", "background"),
        doc="""How an agent fits the models of the next epoch: in the round that opens it, which is
    reproducible, or in a thread, while the current epoch continues. A policy without an agent
    always fits them in the round.""",
    )
    memory_bytes: int = integer(
        default=DEFAULT_MEMORY,
        low=1,
        doc="""Memory for offered and played arms. What does not fit is sampled or summarised; with
    a half-life, old rewards are forgotten.""",
    )
    seed: int = integer(
        default=0, low=0, doc="Seed of the sample of arms, and of random choices and draws."
    )

    def setup(self) -> None:
        """Start without data; without a dimension, wait for the first slate."""
        self._first_levels: dict[int, int] = {}
        # A context may be known before the first slate, with which everything starts anew.
        self._context_first_levels: dict[int, int] = self.__dict__.get("_context_first_levels", {})
        self._epoch: Epoch | None = None
        self._log: tuple[LatentRecord, ...] = ()
        self._schedule = _Schedule()
        self._surprise = Surprise()
        dim = self.dim or 1
        if self.dim is not None and self.rank is not None:
            checks.integer("rank", self.rank, 0, self.dim)
        self._arms = self._empty_sample(dim, self._n_kept(dim, self.context_dim))
        most = arms_kept(max(1, self.context_dim), self.memory_bytes)
        self._contexts = self._empty_sample(self.context_dim, most)
        self._history = History.empty(dim, self.context_dim)
        self._pending = Pending.nothing()

    def _empty_sample(self, dim: int, max_rows: int) -> Sample:
        recent = self.half_life is not None
        return Sample(dim, max_rows=max_rows, seed=self.seed, recent=recent)

    @property
    def epoch_log(self) -> tuple[LatentRecord, ...]:
        """One record for each epoch opened so far."""
        return (*self._log, *(() if self._epoch is None else (self._epoch.record,)))

    @property
    def current_rank(self) -> int | None:
        """Number of latent coordinates in the current epoch; None before the first one."""
        return None if self._epoch is None else self._epoch.record.rank

    def diagnostics(self) -> dict[str, Any]:
        """Return ranks of all epochs, and noise and scales of the last one."""
        log = self.epoch_log
        return {
            "epoch_starts": [record.round for record in log],
            "epoch_ranks": [record.rank for record in log],
            "noise_scale": log[-1].noise_scale if log else None,
            "scales": log[-1].scales if log else {},
            "n_items": log[-1].n_items if log else 0,
        }

    def warnings(self) -> tuple[str, ...]:
        """Say so if rewards are no longer what the model expects, or the rank is too large."""
        found = []
        if self.rank is not None and self.dim is not None and 0 < self.rank >= self.dim:
            found.append(
                f"rank is {self.rank}, and {self.dim} features allow {self.dim - 1}: that is used "
                "until there are more"
            )
        if self._surprise.is_large:
            found.append(
                f"squared errors of estimates are {self._surprise.ratio:.1f} times as large as "
                "usual: if tastes have changed, use LatentUcb(half_life=…) to give old rewards "
                "less weight"
            )
        return tuple(found)

    # Choosing

    def prepare(self, slate: Slate) -> None:
        """Open an epoch if one is due, and keep the slate for the next one."""
        self.refit_if_due()
        self._compact_if_full()
        self.collect(slate)
        if self._epoch is not None and self._epoch.width_model is None and self._pending.n:
            self._epoch = self._epoch._replace(width_model=self._width_model)

    def decide(self, slate: Slate) -> Choice:
        """Choose by the models of the current epoch."""
        return self._choice(slate, self.exploration, self.uniform_share)

    def exploit(self, slate: Slate) -> Choice:
        """Choose the largest estimate; at random while all rewards are equal."""
        return self._choice(slate, "greedy", 0.0)

    def _choice(self, slate: Slate, exploration: str, share: float) -> Choice:
        model, epoch = self._model, self._epoch
        if model is None or epoch is None:
            return self._at_random(slate)
        arms, scores = self._scored(model, slate)
        arm, probabilities = _best(slate, scores[0]), None
        if exploration != "ucb":
            arm, probabilities = self._explored(model, slate, arms, scores, exploration)
        if share:
            arm, probabilities = self._shared(slate, scores[1], arm, probabilities, share)
        return Choice(arm, scores, epoch.record.epoch, probabilities)

    @property
    def _model(self) -> RewardModel | None:
        """The reward model; None while all rewards are equal."""
        return None if self._epoch is None else self._epoch.reward_model

    def _width_factors(self, slate: Slate) -> tuple[float, float]:
        """Return the multiples α and α_item of deviations of the regression and of item effects.

        To know an arm better pays off the more often it comes back. If all arms come in every
        round, multiples grow like √(2 log t), as in UCB: a constant one may stay with the wrong
        arm. With arms that never return, or whose differences depend on contexts alone, the
        multiple is halved: an error about one arm is not repeated.
        """
        epoch, model = self._epoch, self._model
        assert epoch is not None
        assert model is not None
        arms = epoch.arms
        kappa = 0.5 * (1.0 + arms.recurrence * model.constant_share)
        offered_share = min(1.0, slate.n_arms / arms.n_items) if arms.n_items else 0.0
        often = offered_share * math.sqrt(2.0 * math.log(self.round + 1.0))
        item_alpha = self._item_share * self.width_scale * kappa * often
        return max(self.width_scale * kappa, item_alpha), item_alpha

    def _scored(self, model: RewardModel, slate: Slate) -> tuple[Candidates, FloatArray]:
        """Return the arms, and scores (3, n) with the widths once the pending rewards are known."""
        context, factors = self._context_row(slate), self._width_factors(slate)
        arms = model.candidates(slate, context)
        scores = model.score(arms, *factors)
        widths = self._width_model
        if widths is not None:
            scores[2] = widths.score(widths.candidates(slate, context), *factors)[2]
            np.add(scores[1], scores[2], out=scores[0])
        return arms, scores

    def _context_row(self, slate: Slate) -> FloatArray:
        """Return the context of a slate, shape (1, context_dim); all hidden if it has none."""
        return self._hidden_context if slate.context is None else slate.context[None]

    @property
    def _hidden_context(self) -> FloatArray:
        return np.full((1, self.context_dim), np.nan)

    def _explored(
        self,
        model: RewardModel,
        slate: Slate,
        arms: Candidates,
        scores: FloatArray,
        exploration: str,
    ) -> tuple[int, FloatArray | None]:
        """Return the arm that another exploration plays, and probabilities; overwrite widths.

        Each round has its own random streams, so there is no stream state to save.
        """
        probabilities, keys = None, item_keys(slate.table, slate.items)
        random = self.stream(slate, exploration)
        scores[2] = model.draw(arms, random) if exploration == "thompson" else 0.0
        np.add(scores[1], scores[2], out=scores[0])
        arm = _best(slate, scores[0])
        if exploration == "thompson":
            probabilities = model.win_shares(keys, arms, scores[1], arm, random)
        elif exploration == INVERSE_GAP:
            rate = inverse_gap_rate(slate.n_arms, self.round + 1, model.scales.n_effective)
            probabilities = inverse_gap(scores[1] / model.scales.noise_scale, rate)
            arm = drawn(probabilities, scores[1], keys, random)
        return arm, probabilities

    def _shared(
        self,
        slate: Slate,
        estimates: FloatArray,
        arm: int,
        probabilities: FloatArray | None,
        share: float,
    ) -> tuple[int, FloatArray]:
        """Return arm and probabilities if a share of the rounds is uniform."""
        uniform = np.full(slate.n_arms, 1.0 / slate.n_arms)
        probabilities = np.eye(slate.n_arms)[arm] if probabilities is None else probabilities
        if self.stream(slate, "share").random() < share:
            keys = item_keys(slate.table, slate.items)
            arm = drawn(uniform, estimates, keys, self.stream(slate, "uniform"))
        return arm, (1.0 - share) * probabilities + share * uniform

    def _at_random(self, slate: Slate) -> Choice:
        """Choose every arm with the same probability.

        The arms are sorted by their size and item first, so that neither their order nor units,
        offsets or the order of features matter.
        """
        table = slate.table
        latent = (
            HalfSeenRows(table).empty_model() if self._epoch is None else self._epoch.arms.factors
        )
        sizes = np.nansum(latent.residuals(table[:, : latent.dim]) ** 2, axis=1)
        place = self.stream(slate, "uniform").integers(slate.n_arms)
        items = np.zeros(slate.n_arms) if slate.items is None else slate.items
        arm = int(np.lexsort((items, sizes))[place])
        probabilities = np.full(slate.n_arms, 1.0 / slate.n_arms)
        return Choice(
            arm, np.zeros((3, slate.n_arms)), self.latest_epoch, probabilities=probabilities
        )

    def predict(self, options: Any, *, contexts: Any = None, items: Any = None) -> FloatArray:
        """Return the expected reward of each option, shape (n,).

        Parameters
        ----------
        options : Slate or array_like, shape (n, dim)
            NaN where hidden.
        contexts : array_like, shape (n, context_dim), optional
            A row for each option; by default all hidden.
        items : array of int, shape (n,), optional

        While all rewards are equal, that reward is expected; 0 before the first one.

        Examples
        --------
        >>> policy = LatentUcb()
        >>> policy.learn_logged([[0.0], [1.0], [2.0]], [5.0, 5.0, 5.0])
        >>> policy.predict([[4.0], [float("nan")]]).tolist()
        [5.0, 5.0]
        """

        def expected(slate: Slate) -> FloatArray:
            rows, model = slate.contexts(contexts), self._model
            if rows is not None:
                self._check_context(rows.shape[1])
            if model is None:
                rewards = self._history.rows.rewards
                return np.full(slate.n_arms, rewards[0] if len(rewards) else 0.0)
            arms = model.candidates(slate, self._hidden_context if rows is None else rows)
            estimates: FloatArray = model.score(arms, 0.0, 0.0)[1]
            return estimates

        return self._ask(expected, options, None, items)

    # Answers about the present models, also if the next choice will open another epoch

    def appraise(self, slate: Slate) -> FloatArray:
        """Return estimates with widths as in "ucb", also if draws or nothing take their place."""
        model = self._model
        if model is None:
            return np.zeros((3, slate.n_arms))
        return self._scored(model, slate)[1]

    def reasons(self, slate: Slate) -> Reasons:
        """Return the parts of each score; all are 0 while all rewards are equal."""
        model = self._model
        if model is None:
            return Reasons.none(slate.n_arms, slate.dim, self.context_dim)
        _, estimates, widths = self.appraise(slate)
        return explanation.reasons(model, slate, self._context_row(slate), estimates, widths)

    def moves(
        self, slate: Slate, groups: Groups, context_groups: Groups
    ) -> tuple[FloatArray, list[FloatArray]]:
        """Return moves under the latent models, given what is seen of each arm and the context."""
        model = self._model
        if model is None:
            return super().moves(slate, groups, context_groups)
        context = self._context_row(slate)
        return (
            explanation.moved_by_seeing(model, slate, context, groups),
            explanation.moved_by_context(model, slate, context, context_groups),
        )

    def for_choosing(self) -> Self:
        """Return a fork without offered arms, played arms and their rewards."""
        policy, dim, epoch = self.fork(), self.dim or 1, self._epoch
        if epoch is not None:
            policy._epoch = epoch._replace(width_model=self._width_model)
        policy._arms = self._empty_sample(dim, self._arms.max_rows)
        policy._contexts = self._empty_sample(self.context_dim, self._contexts.max_rows)
        policy._history = History.empty(dim, self.context_dim)
        return policy

    def implausible(self) -> tuple[FloatArray, FloatArray]:
        """Return how many values of each feature are implausible, of arms and of contexts."""
        if self._epoch is None:
            return super().implausible()

        def counts(table: FloatArray, model: RowModel) -> FloatArray:
            known = model.factors.dim
            found = n_implausible(table[:, :known], model.limits)
            return np.pad(found, (0, table.shape[1] - known))

        arms, context = self._epoch.arms, self._epoch.context
        return counts(self._arms.table, arms), counts(self._contexts.table, context)

    # Learning

    def collect(self, slate: Slate) -> None:
        """Add the arms, and their context, to those on which the next models are fitted."""
        self._arms = self._arms.plus(slate.table, slate.items)
        context = slate.context
        if context is not None and (context == context).any():
            self._contexts = self._contexts.plus(context[None], None)

    def update(self, note: Note, reward: float) -> None:
        """Keep the reward, and add it to the current epoch's regression."""
        row, is_pending = self._row(note), note.round in self._pending
        epoch, model = self._epoch, self._model
        level = self._history.last_level if model is None else model.drift.level
        self._history = self._history.plus(note.round, *row, reward, level)
        if epoch is not None and model is not None:
            is_last = self._pending.n == is_pending
            model, square = model.updated(*row, reward, moves_level=is_last)
            self._surprise = self._surprise.updated(square)
            self._epoch = epoch._replace(reward_model=model)
        if not is_pending:
            self._count_in_widths(note)
            return
        self._pending = self._pending.without(note.round)  # its row is in the widths
        if self._epoch is not None and not self._pending.n:
            self._epoch = self._epoch._replace(width_model=None)

    def _row(self, note: Note) -> tuple[FloatArray, FloatArray, int]:
        """Return arm, context and item id of a decision, with the features of today."""
        note = note.widened(self.dim, self.context_dim)
        arm, context = note.arm, note.context
        if context is None:
            context = self._hidden_context[0]
        if self._first_levels or self._context_first_levels:
            arm = widened_rows(arm[None], len(arm), self._first_levels)[0]
            context = widened_rows(context[None], len(context), self._context_first_levels)[0]
        return arm, context, NO_ITEM if note.item is None else note.item

    # Pending rewards

    def await_reward(self, note: Note) -> None:
        """Count the decision in widths until `update` replaces it."""
        if note.round not in self._pending:
            self._pending = self._pending.plus(note)
            self._count_in_widths(note)

    def give_up(self, *notes: Note) -> None:
        """Count decisions no longer; of many pending ones some stay in the widths for a while.

        A row cannot be taken out of a root: the model of widths is made anew.
        """
        for note in notes:
            self._pending = self._pending.without(note.round)
        epoch = self._epoch
        if epoch is None or epoch.reward_model is None or epoch.width_model is None:
            return
        n_rows = epoch.width_model.ridge.n_samples - epoch.reward_model.ridge.n_samples
        if n_rows > _MOST_FORGOTTEN * min(self._pending.n, IN_WIDTHS):
            self._epoch = epoch._replace(width_model=None)
            self._epoch = epoch._replace(width_model=self._width_model)

    @property
    def _width_model(self) -> RewardModel | None:
        """The model of widths; it is made once it is needed, if any reward is pending."""
        epoch, model = self._epoch, self._model
        if epoch is None or model is None or not self._pending.n:
            return None
        if epoch.width_model is not None:
            return epoch.width_model
        return model.expecting(*self._rows(self._pending.in_widths()))

    def _count_in_widths(self, note: Note) -> None:
        """Add a row to the model of widths, if it has been made."""
        epoch = self._epoch
        if epoch is not None and epoch.width_model is not None:
            widths = epoch.width_model.expecting(*self._rows([note]))
            self._epoch = epoch._replace(width_model=widths)

    def with_notes(self, notes: Iterable[Note]) -> Self:
        """Return a fork with notes of pending decisions, for the widths of the next epoch."""
        policy = self.fork()
        policy._pending = self._pending.with_notes(notes)
        return policy

    def _rows(self, notes: Iterable[Note]) -> tuple[FloatArray, FloatArray, NDArray[np.int64]]:
        """Return arms, contexts and item ids of decisions."""
        rows = [self._row(note) for note in notes]
        arms = np.array([arm for arm, _, _ in rows]).reshape(len(rows), self.dim or 1)
        contexts = np.array([row for _, row, _ in rows]).reshape(len(rows), self.context_dim)
        return arms, contexts, np.array([item for _, _, item in rows], dtype=np.int64)

    # Epochs

    @property
    def _settings(self) -> Settings:
        """What the models need to know."""
        n_kept = self._n_kept(self.dim or 1, self.context_dim)
        return Settings(
            self.groups,
            self.rank,
            self.through_origin,
            self.half_life,
            n_kept,
            self._first_levels,
            self._context_first_levels,
        )

    def _n_kept(self, dim: int, context_dim: int) -> int:
        """Return the number of offered arms, and of played arms, that are kept."""
        return arms_kept(dim + context_dim, self.memory_bytes)

    @property
    def is_refit_due(self) -> bool:
        """Whether an epoch is due: so many rounds have passed, or rewards differ at last."""
        if self.round >= self._schedule.next_due:
            return True
        return self._model is None and is_informative(self._settings, self._history)

    def fit_models(self) -> None:
        """Open an epoch: fit both models to what still counts."""
        settings, round, schedule = self._settings, self.round + 1, self._schedule
        arms = OfferedRows.of(self._arms, self.round, settings.oldest_age)
        since = self.round - schedule.context_since
        contexts = OfferedRows.of(self._contexts, since, settings.oldest_age)
        last, history = self._epoch, self._history
        if self.half_life is not None:
            history = history.since(round - settings.oldest_age)
        epoch, history = Epoch.open(
            settings, arms, contexts, history, round, last, self._first_pending
        )
        if last is not None:
            self._log = (*self._log[1 - _LONGEST_LOG :], last.record)
        self._epoch, self._history = epoch, history
        self._schedule = schedule.next(round, self.growth, settings.longest_epoch)

    def _compact_if_full(self) -> None:
        """Keep memory bounded."""
        is_full = len(self._history) >= 2 * self._arms.max_rows
        if is_full and self._epoch is not None:
            features = self._epoch.features
            self._history = self._history.bounded(features, self._settings, self._first_pending)

    @property
    def _first_pending(self) -> float:
        """The first round whose reward is pending."""
        return self._pending.first_round

    # Features that come later

    def grow(self, dim: int, levels: Mapping[int, int]) -> None:
        """Let arms have more features, in all that is kept; the next models will have them."""
        self._first_levels = {**self._first_levels, **levels}
        self._widen_all(dim, self.context_dim)

    def grow_context(self, dim: int, levels: Mapping[int, int]) -> None:
        """Let contexts have more features; before the first one they were hidden."""
        self._context_first_levels = {**self._context_first_levels, **levels}
        most = arms_kept(dim, self.memory_bytes)
        self._contexts = self._contexts.widened(dim, self._context_first_levels, most)
        if self.round and not self.context_dim:
            soon = min(self._schedule.next_due, self.round + _SOON)
            self._schedule = self._schedule._replace(context_since=self.round, next_due=soon)
        self._widen_all(self.dim or 1, dim)

    def _widen_all(self, dim: int, context_dim: int) -> None:
        self._arms = self._arms.widened(dim, self._first_levels, self._n_kept(dim, context_dim))
        self._history = self._history.widened(
            dim, context_dim, self._first_levels, self._context_first_levels
        )

    # Saving

    def after_loading(self) -> None:
        """Raise ArchiveError unless history and epoch fit together."""
        if self.dim is None and (self._history.rows.arms.shape[1] != 1 or len(self._history)):
            raise ArchiveError("there can be no rewards before the first slate")
        if self._pending.last_round > self.round:
            raise ArchiveError(
                f"round {self._pending.last_round} is pending, but {self.round} was the last one"
            )
        for note in self._pending.notes.now.values():
            self.check_note(note)
        epoch = self._epoch
        summary = self._history.summary
        if summary is None:
            return
        features = None if epoch is None else epoch.features
        if features is None or (summary.n_features, summary.n_item_columns) != (
            features.n_features,
            features.n_item_columns,
        ):
            raise ArchiveError("the summary does not fit the features of the epoch")

    @property
    def latest_epoch(self) -> int:
        """Index of the latest epoch; −1 if there is none."""
        return -1 if self._epoch is None else self._epoch.record.epoch

    def _checked(self, options: Any, context: Any = None, items: Any = None) -> Slate:
        if self.dim is None:  # the first slate determines it
            options = Slate.of(options)
            self.__dict__["dim"] = options.dim
            self.setup()
        return super()._checked(options, context, items)


def _best(slate: Slate, scores: FloatArray) -> int:
    """Return the arm with the largest score; of equal ones that with the smallest item id.

    Items of which nothing is known have equal scores, wherever they stand.
    """
    if slate.items is None:
        return int(scores.argmax())
    return int(np.lexsort((slate.items, -scores))[0])


def _checked_groups(name: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, list | tuple) or not value:
        raise InvalidSettingError(
            f"{name} must be a list of words among {ALL_GROUPS}, got {value!r}"
        )
    words = {checks.one_of(name, word, ALL_GROUPS) for word in value}
    return tuple(word for word in ALL_GROUPS if word in words)
