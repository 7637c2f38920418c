"""Contracts of a journal, in which an agent keeps its events: one function per claim."""

from collections.abc import Callable, Collection, Sequence

import numpy as np

from halfseen.agent.events import CHOOSE, EXPIRED, Asked, Event, Made, expired, rewarded
from halfseen.agent.journal import Journal, Lead, Stale, Taken
from halfseen.frames import Reader
from halfseen.testing.policies import Check, checks_in, expect, expect_refusal, run_checks
from halfseen.values import Note

JournalFactory = Callable[[], Journal]

_SECONDS = 10.0


def check_journal(factory: JournalFactory, *, skip: Collection[str] = ()) -> None:
    """Check that journals keep their contracts.

    Parameters
    ----------
    factory : callable
        Called without arguments, returns an empty journal.
    skip : names of checks

    Raises
    ------
    AssertionError
        A claim does not hold; the message says which one, and how it failed.

    Examples
    --------
    >>> from halfseen.agent.journal import MemoryJournal
    >>> check_journal(MemoryJournal)
    """
    run_checks(journal_checks(), factory, skip)


def journal_checks() -> tuple[Check, ...]:
    """Return the individual checks; call each with a factory.

    Examples
    --------
    >>> [check.name for check in journal_checks()][:2]
    ['a_lost_lease_publishes_nothing', 'an_id_is_one_decision']
    """
    return checks_in(globals())


@Check
def a_lost_lease_publishes_nothing(factory: JournalFactory) -> None:
    """Who has lost the lease, or does not know the last event, writes nothing as the learner."""
    journal = factory()
    lead = _lead(journal, "a")
    journal.append([_decision("one")])
    expect(journal.lease("b", _SECONDS, 2 * _SECONDS - 1.0), "a lease did not end")
    for what, stale in (("lost lease", lead), ("lead of another event", lead._replace(last=7))):
        expect_refusal(journal.append, [_decision("two")], stale, error=Stale, what=f"a {what}")
        expect_refusal(
            lambda stale=stale: journal.append([], stale, view=b"late"), error=Stale, what=what
        )
        expect_refusal(journal.number, stale, _numbered(journal, 0), error=Stale, what=what)
    view = journal.view()
    expect(view is None or view[1] != b"late", "a view was published after the lease was lost")
    expect(len(journal.news(0)) == 1, "an event was appended after the lease was lost")


@Check
def an_id_is_one_decision(factory: JournalFactory) -> None:
    """The id of a decision, and a reward's decision, place and key, count once; all or none."""
    journal = factory()
    journal.append([_decision("one")])
    expect_refusal(journal.append, [_decision("one")], error=Taken, what="an id that is taken")
    both = [_decision("two"), _decision("one")]
    expect_refusal(journal.append, both, error=Taken, what="a new id beside one that is taken")
    expect([*journal.decisions(["one", "two"])] == ["one"], "one of two events was appended")
    made = journal.decisions(["one"])["one"]
    first = rewarded(made, 0, "click", 0.5, final=False)
    journal.append([first])
    expect_refusal(journal.append, [first], error=Taken, what="a reward that came before")
    expect(journal.rewards(["one"]) == {"one": {(0, "click"): 0.5}}, "a reward is not kept")


@Check
def a_decision_expires_once(factory: JournalFactory) -> None:
    """A place is closed once: by its final reward, or because its decision expired."""
    journal = factory()
    journal.append([_decision("one"), _decision("two")])
    before = journal.decisions(["one", "two"])
    expect(len(journal.pending()) == 2, "a decision does not wait")
    journal.append([expired([before["one"]], 0.0, EXPIRED)])
    journal.append([rewarded(before["two"], 0, "", 1.0, final=True)])
    for id in before:
        again = expired([before[id]], 0.0, EXPIRED)
        expect_refusal(journal.append, [again], error=Taken, what="a second end of a decision")
    late = rewarded(before["one"], 0, "", 1.0, final=True)
    expect_refusal(journal.append, [late], error=Taken, what="a reward for a place as it was")
    expect(not journal.pending(), "a decision waits after it was closed")
    expect(len(journal.gone(5)) == 2, "a closed decision is not known")


@Check
def numbers_have_no_gaps(factory: JournalFactory) -> None:
    """Numbers are 1, 2, 3, …, whoever appends, and however many are given at once."""
    journal = factory()
    for n, by_learner in ((2, False), (1, True), (3, False)):
        events = [_decision(f"{n} {at}") for at in range(n)]
        if by_learner:
            _number_all(journal)
            journal.append(events, _lead(journal))
        else:
            journal.append(events)
    expect(journal.n_behind(0) == 6, f"{journal.n_behind(0)} events instead of 6")
    _number_all(journal)
    found = [event.number for event in journal.news(0)]
    expect(found == [1, 2, 3, 4, 5, 6], f"the numbers are {found}")
    expect(journal.n_behind(6) == 0, "events have no number after all got one")


