"""A statement of the errata: the loss per round is quadratic in the error of the subspace."""

import numpy as np

from halfseen.tofu.imputation import coordinates
from halfseen.values import Slate

DIM, RANK, PROB, N_ARMS = 100, 3, 0.3, 8


def mean_loss(sine, random):
    """Return the loss per round of the true parameter in a subspace that is off by a sine."""
    basis, off = np.split(np.linalg.qr(random.standard_normal((DIM, 2 * RANK)))[0], 2, axis=1)
    tilted = np.sqrt(1 - sine**2) * basis + sine * off
    direction = np.array([0.6, 0.8, 0.0])
    losses = []
    for _ in range(2000):
        latents = random.uniform(-(3**0.5), 3**0.5, (N_ARMS, RANK))
        arms = latents @ basis.T
        slate = Slate(np.where(random.random(arms.shape) < PROB, arms, np.nan))
        guesses = coordinates(tilted, slate, 1e-9) @ (tilted.T @ basis @ direction)
        means = latents @ direction
        losses.append(means.max() - means[guesses.argmax()])
    return np.mean(losses)


def test_a_third_of_the_error_costs_about_a_ninth():
    """The ratio of two means of 2000 rounds, whose relative standard errors are about .05."""
    random = np.random.default_rng(0)
    ratio = mean_loss(0.3, random) / mean_loss(0.1, random)
    assert 6 < ratio < 13  # 3 if the loss were linear in the error, 27 if it were cubic
