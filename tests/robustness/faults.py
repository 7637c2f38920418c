"""Interrupts: a call that is cut off anywhere leaves the old state or the new one."""

import contextlib
import sys
from copy import deepcopy
from pathlib import Path

import numpy as np

import halfseen
from halfseen import (
    AmbientOful,
    Greedy,
    Imputed,
    LatentUcb,
    LinearThompson,
    Oracle,
    Policy,
    TofuPov,
    Uniform,
)
from halfseen.paper import Pslb
from halfseen.testing.policies import offers_in, state_bytes

INTERRUPTED = str(Path(halfseen.__file__).parent), contextlib.__file__
DIM = 5
LOST = "the interrupt was lost"
SIZES = (4, 3, 600, 5)  # now and then so many that waiting arms enter the sums

POLICIES = {
    "ambient": lambda: AmbientOful(dim=DIM),
    "ambient in many dimensions": lambda: AmbientOful(dim=130),
    "greedy": lambda: Greedy(dim=DIM),
    "thompson": lambda: LinearThompson(dim=DIM),
    "uniform": lambda: Uniform(dim=DIM),
    "pslb": lambda: Pslb(dim=DIM, rank=2, burn_in=3),
    "oracle": lambda: Oracle(basis=np.eye(DIM)[:, :2]),
    "imputed": lambda: Imputed(dim=DIM, first_fit=3, max_rows=50),
    "tofu": lambda: TofuPov(dim=DIM, rank=2, observe_prob=0.7, burn_in=4),
    "tofu with full history": lambda: TofuPov.full_history(
        dim=DIM, rank=2, observe_prob=None, burn_in=4
    ),
    "latent-ucb": lambda: LatentUcb(memory_bytes=4000),
}


class Interrupter:
    """Raises a KeyboardInterrupt at the n-th event of a kind inside of a block; at 0 it counts."""

    def __init__(self, kind: str, at: int = 0) -> None:
        self.kind, self.at, self.n_events = kind, at, 0

    def __enter__(self) -> "Interrupter":
        self._outer = sys.gettrace()  # that of coverage, which would count nothing from here on
        sys.settrace(self._trace)
        return self

    def __exit__(self, *failure: object) -> None:
        sys.settrace(self._outer)

    def _trace(self, frame, event, argument):
        if not frame.f_code.co_filename.startswith(INTERRUPTED):
            return None
        if event == self.kind:
            self.n_events += 1
            if self.n_events == self.at:
                sys.settrace(None)
                raise KeyboardInterrupt
        return self._trace


def moments(make, n_rounds):
    """Yield a policy before some of its rounds, with a slate, and a decision with its reward."""
    policy = make()
    late = None
    for index, (table, rewards) in enumerate(offers_in(policy.dim or DIM, n_rounds, SIZES, 0)):
        yield index, policy, table, late
        decision = policy.choose(table)
        if late is not None:
            policy.learn(*late)
        late = decision, float(rewards[decision.arm])


class Cut:
    """A call that is cut off at one of its `n_points`, each time on another twin of a policy."""

    def __init__(self, policy: Policy, call, kind: str) -> None:
        self.policy, self.call, self.kind = policy, call, kind
        done = deepcopy(policy)
        with Interrupter(kind) as counter:
            call(done)
        self.n_points = counter.n_events
        self.before, self.done = state_bytes(policy), state_bytes(done)

    def at(self, point: int) -> str | None:
        """Cut the call off; return what is wrong with what is left, or None."""
        policy = deepcopy(self.policy)
        try:
            with Interrupter(self.kind, point):
                self.call(policy)
        except KeyboardInterrupt:
            pass
        else:  # something was cached meanwhile, and the call had fewer points
            return LOST
        after = state_bytes(policy)
        if after == self.done:
            return None
        if after != self.before:
            return "half of a change was left behind"
        self.call(policy)
        return None if state_bytes(policy) == self.done else "the next call went wrong"


def calls(table, late):
    """Return what can be cut off, by name."""
    found = {
        "choose": lambda policy: policy.choose(table),
        "absorb": lambda policy: policy.absorb(table),
    }
    if late is not None:
        found["learn"] = lambda policy: policy.learn(*late)
    return found


def run(n: int, seed: int) -> tuple[int, list[str]]:
    """Cut off about n calls at random points; return how many were, and what failed."""
    random, failures, tried = np.random.default_rng(seed), [], 0
    while tried < n:
        name = str(random.choice(list(POLICIES)))
        for index, policy, table, late in moments(POLICIES[name], 9):
            for what, call in calls(table, late).items():
                kind = str(random.choice(["call", "line"]))
                cut = Cut(policy, call, kind)
                at = 1 + int(random.integers(cut.n_points))
                tried += 1
                wrong = cut.at(at)
                if wrong == LOST:
                    tried -= 1
                elif wrong is not None:
                    failures.append(
                        f"{name}, round {index + 1}, {what} at {kind} {at} (seed {seed}): {wrong}"
                    )
    return tried, failures
