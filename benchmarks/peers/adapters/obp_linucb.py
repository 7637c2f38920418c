"""obp: LinUCB with a model per arm; the one context that it takes is the whole slate."""

from obp.policy import LinUCB

PACKAGES = ("obp",)
TITLE = "obp LinUCB, a model per position"
SEES = "all"


class Player:
    def __init__(self, n_arms: int, dim: int) -> None:
        # `epsilon` multiplies the width; at its default 0 it would not explore.
        self.policy = LinUCB(dim=n_arms * dim, n_actions=n_arms, epsilon=1.0, random_state=0)

    def choose(self, options) -> int:
        return int(self.policy.select_action(options.reshape(1, -1))[0])

    def learn(self, options, arm: int, reward: float) -> None:
        self.policy.update_params(action=arm, reward=reward, context=options.reshape(1, -1))
