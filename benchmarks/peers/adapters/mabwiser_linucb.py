"""MABWiser: LinUCB with one shared arm, whose expectation is asked for each option as a context."""

from mabwiser.mab import MAB, LearningPolicy

PACKAGES = ("mabwiser",)
TITLE = "MABWiser LinUCB, one shared arm"
SEES = "all"


class Player:
    def __init__(self, n_arms: int, dim: int) -> None:
        self.bandit = MAB(["shared"], LearningPolicy.LinUCB(alpha=1.0, l2_lambda=1.0))
        self.fitted = False

    def choose(self, options) -> int:
        if not self.fitted:
            return 0
        scores = self.bandit.predict_expectations(options)
        return max(range(len(scores)), key=lambda arm: scores[arm]["shared"])

    def learn(self, options, arm: int, reward: float) -> None:
        learn = self.bandit.partial_fit if self.fitted else self.bandit.fit
        learn(["shared"], [reward], options[arm : arm + 1])
        self.fitted = True
