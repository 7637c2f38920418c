"""River: LinUCB with a model per arm; the one context that it takes is the whole slate."""

from river import bandit

PACKAGES = ("river",)
TITLE = "River LinUCB, a model per position"
SEES = "all"


class Player:
    def __init__(self, n_arms: int, dim: int) -> None:
        self.policy = bandit.LinUCBDisjoint(seed=0)
        self.arms = list(range(n_arms))

    def choose(self, options) -> int:
        self.context = dict(enumerate(options.ravel().tolist()))
        return self.policy.pull(self.arms, context=self.context)

    def learn(self, options, arm: int, reward: float) -> None:
        self.policy.update(arm, self.context, reward)
