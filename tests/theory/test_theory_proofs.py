"""The steps of the paper's proofs, checked on vectors instead of on paper."""

import math

import numpy as np
import pytest

from halfseen import theory

OBSERVE_PROB, ARM_BOUND, THETA_BOUND = 0.5, 2.0, 3.0


class Representation:
    """Arms of a plane in many dimensions, their masks, and a basis of it that is slightly off.

    The plane is spanned by a cosine and a sine, so that all its rows are equally long: μ = 1.
    """

    def __init__(self, seed, tilt=0.01, dim=1300, rank=2, n_arms=50):
        rng = np.random.default_rng(seed)
        angles = 2 * math.pi * (1 + seed) * np.arange(dim) / dim
        self.true = math.sqrt(2 / dim) * np.stack([np.cos(angles), np.sin(angles)], axis=1)
        rotation = np.linalg.qr(rng.normal(size=(rank, rank)))[0]
        step = rng.normal(size=(dim, rank)) / math.sqrt(dim)
        self.basis = np.linalg.qr(self.true + tilt * step)[0] @ rotation
        latents = rng.normal(size=(n_arms, rank))
        latents *= ARM_BOUND / np.linalg.norm(latents, axis=1, keepdims=True)
        self.arms = latents @ self.true.T
        self.masks = rng.random((n_arms, dim)) < OBSERVE_PROB
        direction = rng.normal(size=rank)
        self.theta = THETA_BOUND * self.true @ direction / np.linalg.norm(direction)
        self.filled = np.array([self.fill(arm, mask) for arm, mask in self.pairs()])

    def pairs(self):
        return zip(self.arms, self.masks, strict=True)

    def fill(self, arm, mask):
        seen = self.basis[mask]
        filled = self.basis @ np.linalg.solve(seen.T @ seen, seen.T @ arm[mask])
        filled[mask] = arm[mask]
        return filled

    def projected(self, vectors):
        return vectors @ self.basis @ self.basis.T

    def projector_error(self):
        # For equal ranks ‖P̂ - P‖ is ‖(I - P̂)U‖, which is far cheaper.
        return np.linalg.norm(self.true - self.basis @ (self.basis.T @ self.true), 2)

    def aligned_error(self):
        left, _, right = np.linalg.svd(self.basis.T @ self.true)
        return np.linalg.norm(self.basis @ (left @ right) - self.true, 2)

    def error(self):
        """Return the ε for which both the projectors and the aligned bases are that close."""
        return max(self.projector_error(), self.aligned_error())

    def known(self):
        return {
            "arm_bound": ARM_BOUND,
            "observe_prob": OBSERVE_PROB,
            "subspace_error": self.error(),
        }


@pytest.fixture(params=range(5))
def representation(request):
    made = Representation(request.param)
    assert made.error() <= OBSERVE_PROB / 32
    smallest = theory.observe_prob_condition(
        dim=1300, rank=2, n_arms=50, horizon=1, incoherence=1.0, failure_prob=0.01
    )
    assert smallest <= OBSERVE_PROB
    return made


def lengths(vectors):
    return np.linalg.norm(vectors, axis=1)


def test_the_surrogate_error_is_at_most_the_parameter_times_the_feature_error(representation):
    truth = representation.arms @ representation.theta
    latent = representation.filled @ representation.basis
    surrogate = latent @ (representation.basis.T @ representation.theta)
    missed = representation.arms - representation.projected(representation.filled)
    np.testing.assert_allclose(truth - surrogate, missed @ representation.theta, atol=1e-12)
    assert np.all(abs(truth - surrogate) <= THETA_BOUND * lengths(missed) + 1e-12)


def test_the_feature_error_is_projection_error_plus_imputation_error(representation):
    missed = representation.arms - representation.projected(representation.filled)
    outside = representation.arms - representation.projected(representation.arms)
    imputed = representation.arms - representation.filled
    assert np.all(lengths(missed) <= lengths(outside) + lengths(imputed) + 1e-12)


def test_what_lies_outside_of_the_estimated_subspace_is_small(representation):
    outside = representation.arms - representation.projected(representation.arms)
    assert np.all(lengths(outside) <= ARM_BOUND * representation.projector_error() + 1e-12)


