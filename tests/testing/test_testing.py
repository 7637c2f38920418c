"""The public checks: they accept an honest class, and each finds the fault it is there for."""

import time
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import pytest

from halfseen import (
    Agent,
    Choice,
    Facts,
    Policy,
    Round,
    Slate,
    UnknownDecisionError,
    params,
    register_policy,
)
from halfseen.agent.journal import MemoryJournal
from halfseen.policies.abilities import AwaitsRewards, Grows, UsesContext
from halfseen.seeding import stream
from halfseen.state import Array, Each, Real
from halfseen.testing import (
    agent_checks,
    check_agent,
    check_journal,
    check_policy,
    check_world,
    journal_checks,
    policy_checks,
    world_checks,
)
from halfseen.worlds import base as registry
from halfseen.worlds.base import World, register_world


@register_policy
class Steps(Policy):
    """Follows the gradient of the latest error, divided by the size of the arm."""

    step: float = params.real(default=0.5, low=0.0, high=2.0)
    STATE: ClassVar = {"weights": Array(("dim",))}

    def setup(self):
        self.weights = np.zeros(self.dim)

    def decide(self, slate):
        return Choice.best(slate.values @ self.weights)

    def update(self, note, reward):
        arm = np.nan_to_num(note.arm)
        error = reward - arm @ self.weights
        self.weights = self.weights + self.step * error * arm / (1.0 + arm @ arm)


class PlaysTheWorst(Steps):
    def decide(self, slate):
        choice = super().decide(slate)
        return choice._replace(arm=int(choice.parts[0].argmin()))


class CountsItsChoices(Steps):
    STATE: ClassVar = {"n_choices": Real()}
    n_choices = 0.0

    def decide(self, slate):
        self.n_choices += 1.0
        return super().decide(slate)


class LooksAtPositions(Steps):
    def decide(self, slate):
        return Choice.best(slate.values @ self.weights + 0.1 * np.arange(slate.n_arms))


class AveragesWhatIsSeen(Steps):
    def decide(self, slate):
        with np.errstate(invalid="ignore"):
            return Choice.best(slate.values @ self.weights / slate.mask.sum(axis=1))


class StepsTooFar(Steps):
    def update(self, note, reward):
        with np.errstate(all="ignore"):
            arm = np.nan_to_num(note.arm)
            self.weights = self.weights + (reward - arm @ self.weights) * arm


class EditsInPlace(Steps):
    def update(self, note, reward):
        before = self.weights
        super().update(note, reward)
        before[:] = self.weights
        self.weights = before


class SharesItsSteps(Steps):
    """Restores what fails, but forks write into one array."""

    def setup(self):
        super().setup()
        self.shared, self.n_steps = np.zeros((99, self.dim)), 0

    def update(self, note, reward):
        super().update(note, reward)
        self.n_steps += 1
        self.shared[self.n_steps] = self.weights
        self.weights = self.shared[self.n_steps]


class HasNoSeed(Steps):
    def decide(self, slate):
        return Choice.best(np.random.default_rng().random(slate.n_arms))


class SavesNothing(Steps):
    def after_loading(self):
        self.setup()


class ChangesItsSettings(Steps):
    def setup(self):
        super().setup()
        self.__dict__["step"] /= 2


class KeepsAll(Steps):
    STATE: ClassVar = {"rewards": Each(Real())}

    def setup(self):
        super().setup()
        self.rewards = ()

    def update(self, note, reward):
        super().update(note, reward)
        self.rewards = (*self.rewards, reward)


class LearnsWhatItExpects(AwaitsRewards, Steps):
    def await_reward(self, note):
        self.update(note, 1.0)

    def give_up(self, *notes):
        pass


class LearnsTheStartOfALog(Steps):
    def learn_rows(self, slate, rewards, contexts=None):
        super().learn_rows(slate.some([0]), rewards[:1])


