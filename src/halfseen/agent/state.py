"""The state of an agent, and `apply`, the only way in which it changes."""

from collections import OrderedDict
from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from halfseen import state
from halfseen.agent.events import (
    CHOOSE,
    EXPIRE,
    FORGOTTEN,
    OBSERVE,
    REFIT,
    REWARD,
    Asked,
    Event,
    Made,
)
from halfseen.agent.health import TRAFFIC, Traffic
from halfseen.errors import ArchiveError, InvalidSettingError, InvalidTableError, StorageError
from halfseen.frames import Encoded, Encoder, EncoderField, Rows, ids_alone
from halfseen.policies.abilities import AwaitsRewards, Grows, Refits, Reports, UsesItems
from halfseen.policies.base import Policy
from halfseen.policies.registry import AnyPolicy
from halfseen.values import FloatArray, Note, Slate

N_NOTES = 10_000
"""Pending decisions whose notes a policy gets back when an agent is opened."""

_ENCODED = 64  # encoded sets that are remembered


class State(NamedTuple):
    """All that an agent has learned. Equal events leave equal states, bit by bit.

    Attributes
    ----------
    policy : Policy
    options, context : Encoder
    traffic : Traffic
    number : int
        The last event that it includes.
    notes : tuple of Note
        What the policy needs to learn the rewards of that event, if it was a decision.
    implausible : two ndarrays, or None
        Of a view, whose policy has no rows: how many values of each feature it treats as missing.
    """

    policy: Policy
    options: Encoder
    context: Encoder
    traffic: Traffic
    number: int = 0
    notes: tuple[Note, ...] = ()
    implausible: tuple[FloatArray, FloatArray] | None = None

    @property
    def n_implausible(self) -> tuple[FloatArray, FloatArray]:
        """How many values of each feature the policy treats as missing: of options, contexts."""
        return (
            Reports.of(self.policy).implausible() if self.implausible is None else self.implausible
        )

    def viewed(self) -> "State":
        """Return a state that chooses and explains as this one, and cannot be refitted."""
        own, shared = (
            np.asarray(each, np.float64) for each in Reports.of(self.policy).implausible()
        )
        return self._replace(policy=self.policy.for_choosing(), implausible=(own, shared))

    def to_dict(self) -> dict[str, Any]:
        """Return the state as plain values and arrays, without what the journal has."""
        bare = self.with_notes(())
        return {name: field.dump(getattr(bare, name)) for name, field in _FIELDS.items()}

    def with_notes(self, made: Iterable[Made]) -> "State":
        """Return the state with the notes of pending decisions."""
        policy = self.policy
        if isinstance(policy, AwaitsRewards):
            notes = (note for each in made for note in each.notes)
            policy = policy.with_notes(notes)
        return self._replace(policy=policy)

    @classmethod
    def from_dict(cls, plain: dict[str, Any], *, max_levels: int, max_columns: int) -> "State":
        """Return the state that `to_dict` described, after checking it."""
        if plain.keys() != _FIELDS.keys():
            raise ArchiveError(f"the state of an agent must have the fields {list(_FIELDS)}")
        sizes = state.Sizes(_Limits(max_levels, max_columns))
        found = cls(**{name: each.load(name, plain[name], sizes) for name, each in _FIELDS.items()})
        policy = found.policy
        for encoder, dim in ((found.options, policy.dim), (found.context, policy.context_dim)):
            if encoder.width > (dim or 0):
                raise ArchiveError(f"{encoder.width} features are too many for a policy with {dim}")
        return found


class _Limits(NamedTuple):
    max_levels: int
    max_columns: int


_FIELDS: dict[str, state.Field] = {
    "policy": AnyPolicy(),
    "options": EncoderField(),
    "context": EncoderField(),
    "traffic": TRAFFIC,
    "number": state.Whole(),
    "implausible": state.Maybe(state.Each(state.Array((None,)), 2)),
}


class Ready(NamedTuple):
    """A request, encoded: a fork of the policy and the encoders, grown to its columns.

    Attributes
    ----------
    policy : Policy
    options, context : Encoder
    slate : Slate
    contexts : ndarray, shape (n, context_dim), or None
    """

    policy: Policy
    options: Encoder
    context: Encoder
    slate: Slate
    contexts: FloatArray | None


