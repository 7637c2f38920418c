"""coba: LinUCB on action features alone."""

from coba.learners import LinUCBLearner

PACKAGES = ("coba", "numpy")
TITLE = "coba LinUCB"
SEES = "all"


class Player:
    def __init__(self, n_arms: int, dim: int) -> None:
        # "a": the features of an action, no intercept and no crossing with a context.
        self.learner = LinUCBLearner(features=["a"])

    def choose(self, options) -> int:
        self.actions = [tuple(row) for row in options.tolist()]
        self.action, self.probability = self.learner.predict(None, self.actions)[:2]
        return self.actions.index(self.action)

    def learn(self, options, arm: int, reward: float) -> None:
        self.learner.learn(None, self.action, reward, self.probability)
