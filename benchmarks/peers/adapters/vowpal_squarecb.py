"""Vowpal Wabbit: contextual bandit with action-dependent features, SquareCB exploration."""

import random

import vowpalwabbit

PACKAGES = ("vowpalwabbit",)
TITLE = "Vowpal Wabbit, SquareCB"
SEES = "all"


class Player:
    def __init__(self, n_arms: int, dim: int) -> None:
        self.workspace = vowpalwabbit.Workspace("--cb_explore_adf --squarecb --quiet")
        self.random = random.Random(0)

    def choose(self, options) -> int:
        self.lines = [
            "| " + " ".join(f"{j}:{value:.6g}" for j, value in enumerate(row))
            for row in options.tolist()
        ]
        self.probabilities = self.workspace.predict("\n".join(self.lines))
        return self.random.choices(range(len(self.lines)), self.probabilities)[0]

    def learn(self, options, arm: int, reward: float) -> None:
        # It minimises costs. The label stands before the features of the chosen action.
        label = f"0:{-reward:.6g}:{self.probabilities[arm]:.6g} "
        self.lines[arm] = label + self.lines[arm]
        self.workspace.learn("\n".join(self.lines))
