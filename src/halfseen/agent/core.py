"""The state of an agent, and each step that changes it."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from halfseen import checks
from halfseen.agent.decision import AgentDecision
from halfseen.agent.explanation import Explanation, Parts, measurements
from halfseen.agent.health import Window
from halfseen.agent.progress import parts_with_bar
from halfseen.agent.waiting import CLOSED, REWARDED, Waiting, WaitingDecisions
from halfseen.errors import ArchiveError, InvalidInputError, InvalidSettingError, InvalidTableError
from halfseen.policies.base import Policy
from halfseen.policies.notes import Note, Scores, widened
from halfseen.policies.refusals import log_forgotten
from halfseen.policies.registry import policy_from_tree
from halfseen.tables import Encoder, Item, Rows
from halfseen.values import FloatArray, Slate

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
    encoder : Encoder
    waiting : WaitingDecisions
    n_decisions : int
    last_epoch : int
        That of the latest decision.
    seen : Window
        How many entries of each feature were seen, per option.
    rewards : Window
        Sums of rewards.
    """

    def __init__(self, policy: Policy, encoder: Encoder, max_pending: int) -> None:
        self.policy, self.encoder = policy, encoder
        self.waiting = WaitingDecisions(max_pending)
        self.n_decisions = 0
        self.last_epoch = -1
        self.seen, self.rewards = Window.empty(), Window.empty()

    def begin(self) -> dict[str, Any]:
        """Return what `undo` needs to take back the steps from now on."""
        self.waiting.begin()
        return self.__dict__.copy()

    def undo(self, before: dict[str, Any]) -> None:
        """Take back all steps since `begin`."""
        self.__dict__ = before
        self.waiting.undo()

    def encoded(self, rows: Rows) -> tuple[Policy, Encoder, Slate]:
        """Return rows as a slate, with a fork of the policy and an encoder that know its columns.

        Raises
        ------
        InvalidTableError
            Also if a column or level is new and the policy cannot grow.
        """
        policy, known = self.policy.fork(), self.policy.dim or 0
        slate, encoder, levels = self.encoder.encode(rows, dim=known)
        if slate.dim > known:
            new = {level: first for level, first in levels.items() if level >= known}
            try:
                policy.widen(slate.dim, levels=new)
            except InvalidSettingError as error:
                raise self._refused(encoder, known, error) from None
        return policy, encoder, slate

    def _refused(self, encoder: Encoder, known: int, error: Exception) -> InvalidTableError:
        entered = [name for name, each in encoder.columns.items() if each.features[-1] >= known]
        names = ", ".join(repr(name) for name in entered[:5])
        return InvalidTableError(
            f"column {names} has values that are new, and {error}, or list the column in ignore=[…]"
        )

    def choose(
        self, rows: Rows, id: str, time: float, *, explore: bool = True
    ) -> tuple[AgentDecision, int]:
        """Choose one of the rows; return the decision and the row."""
        policy, encoder, slate = self.encoded(rows)
        choice, note = policy.play(slate, explore=explore)
        self._wait(policy, encoder, slate, id, Waiting(0, rows.items[choice.arm], time, note))
        made = AgentDecision(id, rows, choice, note.round, note.epoch)
        return made, choice.arm

    def choose_again(
        self, rows: Rows, id: str, time: float, arm: int | None, *, explore: bool = True
    ) -> None:
        """Repeat a recorded choice; without an arm, only the chosen row was recorded.

        If the choice cannot be repeated, the chosen row counts as a logged one.
        """
        policy, encoder, slate = self.encoded(rows)
        row, is_logged = 0 if arm is None else arm, True
        note = Note(max(1, policy.round), -1, slate._table[row].copy())
        if arm is not None:
            choice, played = policy.play(slate, explore=explore)
            is_logged = choice.arm != arm
            note = note if is_logged else played
        self._wait(policy, encoder, slate, id, Waiting(0, rows.items[row], time, note, is_logged))

    def _wait(
        self, policy: Policy, encoder: Encoder, slate: Slate, id: str, waiting: Waiting
    ) -> None:
        self.policy, self.encoder = policy, encoder
        self.n_decisions += 1
        self.last_epoch = waiting.note.epoch
        table = slate._table
        self.seen = self.seen.added((table == table).sum(axis=0), len(table))
        forgotten = self.waiting.add(id, waiting._replace(number=self.n_decisions))
        if forgotten is not None:
            limit = f"max_pending = {self.waiting.limit}"
            log_forgotten(forgotten, self.waiting.n_forgotten, limit)

    def learn(self, pairs: list[tuple[Any, float]]) -> None:
        """Learn rewards of decisions by their ids, all or none."""
        found = [(id, self.waiting.get(id), reward) for id, reward in pairs]
        if len({id for id, _ in pairs}) < len(pairs):
            ids = [id for id, _ in pairs]
            twice = next(id for at, id in enumerate(ids) if id in ids[:at])
            raise InvalidInputError(f"decision {twice} is there twice: a reward counts once")
        # Forks can take back one step only.
        policy = self.policy.fork() if len(pairs) == 1 else self.policy.copied()
        for id, waiting, reward in found:
            note = widened(waiting.note, policy.dim)
            if waiting.is_logged:
                policy.play_logged(Slate(note.arm[None]), [reward])
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

    def observe(self, rows: Rows, rewards: list[float]) -> None:
        """Learn rewards of logged rows."""
        grown, encoder, slate = self.encoded(rows)
        policy, table = grown.copied(), slate._table
        for start, stop in parts_with_bar("learning a log", len(rewards), _PART):
            policy.play_logged(Slate(table[start:stop]), rewards[start:stop])
        self.policy, self.encoder = policy, encoder
        for row, reward in zip(table == table, rewards, strict=True):
            self.seen = self.seen.added(row, 1)
            self.rewards = self.rewards.added([reward], 1)

    def score(self, rows: Rows) -> tuple[Scored, ...]:
        """Return what the policy expects of each row."""
        policy, encoder, slate = self.encoded(rows)
        estimates, widths = policy.score(slate)
        firsts = [column.features[0] for column in encoder.columns.values()]
        seen = slate.mask[:, firsts].mean(axis=1)
        columns = (rows.items, estimates.tolist(), widths.tolist(), seen.tolist())
        return tuple(Scored(*each) for each in zip(*columns, strict=True))

    def explain(
        self, rows: Rows, item: Item | None, costs: Mapping[str, float], made: Scores | None
    ) -> Explanation:
        """Return the reasons for the score of a row; by default of the one with the best score.

        `made` are the estimates and widths of a decision about these rows.
        """
        policy, encoder, slate = self.encoded(rows)
        reasons = policy.explain(slate)
        is_current = made is not None and _agree(reasons.estimates, made)
        if made is not None and is_current:
            reasons = reasons._replace(bonus=made.widths)
        arm = int(reasons.scores.argmax()) if item is None else _place(rows.items, item)
        columns = {name: list(each.features) for name, each in encoder.columns.items()}
        gains = policy.value_of_seeing(slate, list(columns.values()))
        return Explanation(
            rows.items[arm],
            Parts.of(reasons, arm, slate.mask[arm], columns),
            measurements(gains, list(columns), rows.items, costs),
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
            "seen": {name: self._shares(name == "lately") for name in ("lately", "before")},
            "features": self.encoder.width,
            "rank": self.policy.current_rank if self.policy.dim is not None else None,
            "epoch": self.last_epoch,
            "refits": None if starts is None else len(starts),
        }

    def _rewards(self, lately: bool) -> dict[str, Any]:
        means, n = self.rewards.means(lately=lately), int(self.rewards.total(lately=lately))
        return {"n": n, "mean": float(means[0]) if n else None}

    def _shares(self, lately: bool) -> dict[str, float | None]:
        means: FloatArray = self.seen.means(lately=lately)
        shares = np.pad(means, (0, max(0, self.encoder.width - len(means))))
        firsts = {name: column.features[0] for name, column in self.encoder.columns.items()}
        has_any = self.seen.total(lately=lately) > 0
        return {name: float(shares[at]) if has_any else None for name, at in firsts.items()}

    def state(self) -> dict[str, Any]:
        """Return everything as a tree of plain values and arrays."""
        return {
            "policy": self.policy.to_tree(),
            "encoder": self.encoder.state(),
            "decisions": self.waiting.state(self.policy.dim or 0),
            "n_decisions": self.n_decisions,
            "last_epoch": self.last_epoch,
            "seen": self.seen.state(),
            "rewards": self.rewards.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from what `state` returned."""
        self.policy = policy_from_tree(state["policy"])
        self.encoder = self.encoder.restored(state["encoder"])
        if self.encoder.width > (self.policy.dim or 0):
            raise ArchiveError(
                f"{self.encoder.width} features are too many for a policy with {self.policy.dim}"
            )
        self.waiting.restore(state["decisions"], self._check_note)
        most = checks.LARGEST_HORIZON
        self.n_decisions = checks.integer("n_decisions", state["n_decisions"], 0, most)
        self.last_epoch = checks.integer("last_epoch", state["last_epoch"], -1, most)
        self.seen, self.rewards = (Window.restored(state[name]) for name in ("seen", "rewards"))

    def _check_note(self, note: Note, is_logged: bool) -> None:
        if not is_logged:
            self.policy.check_note(note)
        elif note.arm.size != self.policy.dim:
            raise ArchiveError(f"an arm must have {self.policy.dim} features, got {note.arm.size}")


def _agree(estimates: FloatArray, made: Scores) -> bool:
    """Return whether estimates are those of a decision, up to rounding."""
    spread = float(np.ptp(made.estimates) + np.abs(made.widths).max())
    near = 1e-6 * spread + 1e-12 * float(np.abs(made.estimates).max())
    return bool((np.abs(estimates - made.estimates) <= near).all())


def _place(items: Sequence[Item], item: Item) -> int:
    if item not in items:
        raise InvalidInputError(f"{item!r} is none of the options: name one of {list(items)[:10]}")
    return list(items).index(item)