class ForgetsWhenItGrows(Grows, Steps):
    def grow(self, dim, levels):
        self.weights = np.zeros(dim)


class InContext(UsesContext, Steps):
    """Adds a step for the context, which is the same for all arms."""

    STATE: ClassVar = {"taste": Array(("context_dim",))}

    def setup(self):
        super().setup()
        self.taste = np.zeros(self.context_dim)

    def decide(self, slate):
        shared = 0.0 if slate.context is None else float(np.nan_to_num(slate.context) @ self.taste)
        return Choice.best(slate.values @ self.weights + shared)

    def update(self, note, reward):
        super().update(note, reward)
        if note.context is not None:
            row = np.nan_to_num(note.context)
            self.taste = self.taste + 0.1 * reward * row / (1.0 + row @ row)

    def grow_context(self, dim, levels):
        self.taste = np.pad(self.taste, (0, dim - len(self.taste)))


class MissesTheContext(InContext):
    def decide(self, slate):
        choice = super().decide(slate)
        return Choice.best(choice.parts[1] + (slate.context is None))


class ForgetsWhenContextsGrow(InContext):
    def grow_context(self, dim, levels):
        self.taste = np.zeros(dim)


FAULTY_POLICIES = {
    "no_context_is_a_hidden_one": MissesTheContext,
    "growing_contexts_equal_having_known_all_features": ForgetsWhenContextsGrow,
    "expecting_a_reward_changes_no_estimate": LearnsWhatItExpects,
    "a_log_may_come_in_any_parts": LearnsTheStartOfALog,
    "growing_equals_having_known_all_features": ForgetsWhenItGrows,
    "every_arm_has_a_score_and_the_best_is_chosen": PlaysTheWorst,
    "deciding_changes_nothing": CountsItsChoices,
    "permuting_arms_permutes_the_choice": LooksAtPositions,
    "an_arm_with_nothing_seen_is_legal": AveragesWhatIsSeen,
    "scores_stay_finite_at_the_limits": StepsTooFar,
    "same_seed_same_trace": HasNoSeed,
    "hooks_replace_and_do_not_edit": EditsInPlace,
    "continuations_are_independent": SharesItsSteps,
    "a_saved_policy_goes_on_bit_by_bit": SavesNothing,
    "settings_build_an_equal_policy": ChangesItsSettings,
    "memory_is_bounded": KeepsAll,
}


class Coins(World):
    """Arms of random entries, the first of which pays; half of all entries are seen."""

    horizon: int = params.horizon(default=8)
    noise_scale: float = params.real(default=0.1, low=0.0)

    def realize(self, seed):
        return Tosses(self, seed)


@dataclass(frozen=True)
class Tosses:
    world: Coins
    seed: int

    @property
    def facts(self):
        return Facts(seed=self.seed, dim=3, n_arms=4, horizon=self.world.horizon, observe_prob=0.5)

    def rounds(self):
        arms_stream, noises = stream(self.seed, "arms"), stream(self.seed, "noise")
        for _ in range(self.world.horizon):
            arms = arms_stream.standard_normal((4, 3))
            mask = arms_stream.random((4, 3)) < 0.5
            noise = float(self.world.noise_scale * noises.standard_normal())
            yield Round(Slate(arms, mask), arms[:, 0].copy(), noise, arms)


class Walks:
    """A realization whose rounds a function changes."""

    def __init__(self, tosses, change):
        self.tosses, self.change = tosses, change

    @property
    def facts(self):
        return self.tosses.facts

    def rounds(self):
        return self.change(self.tosses)


def coins(realize):
    """Return a world whose realizations are made by a function of a toss and its seed."""

    class Faulty(Coins):
        def realize(self, seed):
            return realize(super().realize(seed), seed)

    return Faulty


def moved_by_noise(tosses):
    for round in tosses.rounds():
        arms = round.arms + round.noise
        yield round._replace(arms=arms, slate=Slate(arms, round.slate.mask))


