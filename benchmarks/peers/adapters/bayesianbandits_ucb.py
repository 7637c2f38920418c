"""bayesianbandits: one shared regression over arm features, upper confidence bound."""

import numpy as np
from bayesianbandits import (
    Arm,
    FunctionArmFeaturizer,
    LipschitzContextualAgent,
    NormalRegressor,
    UpperConfidenceBound,
)

PACKAGES = ("bayesianbandits",)
TITLE = "bayesianbandits UCB, shared learner"
SEES = "all"


class Player:
    def __init__(self, n_arms: int, dim: int) -> None:
        def features_of_arms(contexts, tokens):
            slates = np.asarray(contexts).reshape(-1, n_arms, dim)
            return slates[:, list(tokens)].transpose(0, 2, 1)

        self.agent = LipschitzContextualAgent(
            arms=[Arm(arm) for arm in range(n_arms)],
            policy=UpperConfidenceBound(),
            arm_featurizer=FunctionArmFeaturizer(features_of_arms),
            learner=NormalRegressor(alpha=1.0, beta=1.0),
            random_seed=0,
        )

    def choose(self, options) -> int:
        # A context is the whole slate in one row; the featurizer cuts it up again.
        (arm,) = self.agent.pull(options.reshape(1, -1))
        return arm

    def learn(self, options, arm: int, reward: float) -> None:
        self.agent.update(options.reshape(1, -1), np.array([reward]))
