"""TOFU-POV written plainly from the paper, as a straightforward implementation would be.

One small solve per arm in Python, log det V by factorisation in every round, the inverse by a
rank-one formula with temporaries, all offered arms kept and stacked anew at each epoch, a full
eigendecomposition. It makes the same choices as `halfseen.TofuPov` (a test compares them), and only
serves to measure against.
"""

import math

import numpy as np


class PlainOful:
    """OFUL with everything recomputed that can be."""

    def __init__(self, dim, ridge, failure_prob, theta_bound, noise_scale):
        self.dim, self.ridge, self.failure_prob = dim, ridge, failure_prob
        self.theta_bound, self.noise_scale = theta_bound, noise_scale
        self.gram = ridge * np.eye(dim)
        self.inverse = np.eye(dim) / ridge
        self.response = np.zeros(dim)

    def choose(self, points):
        log_det = np.linalg.slogdet(self.gram)[1] - self.dim * math.log(self.ridge)
        noise = math.sqrt(2.0 * max(0.0, 0.5 * log_det - math.log(self.failure_prob)))
        radius = math.sqrt(self.ridge) * self.theta_bound + self.noise_scale * noise
        estimate = self.inverse @ self.response
        scores = [
            point @ estimate + radius * math.sqrt(max(0.0, point @ self.inverse @ point))
            for point in points
        ]
        return int(np.argmax(scores))

    def learn(self, point, reward):
        self.gram = self.gram + np.outer(point, point)
        self.response = self.response + reward * point
        turned = self.inverse @ point
        self.inverse = self.inverse - np.outer(turned, turned) / (1.0 + point @ turned)
        self.inverse = 0.5 * (self.inverse + self.inverse.T)


class Yardstick:
    """TOFU-POV with known rank and full replay, one arm at a time."""

    def __init__(
        self, *, dim, rank, observe_prob, horizon, burn_in, noise_scale, impute_ridge=1e-5
    ):
        self.dim, self.rank, self.observe_prob, self.burn_in = dim, rank, observe_prob, burn_in
        self.noise_scale, self.impute_ridge = noise_scale, impute_ridge
        self.epoch_failure_prob = 0.05 / (2 * (math.ceil(math.log2(horizon)) + 2))
        self.round, self.next_start = 0, burn_in + 1
        self.offered, self.masks, self.played = [], [], []
        self.basis = None
        self.model = PlainOful(dim, 1.0, 0.05, 1.0, noise_scale)

    def choose(self, values, mask):
        self.round += 1
        if self.round == self.next_start:
            self._open_epoch()
            self.next_start *= 2
        self.offered.append(values.copy())
        self.masks.append(mask.copy())
        if self.basis is None:
            points = values
        else:
            points = [self._feature(row, seen) for row, seen in zip(values, mask, strict=True)]
        arm = self.model.choose(points)
        self.pending = values[arm], mask[arm], points[arm]
        return arm

    def learn(self, reward):
        values, mask, point = self.pending
        self.played.append((values, mask, reward))
        self.model.learn(point, reward)

    def _feature(self, values, mask):
        rows = self.basis[mask]
        gram = rows.T @ rows + self.impute_ridge * np.eye(self.rank)
        filled = values.copy()
        filled[~mask] = self.basis[~mask] @ np.linalg.solve(gram, rows.T @ values[mask])
        return self.basis.T @ filled

    def _open_epoch(self):
        arms = np.vstack(self.offered)
        p, n = self.observe_prob, len(arms)
        covariance = arms.T @ arms / (n * p**2)
        covariance += (1 / p - 1 / p**2) * np.diag(np.mean(arms**2, axis=0))
        values, vectors = np.linalg.eigh(0.5 * (covariance + covariance.T))
        self.basis = vectors[:, np.argsort(values)[::-1][: self.rank]]
        self.model = PlainOful(self.rank, 1.0, self.epoch_failure_prob, 1.0, self.noise_scale)
        for row, seen, reward in self.played:
            self.model.learn(self._feature(row, seen), reward)
