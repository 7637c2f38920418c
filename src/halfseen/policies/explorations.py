"""How `LatentUcb` explores: which arm it plays, given its scores, and with which probabilities."""

from typing import NamedTuple

import numpy as np

from halfseen.core.drawing import drawn, inverse_gap, inverse_gap_rate
from halfseen.core.offers import Offer
from halfseen.core.reward_model import RewardModel
from halfseen.seeding import stream
from halfseen.values import FloatArray

INVERSE_GAP = "inverse-gap"

Law = FloatArray | None
"""Probabilities of arms; None if the choice is not drawn."""


class Turn(NamedTuple):
    """One round of a reward model.

    Attributes
    ----------
    model : RewardModel
    offer : Offer
        The arms.
    points : ndarray, shape (n_arms, n_features)
        Their features.
    parts : ndarray, shape (3, n_arms)
        Score, estimate and width of each arm, as in "ucb". Other explorations overwrite it.
    seed, round : int
        Name the streams of random numbers.
    """

    model: RewardModel
    offer: Offer
    points: FloatArray
    parts: FloatArray
    seed: int
    round: int

    def chosen(self, exploration: str, widths: tuple[float, float]) -> tuple[int, Law]:
        """Return the arm to play and the probabilities of all arms.

        `widths` are the multiples of deviations of the regression and of item effects.
        """
        parts, law = self.parts, None
        if exploration == "ucb":
            return self.offer.best(parts[0]), None
        parts[2] = 0.0
        if exploration == "thompson":
            random = stream(self.seed, "thompson", str(self.round))
            parts[2] = self.model.draw(self.offer, random, *widths)
        np.add(parts[1], parts[2], out=parts[0])
        arm = self.offer.best(parts[0])
        if exploration == "thompson":
            given = self.offer, self.points, parts[1]
            law = self.model.win_shares(*given, arm, random, *widths)
        elif exploration == INVERSE_GAP:
            n_arms = self.offer.n_arms
            rate = inverse_gap_rate(n_arms, self.round, self.model.information())
            law = inverse_gap(parts[1] / self.model.scales.noise, rate)
            arm = self._drawn(law, INVERSE_GAP)
        return arm, law

    def shared(self, arm: int, law: Law, share: float) -> tuple[int, FloatArray]:
        """Return arm and probabilities if a share of the rounds is uniform."""
        n_arms = self.offer.n_arms
        if law is None:
            law = np.zeros(n_arms)
            law[arm] = 1.0
        uniform = np.full(n_arms, 1.0 / n_arms)
        if stream(self.seed, "share", str(self.round)).random() < share:
            arm = self._drawn(uniform, "uniform")
        return arm, (1.0 - share) * law + share * uniform

    def _drawn(self, law: FloatArray, name: str) -> int:
        random = stream(self.seed, name, str(self.round))
        return drawn(law, self.parts[1], self.offer.keys, random)
