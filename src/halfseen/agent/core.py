"""The state of an agent, and each step that changes it."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np

from halfseen import checks
from halfseen.agent.asked import Asked, Encoders, Ready
from halfseen.agent.explanation import (
    Explanation,
    Parts,
    context_measurements,
    measurements,
)
from halfseen.agent.health import Window
from halfseen.agent.waiting import CLOSED, REWARDED, Waiting, WaitingDecisions, log_forgotten
from halfseen.errors import ArchiveError, InvalidInputError, InvalidSettingError, InvalidTableError
from halfseen.policies.base import Policy
from halfseen.policies.registry import policy_from_dict
from halfseen.progress import with_bar
from halfseen.frames import Encoder, Item
from halfseen.frames.encoder import ids_alone
from halfseen.values import Decision, FloatArray, Note, Scores, Slate

# A gain below this share of what estimates and widths differ by is rounding.
_ROUNDING = 1e-6
_PART = 200  # rows of a log that are learned between two looks at the clock


class Scored(NamedTuple):
    """What an agent expects of an option, and which share of the known columns it shows.

    Examples
    --------
    >>> from halfseen import Agent
    >>> agent = Agent(id="sku")
    >>> agent.observe({"sku": ["hat", "coat"], "price": [3.0, 9.0], "size": [1, 2]}, [0.0, 1.0])
    >>> scored = agent.score([{"sku": "coat", "price": 9.0}])[0]
    >>> scored.item, scored.share_seen
    ('coat', 0.5)
    """

    item: Item
    estimate: float
    width: float
    share_seen: float


class Core:
    """Columns, policy, and decisions that wait, without locks and files.

    Steps replace what attributes hold and do not change it in place, except for the decisions that
    wait, whose changes can be undone. So steps since `begin` can be taken back.

    Attributes
    ----------
    policy : Policy
    encoders : Encoders
    has_ids : bool
        Whether a column names the options.
    waiting : WaitingDecisions
    n_decisions : int
    last_epoch : int
        That of the latest decision.
    seen, context_seen : Window
        How many entries of each feature were seen, per option and per context.
    rewards : Window
        Sums of rewards.
    """

    def __init__(
        self, policy: Policy, encoder: Encoder, max_pending: int, *, has_ids: bool = False
    ) -> None:
        self.policy, self.encoders = policy, Encoders(encoder, encoder)
        self.has_ids = has_ids
        self.waiting = WaitingDecisions(max_pending)
        self.n_decisions = 0
        self.last_epoch = -1
        self.seen, self.context_seen, self.rewards = (Window.empty() for _ in range(3))

    def begin(self) -> dict[str, Any]:
        """Return what `undo` needs to take back the steps from now on."""
        self.waiting.begin()
        return self.__dict__.copy()

    def undo(self, before: dict[str, Any]) -> None:
        """Take back all steps since `begin`."""
        self.__dict__ = before
        self.waiting.undo()

    def encoded(self, asked: Asked, *, log: bool = False) -> Ready:
        """Return what was asked, for a policy that knows its columns.

        Raises
        ------
        InvalidTableError
            Also if a column or level is new and the policy cannot grow.
        """
        policy, rows = self.policy.fork(), asked.rows
        is_named = policy.uses_items and (self.has_ids or rows.is_named or not rows.names)
        if not rows.names and not is_named:
            raise ids_alone()
        known = policy.dim or 0
        # Items may have no columns, or none that was ever seen.
        dim = max(1, known) if policy.uses_items else known
        slate, options, levels = self.encoders.options.encode(rows, dim=dim)
        if slate.dim > known:
            try:
                policy.widen(slate.dim, levels=_new(levels, known))
            except InvalidSettingError as error:
                raise self._refused(options, known, error) from None
        encoders, contexts = self.encoders._replace(options=options), None
        if asked.context is not None:
            known = policy.context_dim
            shown, context, levels = self.encoders.context.encode(asked.context, dim=max(1, known))
            policy.widen(context_dim=shown.dim, context_levels=_new(levels, known))
            encoders, contexts = Encoders(options, context), shown._table
        context_row = contexts[0] if contexts is not None and not log else None
        numbers = rows.numbers() if is_named else None
        slate = Slate.of(slate, context=context_row, items=numbers)
        return Ready(policy, encoders, slate, contexts)

    def _refused(self, encoder: Encoder, known: int, error: Exception) -> InvalidTableError:
        entered = [name for name, each in encoder.columns.items() if each.features[-1] >= known]
        names = ", ".join(repr(name) for name in entered[:5])
        return InvalidTableError(
            f"column {names} has values that are new, and {error}, or list the column in ignore=[…]"
        )

    def choose(self, asked: Asked, id: str, time: float, *, explore: bool = True) -> Decision:
        """Choose one of the rows."""
        ready, items = self.encoded(asked), asked.rows.items
        choice, note = ready.policy.play(ready.slate, explore=explore)
        self._wait(ready, id, Waiting(0, items[choice.arm], time, note))
        given = choice.arm, note, choice.parts, choice.probabilities
        return Decision(type(ready.policy).__name__, *given, id=id, items=items, rows=asked)

    def choose_again(
        self, asked: Asked, id: str, time: float, arm: int | None, *, explore: bool = True
    ) -> None:
        """Repeat a recorded choice; without an arm, only the chosen row was recorded.

        If the choice cannot be repeated, the chosen row counts as a logged one.
        """
        ready = self.encoded(asked)
        policy, slate = ready.policy, ready.slate
        row, is_logged = 0 if arm is None else arm, True
        item = None if slate._items is None else int(slate._items[row])
        chosen = slate._table[row].copy()
        note = Note(max(1, policy.round), -1, chosen, context=slate._context, item=item)
        if arm is not None:
            choice, played = policy.play(slate, explore=explore)
            is_logged = choice.arm != arm
            note = note if is_logged else played
        self._wait(ready, id, Waiting(0, asked.rows.items[row], time, note, is_logged))

    def _wait(self, ready: Ready, id: str, waiting: Waiting) -> None:
        self.policy, self.encoders = ready.policy, ready.encoders
        self.n_decisions += 1
        self.last_epoch = waiting.note.epoch
        self._count_seen(ready.slate._table, ready.contexts)
        forgotten = self.waiting.add(id, waiting._replace(number=self.n_decisions))
        if forgotten is not None:
            limit = f"max_pending = {self.waiting.limit}"
            log_forgotten(forgotten, self.waiting.n_forgotten, limit)

    def _count_seen(self, table: FloatArray, contexts: FloatArray | None) -> None:
        self.seen = self.seen.added((table == table).sum(axis=0), len(table))
        if contexts is not None:
            shown = (contexts == contexts).sum(axis=0)
            self.context_seen = self.context_seen.added(shown, len(contexts))

    def learn(self, pairs: list[tuple[Any, float]]) -> None:
        """Learn rewards of decisions by their ids, all or none."""
        found = [(id, self.waiting.get(id), reward) for id, reward in pairs]
        if len({id for id, _ in pairs}) < len(pairs):
            ids = [id for id, _ in pairs]
            twice = next(id for at, id in enumerate(ids) if id in ids[:at])
            raise InvalidInputError(f"decision {twice} is there twice: a reward counts once")
        # Forks can take back one step only.
        policy = self.policy.fork() if len(pairs) == 1 else deepcopy(self.policy)
        for id, waiting, reward in found:
            note = waiting.note.widened(policy.dim, policy.context_dim)
            if waiting.is_logged:
                items = None if note.item is None else [note.item]
                contexts = None if note.context is None else note.context[None]
                policy.play_logged(Slate(note.arm[None], items=items), [reward], contexts)
            else:
                policy.update(note, reward)
            self.waiting.remove(id, REWARDED)
            self.rewards = self.rewards.added([reward], 1)
        self.policy = policy

    def close(self, ids: list[str]) -> None:
        """Let decisions no longer wait, without a reward."""
        for id in ids:
            self.waiting.get(id)
            self.waiting.remove(id, CLOSED)

    def observe(self, asked: Asked, rewards: list[float]) -> None:
        """Learn rewards of logged rows."""
        ready = self.encoded(asked, log=True)
        policy, table, contexts = deepcopy(ready.policy), ready.slate._table, ready.contexts
        numbers = ready.slate._items
        starts = range(0, len(rewards), _PART)
        for start in with_bar("learning a log", len(rewards), starts, lambda _: _PART):
            stop = start + _PART
            slate, given = Slate(table[start:stop]), None
            if numbers is not None:
                slate = Slate.of(slate, items=numbers[start:stop])
            if contexts is not None:
                given = contexts[start:stop]
            policy.play_logged(slate, rewards[start:stop], given)
        self.policy, self.encoders = policy, ready.encoders
        for row, reward in enumerate(rewards):
            context = None if contexts is None else contexts[row : row + 1]
            self._count_seen(table[row : row + 1], context)
            self.rewards = self.rewards.added([reward], 1)

    def score(self, asked: Asked) -> tuple[Scored, ...]:
        """Return what the policy expects of each row."""
        policy, encoders, slate, _ = self.encoded(asked)
        estimates, widths = policy.score(slate)
        firsts = [column.features[0] for column in encoders.options.columns.values()]
        seen = slate.mask[:, firsts].mean(axis=1) if firsts else np.ones(slate.n_arms)
        columns = (asked.rows.items, estimates.tolist(), widths.tolist(), seen.tolist())
        return tuple(Scored(*each) for each in zip(*columns, strict=True))

    def explain(
        self, asked: Asked, item: Item | None, costs: Mapping[str, float], made: Scores | None
    ) -> Explanation:
        """Return the reasons for the score of a row; by default of the one with the best score.

        `made` are the estimates and widths of a decision about these rows.
        """
        policy, encoders, slate, _ = self.encoded(asked)
        items, reasons = asked.rows.items, policy.explain(slate)
        is_current = made is not None and _agree(reasons.estimates, made)
        if made is not None and is_current:
            reasons = reasons._replace(bonus=made.widths)
        arm = int(reasons.scores.argmax()) if item is None else _place(items, item)
        columns, context_columns = (
            {name: list(each.features) for name, each in encoder.columns.items()}
            for encoder in encoders
        )
        gains = policy.value_of_seeing(
            slate, [*columns.values()], [*context_columns.values()] if policy.context_dim else None
        )
        found = measurements(gains, list(columns), items, costs)
        if slate._context is not None:
            found += context_measurements(gains.context, list(context_columns), costs)
        least = _ROUNDING * float(np.ptp(reasons.estimates) + np.abs(reasons.bonus).max())
        found = [each for each in found if each.gain > least]
        return Explanation(
            items[arm],
            Parts.of(reasons, arm, slate.mask[arm], columns, context_columns),
            tuple(sorted(found, key=lambda each: -each.net)),
            made is None or is_current,
        )

    def health(self) -> dict[str, Any]:
        """Return rewards, shares seen, and the policy's own figures, as plain JSON types."""
        starts = self.policy.diagnostics().get("epoch_starts")
        return {
            "decisions": self.n_decisions,
            "pending": len(self.waiting),
            "forgotten": self.waiting.n_forgotten,
            "rewards": {name: self._rewards(name == "lately") for name in ("lately", "before")},
            "seen": self._shares(self.seen, self.encoders.options),
            "context_seen": self._shares(self.context_seen, self.encoders.context),
            "features": self.encoders.options.width,
            "context_features": self.encoders.context.width,
            "rank": self.policy.current_rank if self.policy.dim is not None else None,
            "epoch": self.last_epoch,
            "refits": None if starts is None else len(starts),
        }

    def _rewards(self, lately: bool) -> dict[str, Any]:
        means, n = self.rewards.means(lately=lately), int(self.rewards.total(lately=lately))
        return {"n": n, "mean": float(means[0]) if n else None}

    def _shares(self, seen: Window, encoder: Encoder) -> dict[str, dict[str, float | None]]:
        """Return the share of entries seen of each column, lately and before."""
        firsts = {name: column.features[0] for name, column in encoder.columns.items()}
        found = {}
        for name in ("lately", "before"):
            means: FloatArray = seen.means(lately=name == "lately")
            shares = np.pad(means, (0, max(0, encoder.width - len(means))))
            has_any = seen.total(lately=name == "lately") > 0
            found[name] = {
                column: float(shares[at]) if has_any else None for column, at in firsts.items()
            }
        return found

    def state(self) -> dict[str, Any]:
        """Return everything as a tree of plain values and arrays."""
        return {
            "policy": self.policy.to_dict(),
            "encoder": self.encoders.options.state(),
            "context_encoder": self.encoders.context.state(),
            "decisions": self.waiting.state(self.policy.dim or 0, self.policy.context_dim),
            "n_decisions": self.n_decisions,
            "last_epoch": self.last_epoch,
            "seen": self.seen.state(),
            "context_seen": self.context_seen.state(),
            "rewards": self.rewards.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from what `state` returned."""
        self.policy = policy_from_dict(state["policy"])
        self.encoders = Encoders(
            self.encoders.options.restored(state["encoder"]),
            self.encoders.context.restored(state["context_encoder"]),
        )
        known = self.policy.dim or 0, self.policy.context_dim
        for encoder, dim in zip(self.encoders, known, strict=True):
            if encoder.width > dim:
                raise ArchiveError(f"{encoder.width} features are too many for a policy with {dim}")
        self.waiting.restore(state["decisions"], self._check_note)
        most = checks.LARGEST_HORIZON
        self.n_decisions = checks.integer("n_decisions", state["n_decisions"], 0, most)
        self.last_epoch = checks.integer("last_epoch", state["last_epoch"], -1, most)
        self.seen, self.context_seen, self.rewards = (
            Window.restored(state[name]) for name in ("seen", "context_seen", "rewards")
        )

    def _check_note(self, note: Note, is_logged: bool) -> None:
        if not is_logged:
            self.policy.check_note(note)
        elif note.arm.size != self.policy.dim:
            raise ArchiveError(f"an arm must have {self.policy.dim} features, got {note.arm.size}")
        elif note.context is not None and len(note.context) != self.policy.context_dim:
            raise ArchiveError(f"a context must have {self.policy.context_dim} features")


def _new(levels: Mapping[int, int], known: int) -> dict[int, int]:
    """Return the levels whose features are not among the known ones."""
    return {level: first for level, first in levels.items() if level >= known}


def _agree(estimates: FloatArray, made: Scores) -> bool:
    """Return whether estimates are those of a decision, up to rounding."""
    spread = float(np.ptp(made.estimates) + np.abs(made.widths).max())
    near = 1e-6 * spread + 1e-12 * float(np.abs(made.estimates).max())
    return bool((np.abs(estimates - made.estimates) <= near).all())


def _place(items: Sequence[Item], item: Item) -> int:
    if item not in items:
        raise InvalidInputError(f"{item!r} is none of the options: name one of {list(items)[:10]}")
    return list(items).index(item)