def test_filled_arms_are_within_the_imputation_bound(representation):
    imputed = representation.arms - representation.filled
    assert np.all(lengths(imputed) <= theory.imputation_error(**representation.known()))
    assert np.all(imputed[representation.masks] == 0)


class Epoch:
    """Features, misspecified noisy rewards, and the ridge regression of one epoch on the other."""

    ridge, misspecification, noise_scale = 1.5, 0.2, 0.3

    def __init__(self, seed, n_rounds=120, rank=3):
        rng = np.random.default_rng(seed)
        features = rng.normal(size=(n_rounds, rank))
        self.features = features / np.maximum(1, lengths(features))[:, None]
        self.target = rng.normal(size=rank)
        self.bias = self.misspecification * rng.uniform(-1, 1, size=n_rounds)
        self.noise = self.noise_scale * rng.normal(size=n_rounds)
        self.rewards = self.features @ self.target + self.bias + self.noise
        self.n_rounds, self.rank = n_rounds, rank
        self.grams = [self.gram(count) for count in range(n_rounds + 1)]
        self.widths = np.array(
            [self.width(z, gram) for z, gram in zip(self.features, self.grams, strict=False)]
        )
        self.potential = theory.log_det_ratio(
            log_det=np.linalg.slogdet(self.grams[-1])[1], rank=rank, ridge=self.ridge
        )

    def gram(self, count):
        played = self.features[:count]
        return self.ridge * np.eye(self.features.shape[1]) + played.T @ played

    @staticmethod
    def width(vector, gram):
        return math.sqrt(vector @ np.linalg.solve(gram, vector))

    def steady_radii(self, failure_prob):
        """Return w_t, the confidence radius without its misspecification part."""
        ratios = [
            theory.log_det_ratio(
                log_det=np.linalg.slogdet(gram)[1], rank=self.rank, ridge=self.ridge
            )
            for gram in self.grams[:-1]
        ]
        deviations = np.sqrt(np.array(ratios) + theory.confidence_term(failure_prob))
        shrinkage = math.sqrt(self.ridge) * np.linalg.norm(self.target)
        return shrinkage + self.noise_scale * deviations

    def growing_radii(self):
        """Return b sqrt(t - τ), the misspecification part."""
        return self.misspecification * np.sqrt(np.arange(self.n_rounds))


@pytest.fixture(params=range(5))
def epoch(request):
    return Epoch(request.param)


def test_the_ridge_error_splits_into_shrinkage_misspecification_and_noise(epoch):
    for count in (0, 1, 7, epoch.n_rounds):
        played, gram = epoch.features[:count], epoch.grams[count]
        estimate = np.linalg.solve(gram, played.T @ epoch.rewards[:count])
        parts = -epoch.ridge * epoch.target
        parts = parts + played.T @ epoch.bias[:count] + played.T @ epoch.noise[:count]
        np.testing.assert_allclose(gram @ (estimate - epoch.target), parts, atol=1e-10)


def test_the_radius_sum_splits_and_each_part_is_bounded(epoch):
    steady, growing = epoch.steady_radii(0.05), epoch.growing_radii()
    here = {"n_rounds": epoch.n_rounds, "potential": epoch.potential}
    learning = {
        "ridge": epoch.ridge,
        "theta_bound": np.linalg.norm(epoch.target),
        "noise_scale": epoch.noise_scale,
        "confidence": theory.confidence_term(0.05),
    }
    bias = {"misspecification": epoch.misspecification}
    assert ((steady + growing) * epoch.widths).sum() == pytest.approx(
        (steady * epoch.widths).sum() + (growing * epoch.widths).sum()
    )
    assert (steady * epoch.widths).sum() <= theory.steady_radius_sum_bound(**here, **learning)
    assert (growing * epoch.widths).sum() <= theory.growing_radius_sum_bound(**here, **bias)
    raw = theory.epoch_regret_raw(radii=steady + growing, widths=epoch.widths, **bias)
    assert raw <= theory.epoch_regret_bound(**here, **learning, **bias).total
