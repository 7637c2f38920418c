"""The policy without settings: a latent model of half-seen arms, and one model of their rewards."""

import math
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict
from typing import Any, ClassVar

import numpy as np

from halfseen import checks
from halfseen.core import reward_reasons
from halfseen.core.factors import Arms
from halfseen.core.offers import Layout, Offer, widened_rows
from halfseen.core.plays import Plays, arms_kept
from halfseen.core.reasons import Reasons
from halfseen.linear.history import Reservoir
from halfseen.log import logger
from halfseen.policies.background import Background
from halfseen.policies.explorations import Turn
from halfseen.policies.latent_epoch import Before, LatentEpoch, LatentRecord, record_from
from halfseen.policies.latent_params import LatentParams
from halfseen.policies.latent_side import Offered
from halfseen.policies.registry import register_policy
from halfseen.seeding import stream
from halfseen.values import Choice, FloatArray, Note, Slate

# Records of this many epochs are kept.
_LONGEST_LOG = 1000
# An epoch opens so many rounds after the first context, and after a log from which a policy starts.
_SOON = 8


@register_policy
class LatentUcb(LatentParams):
    """Learns from half-seen arms without any settings.

    - **Arms**: x = μ + Wz + ε, fitted by maximum likelihood to the seen entries of all offered
      arms, played or not; the evidence chooses the number of latent coordinates z.
    - **Rewards**: intercept + θ₁'z + θ₂'x̂ + θ₃'(mask − share seen) + effect of the item, where x̂ is
      the arm with hidden entries filled in, and an item is an arm that comes back. Each part has
      a prior variance of its own, which the evidence chooses.
    - **Choice**: the largest estimate plus a multiple of its posterior deviation. While all rewards
      are equal, arms are chosen at random.

    Both models are frozen in epochs that start in rounds 2, 3, 4, 5, 7, 9, … and use all rewards so
    far. Units and offsets of features and rewards do not matter, nor does the order of features
    (with "thompson": in distribution). A decision has the exact probabilities of all arms.

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

    needs: ClassVar[tuple[str, ...]] = ("seed",)

    def setup(self) -> None:
        """Start without data; without a dimension, wait for the first slate."""
        super().setup()
        self._epoch: LatentEpoch | None = None
        self._log: list[LatentRecord] = []
        self._next_event = 1
        self._context_since = 0  # round before the first context
        self._n_offered = 0  # arms in rounds that were played, absorbed ones not among them
        self._n_logged = 0  # rounds of a log, each with one arm
        self._is_logging = False
        self._rewards_tell = False
        self._next_epoch: Background[tuple[LatentEpoch, Plays]] | None = None
        self._n_known = 0  # plays that the next epoch knows
        self._n_failed_refits = 0
        recent = self.half_life is not None
        self._contexts = Reservoir(
            max(1, self.context_dim),
            max_rows=arms_kept(max(1, self.context_dim), self.memory_bytes),
            seed=self.seed,
            recent=recent,
        )
        if self.dim is not None:
            if self.rank is not None:
                checks.integer("rank", self.rank, 0, self.dim)
            self._offered = Reservoir(
                self.dim, max_rows=self.most_arms, seed=self.seed, recent=recent
            )
            self._plays = Plays.none(self.layout)
            self._most_rows = 2 * self.most_arms  # of plays, before some are summed up

    @property
    def epoch_log(self) -> tuple[LatentRecord, ...]:
        """One record for each epoch opened so far."""
        current = () if self._epoch is None else (self._epoch.record,)
        return (*self._log, *current)

    @property
    def current_rank(self) -> int | None:
        """Number of latent coordinates in the current epoch; None before the first one."""
        epoch = self._epoch
        return None if epoch is None else epoch.record.rank

    def diagnostics(self) -> dict[str, Any]:
        """Return ranks of all epochs, and noise and scales of the last one."""
        log = self.epoch_log
        return {
            "epoch_starts": [record.round for record in log],
            "epoch_ranks": [record.rank for record in log],
            "noise_scale": log[-1].noise_scale if log else None,
            "scales": log[-1].scales if log else {},
            "frequency": log[-1].frequency if log else 0.0,
            "carry_error": log[-1].carry_error if log else 0.0,
            "n_failed_refits": self._n_failed_refits,
        }

    def decide(self, slate: Slate) -> Choice:
        """Open an epoch if one is due, then choose by its models."""
        return self._choice(slate, self.exploration, self.uniform_share)

    def exploit(self, slate: Slate) -> Choice:
        """Choose the largest estimate; at random while all rewards are equal."""
        return self._choice(slate, "greedy", 0.0)

    def play_logged(
        self, slate: Slate, rewards: list[float], contexts: FloatArray | None = None
    ) -> None:
        """Learn from logged arms; they do not say how many arms a round offers."""
        self._is_logging = True
        try:
            super().play_logged(slate, rewards, contexts)
        finally:
            self._is_logging = False

    def _choice(self, slate: Slate, exploration: str, share: float) -> Choice:
        self._prepare()
        self.observe(slate)
        self._n_offered += slate.n_arms
        if self._is_logging:
            self._n_logged += 1
        elif self._round == self._n_logged > 0:  # the first choice after a log
            self._next_event = min(self._next_event, self._round + _SOON)
        epoch = self._epoch
        if epoch is None or epoch.rewards is None:
            return self._at_random(slate)
        widths, offer = self._widths(epoch.record.frequency), self._plays.layout.offer(slate)
        parts, points = epoch.rewards.score(offer, *widths)
        arm, probabilities = offer.best(parts[0]), None
        if exploration != "ucb" or share:
            # Each round has its own random streams, so there is no stream state to save.
            turn = Turn(epoch.rewards, offer, points, parts, self.seed, self._round + 1)
            arm, probabilities = turn.chosen(exploration, widths)
            if share:
                arm, probabilities = turn.shared(arm, probabilities, share)
        return Choice(arm, parts, epoch.record.epoch, probabilities)

    def appraise(self, slate: Slate) -> FloatArray:
        """Return estimates with widths as in "ucb", also if draws or nothing take their place.

        They are those of the present epoch, also if the next choice will open another one.
        """
        epoch = self._epoch
        if epoch is None or epoch.rewards is None:
            return np.zeros((3, slate.n_arms))
        offer = self.layout.offer(slate)
        return epoch.rewards.score(offer, *self._widths(epoch.record.frequency))[0]

    def reasons(self, slate: Slate) -> Reasons:
        """Return the parts of each score; all are 0 while the rewards tell nothing."""
        epoch = self._epoch
        if epoch is None or epoch.rewards is None:
            return Reasons.none(slate.n_arms, slate.dim, self.context_dim)
        offer = self.layout.offer(slate)
        return reward_reasons.reasons(epoch.rewards, offer, *self._widths(epoch.record.frequency))

    def moved_by_seeing(self, slate: Slate, groups: Sequence[Sequence[int]]) -> FloatArray:
        """Return deviations under the latent model, given what is seen of each arm."""
        epoch = self._epoch
        if epoch is None or epoch.rewards is None:
            return np.zeros((slate.n_arms, len(groups)))
        return reward_reasons.moved_by_seeing(epoch.rewards, self.layout.offer(slate), groups)

    def moved_by_context(self, slate: Slate, groups: Sequence[Sequence[int]]) -> list[FloatArray]:
        """Return moves under the latent model of contexts, given what is seen of this one."""
        epoch = self._epoch
        if epoch is None or epoch.rewards is None:
            return super().moved_by_context(slate, groups)
        return reward_reasons.moved_by_context(epoch.rewards, self.layout.offer(slate), groups)

    def _widths(self, frequency: float) -> tuple[float, float]:
        """Return the multiples of the deviations of the regression and of item effects.

        To know an arm better pays off the more often it comes back. If all arms come in every
        round, multiples grow like √(2 log t), as in UCB: a constant one may stay with the wrong
        arm.
        """
        often = frequency * math.sqrt(2.0 * math.log(self._round + 1.0))
        item_width = self.width_scale * self.item_share * often
        return max(self.width_scale, item_width), item_width

    def _at_random(self, slate: Slate) -> Choice:
        """Choose every arm with the same probability.

        The arms are sorted by their size and item first, so that neither their order nor units,
        offsets or the order of features matter.
        """
        table = slate._table
        latent = Arms(table).empty_model() if self._epoch is None else self._epoch.latent
        sizes = np.nansum(latent.residuals(table) ** 2, axis=1)
        place = stream(self.seed, "uniform", str(self._round + 1)).integers(slate.n_arms)
        items = np.zeros(slate.n_arms) if slate._items is None else slate._items
        arm = int(np.lexsort((items, sizes))[place])
        index = -1 if self._epoch is None else self._epoch.record.epoch
        law = np.full(slate.n_arms, 1.0 / slate.n_arms)
        return Choice(arm, np.zeros((3, slate.n_arms)), index, probabilities=law)

    def _prepare(self) -> None:
        """Open an epoch, or let it be prepared, if one is due; keep memory bounded."""
        if self._next_epoch is not None:
            if not self._next_epoch.is_done:
                return
            if self._next_epoch.is_lost:
                self._next_epoch = None  # it is still due
            else:
                self._replace_epoch(self._next_epoch)
        epoch = self._epoch
        is_ready = epoch is not None and epoch.rewards is not None
        is_due = self._round >= self._next_event or (self._rewards_tell and not is_ready)
        if self._round > 0 and is_due:
            if is_ready and self.refit == "background":
                self._next_epoch = Background(self._opening(copied=True))
                self._n_known = self._plays.n_rows
            else:
                self._enter(*self._opening(copied=False)())
            self._rewards_tell = False  # what was learned is in the models, or has faded
        elif epoch is not None and len(self._plays.played) >= self._most_rows:
            self._plays = self.compacted(self._plays, epoch.features)

    def _opening(self, *, copied: bool) -> Callable[[], tuple[LatentEpoch, Plays]]:
        """Return a function that fits both models to what still counts.

        With `copied`, the function uses nothing that later rounds change.
        """
        round, last, layout = self._round + 1, self._epoch, self.layout
        n_chosen = self._round - self._n_logged
        per_round = (self._n_offered - self._n_logged) / n_chosen if n_chosen else 1.0
        given = layout.without_context(), self._offered, self._round, per_round
        arms, contexts = Offered.of(*given, copied=copied), None
        if self.context_dim:
            n_rounds = self._round - self._context_since
            given = Layout(self.context_dim), self._contexts, n_rounds, 1.0
            contexts = Offered.of(*given, copied=copied)
        plays = self._plays.since(round - self.memory) if self.half_life else self._plays
        policy = self.fork() if copied else self
        return lambda: LatentEpoch.open(policy, Before(arms, contexts), plays, round, last)

    def _replace_epoch(self, prepared: Background[tuple[LatentEpoch, Plays]]) -> None:
        """Go on with an epoch that was prepared beside the present one."""
        self._next_epoch = None
        before = self.__dict__.copy()
        try:
            self._take_over(*prepared.result())
        except Exception:
            self.__dict__ = before
            self._n_failed_refits += 1
            logger.exception("a refit failed, %d so far: the epoch goes on", self._n_failed_refits)
            self._schedule(self._round + 1)

    def _take_over(self, epoch: LatentEpoch, plays: Plays) -> None:
        """Enter an epoch that was prepared, which nobody changes, and learn what came since."""
        layout, known = self._plays.layout, self._n_known
        rows, rewards, rounds = self._plays.played.columns()
        self._enter(epoch, plays._replace(played=deepcopy(plays.played)))
        if layout != plays.layout:  # features entered meanwhile
            self._widen_models(layout)
        for at in range(known, len(rounds)):
            self._plays = self._plays.append(int(rounds[at]), rows[at], float(rewards[at]))
        entered = self._epoch
        if entered is not None and entered.rewards is not None:
            model = entered.rewards.copied()
            model.learn_all(layout.unpacked(rows[known:]), rewards[known:])
            self._epoch = LatentEpoch(*entered[:-1], model)
        if epoch.record.round <= self._n_logged + 1 <= self._round:
            # It knows a log alone, which does not say how often arms come back.
            self._next_event = min(self._next_event, self._round + _SOON)

    def _enter(self, epoch: LatentEpoch, plays: Plays) -> None:
        if self._epoch is not None:
            self._log = [*self._log[1 - _LONGEST_LOG :], self._epoch.record]
        self._epoch, self._plays = epoch, plays
        self._schedule(epoch.record.round)

    def _schedule(self, round: int) -> None:
        """Let the next epoch be due some time after a round."""
        length = min((self.growth - 1.0) * round, self.longest_epoch)
        if self._context_since:  # it came late: what it means is learned soon
            since = round - self._context_since
            length = min(length, max(_SOON, (self.growth - 1.0) * since))
        self._next_event = round - 1 + max(1, int(np.ceil(length)))

    def update(self, note: Note, reward: float) -> None:
        """Keep the reward, and add it to the present epoch's regression."""
        before = self._plays.played.last_reward
        offer, layout = self._noted(note), self._plays.layout
        self._plays = self._plays.append(note.round, layout.packed(offer)[0], reward)
        usual = reward if before is None else before
        self._rewards_tell = self._rewards_tell or self.tells(reward, usual)
        epoch = self._epoch
        if epoch is not None and epoch.rewards is not None:
            rewards = epoch.rewards.fork()
            rewards.learn(offer, rewards.features.points_of(offer)[0], reward)
            self._epoch = LatentEpoch(*epoch[:-1], rewards)

    def _noted(self, note: Note) -> Offer:
        """Return the arm of a decision, with levels of categories that entered since."""
        contexts, items = None, None
        if self.context_dim:
            hidden = np.full(self.context_dim, np.nan)
            context = hidden if note.context is None else note.context
            contexts = widened_rows(context[None], self.context_dim, self._context_levels)
        if self._has_items:
            items = np.array([np.nan if note.item is None else float(note.item)])
        return Offer(widened_rows(note.arm[None], self.n_features, self._levels), contexts, items)

    def observe(self, slate: Slate) -> None:
        """Add the arms, and their context, to those on which the next models are fitted."""
        if slate._items is not None and not self._has_items:
            self._has_items = True
            self._lay_out(self.layout)
        offered, rows = self._offered.fork(), slate._table
        if self._has_items:
            layout = self._plays.layout.without_context()
            rows = layout.packed(layout.offer(slate))
        offered.add(rows)
        self._offered = offered
        context = slate._context
        if context is not None and (context == context).any():
            contexts = self._contexts.fork()
            contexts.add(context[None])
            self._contexts = contexts

    def grow(self, dim: int, levels: Mapping[int, int]) -> None:
        """Let arms have more features, in all that is kept and in the models."""
        self._levels = {**self._levels, **levels}
        self._lay_out(self.layout._replace(dim=dim))

    def grow_context(self, dim: int, levels: Mapping[int, int]) -> None:
        """Let contexts have more features; before the first one they were hidden."""
        self._context_levels = {**self._context_levels, **levels}
        rows = widened_rows(self._contexts.rows, dim, self._context_levels)
        self._contexts = self._contexts.widened(rows, arms_kept(dim, self.memory_bytes))
        if self.dim is None:  # no arms are kept before the first slate
            return
        if self._round and not self.context_dim:
            self._context_since = self._round
            self._next_event = min(self._next_event, self._round + _SOON)
        self._lay_out(self.layout._replace(context_dim=dim))

    def _lay_out(self, layout: Layout) -> None:
        """Keep rows in another layout, and go on with models that know it."""
        layouts = self._plays.layout.without_context(), layout.without_context()
        most = arms_kept(layout.width, self.memory_bytes)
        self._widen_models(layout)
        self._offered = self._offered.widened(self._laid_out(self._offered.rows, *layouts), most)
        self._most_rows = 2 * most

    def _widen_models(self, layout: Layout) -> None:
        """Bring the present epoch and its plays into another layout."""
        plays, epoch = self._plays, self._epoch
        rows = plays.played.columns()[0]
        wider = self._laid_out(rows, plays.layout, layout)
        if epoch is not None:
            keys = plays.offers(rows).keys, layout.unpacked(wider).keys
            self._epoch = epoch.widened(self, layout, *keys)
            if epoch.rewards is not None and self._epoch.rewards is None:  # it would be too large
                self._next_event, self._next_epoch = self._round, None
        features = [None if each is None else each.features for each in (epoch, self._epoch)]
        self._plays = plays.widened(layout, wider, *features)

    def _laid_out(self, rows: FloatArray, old: Layout, new: Layout) -> FloatArray:
        """Return rows in another layout: what is new is hidden."""
        offer, contexts = old.unpacked(rows), None
        if new.context_dim:
            nothing = np.empty((len(rows), 0))
            contexts = nothing if offer.contexts is None else offer.contexts
            contexts = widened_rows(contexts, new.context_dim, self._context_levels)
        return new.packed(
            Offer(widened_rows(offer.table, new.dim, self._levels), contexts, offer.items)
        )

    def state(self) -> dict[str, Any]:
        """Return offered and played arms, and the epochs; before the first slate only levels."""
        context_levels = [list(pair) for pair in self.context_levels.items()]
        if self.dim is None:
            return {"context_levels": context_levels}
        return {
            "offered": self._offered.state(),
            "plays": self._plays.state(),
            "log": [asdict(record) for record in self._log],
            "epoch": None if self._epoch is None else self._epoch.state(),
            "contexts": self._contexts.state() if self.context_dim else None,
            "has_items": self._has_items,
            "next_event": self._next_event,
            "n_offered": self._n_offered,
            "n_logged": self._n_logged,
            "rewards_tell": self._rewards_tell,
            "levels": [list(pair) for pair in self.levels.items()],
            "context_levels": context_levels,
            "context_since": self._context_since,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from what `state` returned."""
        self._context_levels = _restored_levels(state["context_levels"], self.context_dim)
        if self.dim is None:
            return
        self._levels = _restored_levels(state["levels"], self.dim)
        if checks.boolean("has_items", state["has_items"]):
            self._has_items = True
            self._lay_out(self.layout)
        self._offered.restore(state["offered"])
        if self.context_dim:
            self._contexts.restore(state["contexts"])
        self._log = [record_from(plain) for plain in state["log"]]
        if state["epoch"] is not None:
            self._epoch = LatentEpoch.restored(self, state["epoch"])
        features = None if self._epoch is None else self._epoch.features
        self._plays = Plays.restored(state["plays"], self.layout, features)
        most = checks.LARGEST_HORIZON
        self._next_event = checks.integer("next_event", state["next_event"], 0, most)
        self._n_offered = checks.integer("n_offered", state["n_offered"], self._round, most)
        self._n_logged = checks.integer("n_logged", state["n_logged"], 0, self._round)
        self._rewards_tell = checks.boolean("rewards_tell", state["rewards_tell"])
        since = state["context_since"]
        self._context_since = checks.integer("context_since", since, 0, self._round)

    @property
    def _latest_epoch(self) -> int:
        return -1 if self._epoch is None else self._epoch.record.epoch

    def _checked(self, options: Any, context: Any = None, items: Any = None) -> Slate:
        if self.dim is None:  # the first slate determines it
            options = Slate.of(options)
            self.__dict__["dim"] = options.dim
            self.setup()
        return super()._checked(options, context, items)


def _restored_levels(pairs: Any, dim: int) -> dict[int, int]:
    levels = {}
    for level, first in pairs:
        checks.integer("a further level", level, 1, dim - 1)
        levels[level] = checks.integer("its first feature", first, 0, level - 1)
    return levels