def lying(tosses):
    for round in tosses.rounds():
        yield round._replace(slate=Slate(round.arms + 1.0))


class Once:
    """A realization that can be walked once."""

    def __init__(self, tosses):
        self.facts, self._left = tosses.facts, tosses.rounds()

    def rounds(self):
        return self._left


class Shared:
    """A realization that lends the same arrays to everyone."""

    def __init__(self, tosses):
        self.facts, self._all = tosses.facts, list(tosses.rounds())

    def rounds(self):
        return iter(self._all)


def unseeded(tosses, seed):
    return Tosses(tosses.world, int(np.random.default_rng().integers(2**40)))


def early(tosses, seed):
    return Walks(tosses, lambda tosses: list(tosses.rounds())[:-1])


FAULTY_WORLDS = {
    "same_seed_same_rounds": coins(unseeded),
    "another_seed_is_another_realization": coins(lambda tosses, seed: Tosses(tosses.world, 0)),
    "rounds_can_be_walked_twice": coins(lambda tosses, seed: Once(tosses)),
    "rounds_belong_to_whoever_walks_them": coins(lambda tosses, seed: Shared(tosses)),
    "slates_show_the_truth": coins(lambda tosses, seed: Walks(tosses, lying)),
    "facts_are_true": coins(early),
    "noise_does_not_move_arms": coins(lambda tosses, seed: Walks(tosses, moved_by_noise)),
    "the_plain_form_survives_json": coins(lambda tosses, seed: tosses),
}


class TakesPositions(Agent):
    def choose(self, options, *, context=None):
        return super().choose([list(row.values()) for row in options])


class LearnsTwice(Agent):
    def learn(self, decision, reward):
        waiting = {each.id for each in self.pending}
        super().learn(decision if decision in waiting else next(iter(waiting)), reward)


class CountsItsScores(Agent):
    def score(self, options, *, context=None):
        scored = super().score(options)
        super().observe(options, [each.estimate + 1.0 for each in scored])
        return scored


class ForgetsWhatWaits(Agent):
    def save(self, path):
        self.journal._open.clear()
        super().save(path)


class FillsHoles(Agent):
    def choose(self, options, *, context=None):
        return super().choose(np.nan_to_num(options))


class LearnsOtherwiseById(Agent):
    def learn(self, decision, reward):
        super().learn(decision, reward + 0.1 if isinstance(decision, str) else reward)


class NeverForgets(Agent):
    def setup(self):
        self.__dict__["max_pending"] = 10_000
        super().setup()


class IgnoresWhatItDoesNotKnow(Agent):
    def learn(self, decision, reward):
        with suppress(UnknownDecisionError):
            super().learn(decision, reward)


class CountsWithoutALock(Agent):
    def choose(self, options, *, context=None):
        traffic = self._member.state.traffic
        time.sleep(0.001)
        self._member.state = self._member.state._replace(traffic=traffic)
        return super().choose(options)


FAULTY_AGENTS = {
    "names_decide_and_not_positions": TakesPositions,
    "arrays_are_chosen_from_as_by_the_policy": FillsHoles,
    "scores_change_nothing": CountsItsScores,
    "a_reward_is_learned_once_by_id": LearnsTwice,
    "a_decision_counts_by_its_id": LearnsOtherwiseById,
    "beyond_max_pending_the_oldest_is_forgotten": NeverForgets,
    "refused_calls_change_nothing": IgnoresWhatItDoesNotKnow,
    "threads_may_share_an_agent": CountsWithoutALock,
    "a_saved_agent_goes_on": ForgetsWhatWaits,
}


class PublishesWithALostLease(MemoryJournal):
    def _check(self, lead):
        self._owner, self._last = lead


class TakesAnIdTwice(MemoryJournal):
    def _check_new(self, event, places):
        if event.kind != "choose":
            super()._check_new(event, places)