@Check
def events_are_read_in_their_order(factory: JournalFactory) -> None:
    """Events are read in the order of their numbers, then in that in which they were appended."""
    journal = factory()
    ids = [f"id {at}" for at in range(8)]
    for id in ids[:5]:
        journal.append([_decision(id)])
    _number_all(journal, most=3)
    for id in ids[5:]:
        journal.append([_decision(id)])
    for after in (0, 2, 3):
        found = [event.body["id"] for event in journal.news(after)]
        expect(found == ids[after:], f"after {after} come {found}")
    expect(len(journal.news(0, 4)) == 4, "more events are read than were asked for")


@Check
def an_own_write_is_read_at_once(factory: JournalFactory) -> None:
    """What was appended is read by the next call: events, options, decisions with their notes."""
    journal = factory()
    journal.append([_decision("one")])
    (event,) = journal.news(0)
    asked = _decision("one").asked
    expect(asked and event.asked, "an event has lost its options")
    expect(event.asked and asked and event.asked.rows.items == asked.rows.items, "other options")
    _number_all(journal)
    made = journal.decisions(["one"])["one"]
    expect((made.number, made.items, made.places) == (1, ("hat",), (None,)), f"it is {made}")
    expect([note.round for note in made.notes] == [1], "a decision has lost its notes")
    journal.append([rewarded(made, 0, "", 1.0, final=True)], _lead(journal))
    (reward,) = journal.news(1)
    expect(len(reward.made[0].notes) == 1, "a reward comes without the notes of its decision")
    expect(not journal.pending(), "a decision waits after its reward")
    expect([each.id for each in journal.pending(9, as_of=1)] == ["one"], "it waited before that")


@Check
def a_checkpoint_is_whole(factory: JournalFactory) -> None:
    """A view and a checkpoint are written with their events or not at all; the latest is read."""
    journal = factory()
    journal.append([_decision("one")], _lead(journal), view=b"v1", checkpoint=b"c1")
    again = _decision("one")
    expect_refusal(
        lambda: journal.append([again], _lead(journal), view=b"no", checkpoint=b"no"),
        error=Taken,
        what="an id that is taken",
    )
    expect(journal.checkpoint() == (1, b"c1"), f"the checkpoint is {journal.checkpoint()}")
    expect(journal.view() == (1, b"v1"), f"the view is {journal.view()}")
    content = bytes(range(256)) * 400
    journal.append([], _lead(journal), checkpoint=content)
    journal.append([_decision("two")], _lead(journal), view=b"v2")
    expect(journal.checkpoint() == (1, content), "a checkpoint is not read as it was written")
    expect(journal.view(1) == (2, b"v2"), "the latest view is not read")
    expect(journal.view(2) is None, "a view is read that is not later")


@Check
def a_clock_that_was_set_back_holds_no_lease(factory: JournalFactory) -> None:
    """A lease ends in its time; a deadline further ahead is from before a clock was set back."""
    journal = factory()
    expect(journal.lease("a", _SECONDS), "a free lease was refused")
    expect(journal.lease("a", _SECONDS), "a lease could not be renewed")
    expect(journal.lease("b", _SECONDS) is None, "two owners hold the lease")
    later = journal.lease("b", _SECONDS, 1000.0 * _SECONDS)
    expect(later, "a lease did not end")
    expect(journal.lease("c", _SECONDS), "a deadline from another time holds the lease")
    journal.release("b")
    expect(journal.lease("a", _SECONDS) is None, "another owner has given the lease back")
    journal.release("c")
    expect(journal.lease("a", _SECONDS), "the owner has not given the lease back")


# Tools


def _decision(id: str) -> Event:
    asked = Asked(Reader(id="sku").read([{"sku": "hat", "price": 3.0}, {"sku": "coat"}]))
    body = {"id": id, "arms": [0], "probabilities": [1.0], "weight": None, "explore": True}
    return Event(CHOOSE, body, asked.canonical(), made=(Made(id, ("hat",), 0.0, (None,)),))


def _lead(journal: Journal, owner: str = "a") -> Lead:
    found = journal.lease(owner, _SECONDS)
    assert found is not None
    return Lead(owner, found.last)


def _numbered(journal: Journal, last: int) -> Sequence[Event]:
    """Return events without a number as the learner takes them up."""
    news = [event for event in journal.news(last) if not event.number]
    events = []
    for number, event in enumerate(news, last + 1):
        note = Note(number, -1, np.array([3.0, np.nan]))
        made = event.made[0]._replace(number=number, notes=(note,))
        events.append(event._replace(number=number, made=(made,)))
    return events


def _number_all(journal: Journal, most: int | None = None) -> None:
    lead = _lead(journal)
    journal.number(lead, _numbered(journal, lead.last)[:most])
