"""A fuzz of calls: any policy, any settings, any slates and rewards, in any order.

What must hold: calls that are allowed succeed, or raise one of the errors that their settings
state; every score is finite; nothing warns; a call that is refused changes nothing; a copy from a
file continues alike.

    PYTHONPATH=tests python -m robustness.calls SEED

repeats one case.
"""

import json
import sys
import traceback
import warnings

import numpy as np

from halfseen import (
    Decision,
    HalfseenError,
    HorizonReachedError,
    LatentUcb,
    Unidentifiable,
    UnknownDecisionError,
)
from halfseen.errors import InvalidRewardError, InvalidSlateError
from halfseen.policies.abilities import Grows, UsesContext
from halfseen.testing.policies import copy_of, expect_scores, state_bytes
from robustness.hostile import BAD_REWARDS, REWARDS, Slates, bad_slates, in_some_form, reward
from robustness.players import PLAYERS

# Shares of the policies: those with the most mathematics most often.
SHARES = {
    "TofuPov": 6,
    "LatentUcb": 4,
    "Pslb": 4,
    "Imputed": 0.5,
    "Standardized": 0.5,
    "Uniform": 0.3,
    "SameArm": 0.3,
}
DIMS = (1, 1, 2, 2, 3, 4, 5, 6, 8, 12)
WIDE_DIMS = (40, 130, 260)


class BrokenRuleError(Exception):
    """Something that must hold does not."""


