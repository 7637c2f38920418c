"""Other libraries as players, by their documented online path and with their default settings.

A player is made once per run with (n_arms, dim). It needs to see every entry. A library is imported
when its player is made, which only happens inside of the peers' environment, where

    python -m benchmarks.peers.players NAME ROUNDS

plays rounds from a file and prints one line of JSON, with an "error" if something failed.
"""

import json
import random
import sys
import time
import traceback
import warnings

import numpy as np


class VowpalWabbit:
    """Action-dependent features, SquareCB exploration."""

    PACKAGE, TITLE = "vowpalwabbit", "Vowpal Wabbit, SquareCB"

    def __init__(self, n_arms, dim):
        import vowpalwabbit

        self.workspace = vowpalwabbit.Workspace("--cb_explore_adf --squarecb --quiet")
        self.random = random.Random(0)

    def choose(self, options):
        self.lines = [
            "| " + " ".join(f"{j}:{value:.6g}" for j, value in enumerate(row))
            for row in options.tolist()
        ]
        self.probabilities = self.workspace.predict("\n".join(self.lines))
        return self.random.choices(range(len(self.lines)), self.probabilities)[0]

    def learn(self, options, arm, reward):
        # It minimises costs. The label stands before the features of the chosen action.
        label = f"0:{-reward:.6g}:{self.probabilities[arm]:.6g} "
        self.lines[arm] = label + self.lines[arm]
        self.workspace.learn("\n".join(self.lines))


class River:
    """A model per arm; the one context that it takes is the whole slate."""

    PACKAGE, TITLE = "river", "River LinUCB, a model per position"

    def __init__(self, n_arms, dim):
        from river import bandit

        self.policy = bandit.LinUCBDisjoint(seed=0)
        self.arms = list(range(n_arms))

    def choose(self, options):
        self.context = dict(enumerate(options.ravel().tolist()))
        return self.policy.pull(self.arms, context=self.context)

    def learn(self, options, arm, reward):
        self.policy.update(arm, self.context, reward)


PLAYERS = {player.__name__: player for player in (VowpalWabbit, River)}


def play(player, options, rewards, means):
    """Play all rounds; return the time of one, and the regret."""
    rewards, arms = rewards.tolist(), []
    started = time.perf_counter()
    for slate, pays in zip(options, rewards, strict=True):
        arm = player.choose(slate)
        player.learn(slate, arm, pays[arm])
        arms.append(arm)
    taken = time.perf_counter() - started
    regret = (means.max(axis=1) - means[np.arange(len(arms)), arms]).sum()
    return {"microseconds": taken / len(arms) * 1e6, "regret": float(regret)}


def main(name, path):
    warnings.simplefilter("ignore")
    try:
        with np.load(path) as rounds:
            options = rounds["all"]
            player = PLAYERS[name](*options.shape[1:])
            found = play(player, options, rounds["rewards"], rounds["means"])
    except Exception as error:
        found = {"error": traceback.format_exception_only(error)[-1].strip()}
    print("\n" + json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