class Reducer:
    """Encodes requests and applies events.

    Parameters
    ----------
    has_id : bool
        Whether a column names the options.
    """

    def __init__(self, has_id: bool) -> None:
        self._has_id = has_id
        self._known: OrderedDict[tuple[bytes, bool], Any] = OrderedDict()

    # Events

    def apply(self, state: State, event: Event, ready: Ready | None = None) -> State:
        """Return the state after an event; `ready` is what it asks, if that is known.

        It does not choose, draw, fit or read a clock, and changes neither the state nor the event.

        Raises
        ------
        StorageError
            The event is not the next one, or cannot be applied.
        """
        if event.number != state.number + 1:
            raise StorageError(
                f"event {event.number} follows event {state.number}: others are missing, restore "
                "them"
            )
        state = state._replace(number=event.number, notes=())
        if event.kind == CHOOSE:
            return self._chosen(state, event, ready)
        if event.kind == REWARD:
            return self._rewarded(state, event)
        if event.kind == EXPIRE:
            return self._expired(state, event)
        if event.kind == OBSERVE:
            return self._observed(state, event, ready)
        if event.kind == REFIT and event.policy is not None:
            traffic = state.traffic.refitted(event.body["seconds"])
            return state._replace(policy=event.policy, traffic=traffic)
        raise StorageError(f"it is a {event.kind!r}, which is not known: upgrade halfseen")

    def _chosen(self, state: State, event: Event, ready: Ready | None) -> State:
        """Let a decision wait for its rewards."""
        if ready is None:
            assert event.asked is not None
            ready = self.encoded(state, event.asked, lenient=True)
            ready.policy.prepare(ready.slate)
        policy, slate, notes = ready.policy, ready.slate, []
        for arm in event.body["arms"]:
            notes.append(policy.advance(slate, arm))
            if isinstance(policy, AwaitsRewards):
                policy.await_reward(notes[-1])
        return state._replace(
            policy=policy,
            options=ready.options,
            context=ready.context,
            traffic=state.traffic.decided(slate.table, ready.contexts),
            notes=tuple(notes),
        )

    def _rewarded(self, state: State, event: Event) -> State:
        """Learn a reward; one that is late is counted."""
        body, (made,) = event.body, event.made
        if body["after"] is None:
            return state._replace(traffic=state.traffic.late())
        if body["total"] is None:
            return state
        state = _learned(state, [(made, body["place"], body["total"])])
        closes = not body["left"]
        return state._replace(traffic=state.traffic.closed(1)) if closes else state

    def _expired(self, state: State, event: Event) -> State:
        """Close decisions: each open place gets its parts, or the reward of expiry, if any."""
        made, rewards = {each.id: each for each in event.made}, event.body["rewards"]
        lost = [made[id].notes[at] for id, at, value in rewards if value is None]
        final = [(made[id], at, value) for id, at, value in rewards if value is not None]
        state, is_lost = _learned(state, final, lost), event.body["why"] == FORGOTTEN
        n = len({id for id, _, _ in rewards})
        return state._replace(traffic=state.traffic.closed(n, forgotten=is_lost))

    def _observed(self, state: State, event: Event, ready: Ready | None) -> State:
        """Learn from rows that somebody else chose."""
        assert event.asked is not None
        ready = ready or self.encoded(state, event.asked, log=True, lenient=True)
        rewards, policy, traffic = event.body["rewards"], ready.policy, state.traffic
        _set_refits_itself(policy, True)
        policy.learn_rows(ready.slate, rewards, ready.contexts)
        _set_refits_itself(policy, False)
        traffic = traffic.observed(ready.slate.table, ready.contexts, rewards)
        return state._replace(
            policy=policy, options=ready.options, context=ready.context, traffic=traffic
        )

    # From tables to slates

    def encoded(
        self, state: State, asked: Asked, *, log: bool = False, lenient: bool = False
    ) -> Ready:
        """Return what was asked, for a policy that knows its columns.

        Parameters
        ----------
        state : State
        asked : Asked
        log : bool
            Whether each row has its own context.
        lenient : bool
            Whether columns that do not fit count as hidden: what other processes have chosen from
            meanwhile may leave no room for them, or make them another kind.

        Raises
        ------
        InvalidTableError
            Also if a column or level is new and the policy cannot grow.
        """
        policy, rows = state.policy.fork(), asked.rows
        _set_refits_itself(policy, False)
        has_ids = self._has_id or not rows.names or rows.is_named
        uses_items = isinstance(policy, UsesItems)
        if not rows.names and not uses_items:
            raise ids_alone()
        known = policy.dim or 0
        # Items may have no columns, or none that was ever seen.
        dim = max(1, known) if uses_items else known
        table, options, numbers = self._encoded_options(state, asked, dim, lenient)
        if table.dim > known:
            try:
                policy.widen(table.dim, levels=options.levels(known))
            except InvalidSettingError as error:
                raise _refused(options, known, error) from None
        context, contexts, row = state.context, None, None
        if asked.context is not None:
            known = policy.context_dim
            encode = partial(_fitted, context) if lenient else context.encode
            shown, context = encode(asked.context, dim=max(1, known))
            policy.widen(context_dim=shown.dim, context_levels=context.levels(known))
            contexts, row = shown.table, None if log else shown.table[0]
        slate = Slate.of(table, context=row, items=numbers if has_ids else None)
        return Ready(policy, options, context, slate, contexts)

    def _encoded_options(self, state: State, asked: Asked, dim: int, lenient: bool) -> Any:
        """Return slate, encoder and item numbers of options; known sets are kept."""
        cache, key, encoder = self._known, (asked.digest, lenient), state.options
        known = cache.get(key)
        if known is not None and known[0] is encoder and known[1] == dim:
            return known[2]
        rows, policy = asked.rows, state.policy
        if lenient:
            room = policy.dim if policy.dim and not isinstance(policy, Grows) else np.inf
            slate, options = _fitted(encoder, rows, dim, room)
        else:
            slate, options = encoder.encode(rows, dim=dim)
        numbers = np.array(rows.numbers()) if isinstance(policy, UsesItems) else None
        found = slate, options, numbers
        if asked.digest and options is encoder:
            cache[key] = encoder, dim, found
            if len(cache) > _ENCODED:
                cache.popitem(last=False)
        return found