class Case:
    """One policy and a stretch of calls, all of it drawn from one seed."""

    def __init__(self, seed):
        self.random = random = np.random.default_rng(seed)
        weights = np.array([SHARES.get(name, 1.0) for name in PLAYERS])
        self.name = str(random.choice(list(PLAYERS), p=weights / weights.sum()))
        wide = random.random() < 0.01 and self.name not in ("Imputed", "Standardized")
        self.dim = int(random.choice(WIDE_DIMS if wide else DIMS))
        self.slates = Slates(random, self.dim)
        self.policy, self.n_calls = None, 0
        self.reward_kind = str(random.choice(REWARDS))
        self.open = []
        self.contexts, self.names = None, None

    def more(self, table):
        """Draw a context and numbers of items, if this case has any."""
        given, random = {}, self.random
        if self.contexts is not None and random.random() < 0.9:
            given["context"] = self.contexts.draw()[0]
        if self.names is not None and random.random() < 0.9:
            given["items"] = random.choice(self.names, len(table))
        return given

    def play(self):
        """Make the policy and call it, until something does not hold."""
        random = self.random
        self.policy = PLAYERS[self.name](random, self.dim)
        if isinstance(self.policy, UsesContext) and random.random() < 0.5:
            self.contexts = Slates(random, int(random.choice(DIMS)))
            self.names = random.permutation(12) if random.random() < 0.7 else None
        for _ in range(int(random.integers(10, 25 if self.dim > 12 else 90))):
            what = random.choice(len(self.MOVES), p=self.SHARES_OF_MOVES)
            self.n_calls += 1
            self.MOVES[what](self)

    def choose(self):
        table = self.slates.draw()
        options = in_some_form(self.random, table)
        before = self._state() if self._may_refuse() else None
        try:
            decision = self.policy.choose(options, **self.more(table))
        except (Unidentifiable, HorizonReachedError):
            if before is None:
                raise
            self._expect_unchanged(before)
            return
        expect_scores(decision, len(table))
        self.open.append(decision)

    def learn(self):
        if not self.open:
            self.choose()
            return
        random = self.random
        late = random.random() < 0.3
        decision = self.open.pop(int(random.integers(len(self.open))) if late else -1)
        if random.random() < 0.02:
            self.reward_kind = str(random.choice(REWARDS))
        if random.random() < 0.3:
            decision = Decision.from_dict(json.loads(json.dumps(decision.to_dict())))
        self.policy.learn(decision, reward(random, self.reward_kind))

    def absorb(self):
        table = self.slates.draw()
        self.policy.absorb(in_some_form(self.random, table), **self.more(table))

    def learn_logged(self):
        table, random = self.slates.draw(), self.random
        given = self.more(table)
        if "context" in given:
            given["contexts"] = np.tile(given.pop("context"), (len(table), 1))
        rewards = [reward(random, self.reward_kind) for _ in table]
        try:
            self.policy.learn_logged(table, rewards, **given)
        except (Unidentifiable, HorizonReachedError):
            if not self._may_refuse():
                raise

    def widen(self):
        policy, random = self.policy, self.random
        if not isinstance(policy, Grows) or (policy.dim or self.dim) > max(DIMS):
            return
        n_new = int(random.integers(1, 4))
        if self.contexts is not None and policy.context_dim and random.random() < 0.5:
            policy.widen(context_dim=policy.context_dim + n_new)
            self.contexts = Slates(random, policy.context_dim)
        elif policy.dim is not None:
            levels = {policy.dim: 0} if policy.dim and random.random() < 0.3 else None
            policy.widen(policy.dim + n_new, levels=levels)
            self.dim = policy.dim
            self.slates = Slates(random, self.dim)

    def ask(self):
        table = self.slates.draw()
        before, given = self._state(), self.more(table)
        try:
            scores = self.policy.score(table, **given)
            parts = [scores.estimates, scores.widths]
            if isinstance(self.policy, LatentUcb):
                reasons = self.policy.explain(table, **given)
                parts += [reasons.features, reasons.missing, reasons.context, reasons.crossed]
        except (Unidentifiable, HorizonReachedError):
            if not self._may_refuse():
                raise
            return
        if not all(np.isfinite(part).all() for part in parts):
            raise BrokenRuleError("an answer is not finite")
        self._expect_unchanged(before)

    def reload(self):
        twin = copy_of(self.policy)
        if state_bytes(twin) != self._state():
            raise BrokenRuleError("a copy differs from what was saved")
        table = self.slates.draw()
        given = self.more(table)
        try:
            ours = self.policy.choose(table, **given)
        except (Unidentifiable, HorizonReachedError):
            return
        theirs = twin.choose(table, **given)
        if ours != theirs:
            raise BrokenRuleError("a copy chooses otherwise")
        if self.random.random() < 0.5:  # else the original plays on
            self.policy, ours = twin, theirs
        self.open.append(ours)

    def bad_slate(self):
        bad = bad_slates(self.policy.dim or self.dim)
        options = bad[int(self.random.integers(len(bad)))]
        if self.policy.dim is None and getattr(options, "shape", 0) == (2, self.dim + 1):
            return  # the first slate says what `dim` is
        call = self.policy.choose if self.random.random() < 0.7 else self.policy.absorb
        self._expect_refused(InvalidSlateError, call, options)

    def bad_reward(self):
        if not self.open:
            return self.bad_slate()
        bad = BAD_REWARDS[int(self.random.integers(len(BAD_REWARDS)))]
        return self._expect_refused(InvalidRewardError, self.policy.learn, self.open[-1], bad)

    def bad_decision(self):
        unknown = ("", "x-1", None, 7, b"id")
        given = unknown[int(self.random.integers(len(unknown)))]
        self._expect_refused(UnknownDecisionError, self.policy.learn, given, 1.0)

    MOVES = (
        choose, learn, absorb, learn_logged, widen, ask, reload, bad_slate, bad_reward, bad_decision
    )  # fmt: skip
    SHARES_OF_MOVES = (0.43, 0.4, 0.03, 0.02, 0.01, 0.02, 0.02, 0.03, 0.03, 0.01)

    def _may_refuse(self):
        policy = self.policy
        return getattr(policy, "impute_ridge", 1.0) == 0.0 or getattr(policy, "horizon", None)

    def _state(self):
        return state_bytes(self.policy)

    def _expect_refused(self, error, call, *arguments):
        before = self._state()
        try:
            call(*arguments)
        except error:
            self._expect_unchanged(before)
        else:
            raise BrokenRuleError(f"{call.__name__} accepts {arguments!r}")

    def _expect_unchanged(self, before):
        if self._state() != before:
            raise BrokenRuleError("a refused call has changed something")


def one(seed):
    """Play the case of a seed; return how many calls it made and what went wrong, if anything."""
    case = Case(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            case.play()
        except Exception as error:
            return case.n_calls, _described(seed, case, error)
    return case.n_calls, None


def _described(seed, case, error):
    place = traceback.extract_tb(error.__traceback__)[-1]
    line = f"{place.filename.rsplit('/', 1)[-1]}:{place.lineno}"
    kind = "refused for no stated cause: " if isinstance(error, HalfseenError) else ""
    return (
        f"{kind}{type(error).__name__}: {error} ({line})"
        f"\n    {case.policy or case.name}, call {case.n_calls}, slates {case.slates.kind}"
        f"\n    PYTHONPATH=tests python -m robustness.calls {seed}"
    )


def run(n, seed):
    """Make at least n calls in cases from a seed on; return their number and what failed."""
    tried, failures = 0, []
    while tried < n:
        n_calls, failure = one(seed)
        tried += n_calls
        seed += 1
        if failure is not None:
            failures.append(failure)
    return tried, failures


if __name__ == "__main__":
    for given in sys.argv[1:]:
        player = Case(int(given))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            player.play()
        print(f"case {given}: {player.n_calls} calls of {player.policy}, nothing failed")