class ExpiresTwice(MemoryJournal):
    def _check_new(self, event, places):
        if event.kind != "expire":
            super()._check_new(event, places)


class LeavesAGap(MemoryJournal):
    def append(self, events, lead=None, **files):
        found = super().append(events, lead, **files)
        if lead is not None and events:
            self._last += 1
        return found


class ReadsTheLatestFirst(MemoryJournal):
    def news(self, after, most=1000):
        return super().news(after, most)[::-1]


class ReadsLater(MemoryJournal):
    def news(self, after, most=1000):
        self._known, known = super().news(after, most), getattr(self, "_known", [])
        return known


class TearsACheckpoint(MemoryJournal):
    def append(self, events, lead=None, *, view=None, checkpoint=None):
        if checkpoint is not None:
            self._files["checkpoint"] = self._last, checkpoint[:1]
        return super().append(events, lead, view=view, checkpoint=checkpoint)


class BelievesEveryDeadline(MemoryJournal):
    def lease(self, owner, seconds, ahead=0.0):
        held, self._until = self._until, min(self._until, self.now() + ahead + 2 * seconds)
        found = super().lease(owner, seconds, ahead)
        self._until = held if found is None else self._until
        return found


FAULTY_JOURNALS = {
    "a_lost_lease_publishes_nothing": PublishesWithALostLease,
    "an_id_is_one_decision": TakesAnIdTwice,
    "a_decision_expires_once": ExpiresTwice,
    "numbers_have_no_gaps": LeavesAGap,
    "events_are_read_in_their_order": ReadsTheLatestFirst,
    "an_own_write_is_read_at_once": ReadsLater,
    "a_checkpoint_is_whole": TearsACheckpoint,
    "a_clock_that_was_set_back_holds_no_lease": BelievesEveryDeadline,
}


@pytest.fixture
def registered():
    yield register_world("coins")(Coins)
    del registry._KINDS["coins"]


def steps(policy=Steps):
    return lambda: policy(dim=4, step=0.3)


def test_a_correct_policy_with_a_context_passes():
    check_policy(lambda: InContext(dim=6))


def test_a_correct_policy_world_and_agent_pass(registered):
    check_policy(steps())
    check_world(registered)
    check_agent(lambda: Agent(policy=Steps(dim=6)))
    check_journal(MemoryJournal)


FAULTY = {
    "policy": (policy_checks(), {name: steps(each) for name, each in FAULTY_POLICIES.items()}),
    "world": (world_checks(), FAULTY_WORLDS),
    "agent": (
        agent_checks(),
        {name: partial(each, policy=Steps(dim=6)) for name, each in FAULTY_AGENTS.items()},
    ),
    "journal": (journal_checks(), FAULTY_JOURNALS),
}


@pytest.mark.parametrize("kind", FAULTY)
def test_every_check_has_a_fault_to_find(kind):
    checks, faulty = FAULTY[kind]
    assert {str(check) for check in checks} == faulty.keys()


@pytest.mark.parametrize(
    ("kind", "check"), [(kind, check) for kind in FAULTY for check in FAULTY[kind][0]], ids=str
)
def test_the_check_finds_its_fault_and_names_its_claim(kind, check):
    with pytest.raises(AssertionError) as failure:
        check(FAULTY[kind][1][check.name])
    assert str(failure.value).startswith(f"{check.name}: {check.claim} Failed: ")


def test_a_skipped_check_is_not_run_and_must_exist():
    with pytest.raises(AssertionError, match="memory_is_bounded"):
        check_policy(steps(KeepsAll))
    check_policy(steps(KeepsAll), skip=["memory_is_bounded"])
    with pytest.raises(ValueError, match="got 'memory'"):
        check_policy(steps(), skip=["memory"])
    with pytest.raises(AssertionError, match="put @register_world on its class"):
        check_world(Coins)
    check_world(Coins, skip=["the_plain_form_survives_json"])