def _set_refits_itself(policy: Policy, value: bool) -> None:
    """Let a policy fit its models when they are due, or leave that to the agent."""
    if isinstance(policy, Refits):
        policy.refits_itself = value


def _learned(
    state: State, rewards: list[tuple[Made, int, float]], lost: list[Note] | None = None
) -> State:
    """Return the state after some rewards; some others will not come."""
    if not rewards and not lost:
        return state
    policy = state.policy.fork()
    if lost and isinstance(policy, AwaitsRewards):
        policy.give_up(*lost)
    traffic = state.traffic
    for made, at, reward in rewards:
        policy.update(made.notes[at].widened(policy.dim, policy.context_dim), reward)
        traffic = traffic.rewarded(reward, None if at else made.weight)
    return state._replace(policy=policy, traffic=traffic)


def _fitted(encoder: Encoder, rows: Rows, dim: int, room: float = np.inf) -> Encoded:
    """Return rows as a slate; columns that an encoder refuses, or has no room for, are hidden."""

    def tried(some: Rows) -> Encoded | None:
        try:
            found = encoder.encode(some, dim=dim)
        except InvalidTableError:
            return None
        return found if found.slate.dim <= room else None

    found = tried(rows)
    if found is not None:
        return found
    kept = Rows(rows.items, (), [])
    for name, column in zip(rows.names, rows.columns, strict=True):
        more = Rows(rows.items, (*kept.names, name), [*kept.columns, column])
        kept = kept if tried(more) is None else more
    return encoder.encode(kept, dim=dim)


def _refused(encoder: Encoder, known: int, error: Exception) -> InvalidTableError:
    entered = [name for name, each in encoder.columns.items() if each.features[-1] >= known]
    names = ", ".join(repr(name) for name in entered[:5])
    return InvalidTableError(
        f"column {names} has values that are new, and {error}, or list the column in the "
        "setting ignore"
    )
