"""Potential, misspecification, coverage and regret lemmas, where their bounds are not trivial.

Most of these are deterministic once their events hold, so the events are checked first. Every
statistical test names its estimator, its standard error and its false-alarm rate.
"""

import itertools
import math

import numpy as np
import pytest
from lemma_tools import RoundWorld, at_most
from numpy.linalg import norm

from halfseen import theory
from halfseen.linear.covariance import Moments
from halfseen.linear.eigen import align, distance, top_eigenpairs
from halfseen.linear.ridge import Confidence, Ridge
from halfseen.paper.measures import seen_gram_eigenvalues
from halfseen.simulation.cells import play
from halfseen.tofu.imputation import coordinates
from halfseen.tofu.policy import TofuPov
from halfseen.values import Slate


def grams_before(features, ridge):
    return theory.grams_before(features, ridge=ridge)


def log_dets(grams, ridge):
    return np.linalg.slogdet(grams)[1] - grams.shape[-1] * math.log(ridge)


# The potential


def greedy_features(n_rounds, rank, feature_bound, ridge):
    """Return features that take the widest direction each time: the most that widths can sum to."""
    grams = ridge * np.eye(rank)
    features = np.empty((n_rounds, rank))
    for row in features:
        row[:] = feature_bound * np.linalg.eigh(grams)[1][:, 0]
        grams += np.outer(row, row)
    return features


@pytest.mark.parametrize("rank", [1, 3, 8])
@pytest.mark.parametrize("ratio", [1.0, 4.0, 100.0])
def test_adversarial_features_stay_within_the_potential(rank, ratio):
    # λ = ratio · B². Widest directions first, and repeated: both sums and Γ itself are bounded.
    bound, n_rounds = 1.7, 40 * rank
    ridge = ratio * bound**2
    features = greedy_features(n_rounds, rank, bound, ridge)
    grams = grams_before(features, ridge)
    widths = theory.widths_in(features, grams[:-1])
    potential = theory.epoch_potential(features, ridge=ridge)
    assert potential == pytest.approx(log_dets(grams[-1:], ridge)[0])
    squares, sums = theory.potential_sums(n_rounds=n_rounds, potential=potential)
    ceiling = theory.potential_bound(n_rounds=n_rounds, rank=rank, feature_bound=bound, ridge=ridge)
    assert (widths**2).sum() <= squares
    assert widths.sum() <= sums
    # The ceiling on Γ is reached, since all directions are used equally often.
    assert potential == pytest.approx(ceiling)


@pytest.mark.parametrize("rank", [1, 3, 8])
def test_the_potential_is_within_two_fifths_of_what_first_steps_reach(rank):
    # λ = B² and each direction once: every squared width is 1, and 2Γ = 2m log 2 = 1.39 m.
    features = greedy_features(rank, rank, 1.0, 1.0)
    grams = grams_before(features, 1.0)
    squares, _ = theory.potential_sums(n_rounds=rank, potential=log_dets(grams[-1:], 1.0)[0])
    assert (theory.widths_in(features, grams[:-1]) ** 2).sum() == pytest.approx(rank)
    assert squares == pytest.approx(2 * rank * math.log(2))


def test_the_potential_needs_a_ridge_of_the_size_of_the_features():
    # One feature of squared length 10λ: its squared width is 10, but 2Γ = 2 log 11 < 5.
    features = np.array([[math.sqrt(10.0)]])
    grams = grams_before(features, 1.0)
    squares, _ = theory.potential_sums(n_rounds=1, potential=log_dets(grams[-1:], 1.0)[0])
    assert (theory.widths_in(features, grams[:-1]) ** 2).sum() == pytest.approx(10)
    assert squares < 5


# Misspecification


def contracted(features, ridge, signs):
    """Return ‖Σ z ξ‖ in the inverse gram for each row of signs, shape (n_patterns, n_samples)."""
    sums = signs @ features
    inverse = np.linalg.inv(grams_before(features, ridge)[-1])
    return np.sqrt(np.einsum("ni,ij,nj->n", sums, inverse, sums))


@pytest.mark.parametrize("rank", [1, 2, 4])
@pytest.mark.parametrize("ridge", [0.01, 1.0])
def test_no_pattern_of_signs_beats_the_contraction(rank, ridge):
    # All 2^12 patterns of ±b, for features at random.
    rng = np.random.default_rng(1)
    patterns = 0.3 * np.array(list(itertools.product((-1.0, 1.0), repeat=12)))
    bound = theory.contracted_bias_bound(misspecification=0.3, n_samples=12)
    for _ in range(20):
        features = rng.standard_normal((12, rank))
        worst = contracted(features, ridge, patterns).max()
        assert worst <= bound
        assert worst > 0.6 * bound  # the adversary comes close


@pytest.mark.parametrize("rank", [1, 4, 9])
def test_the_contraction_is_tight_and_the_triangle_inequality_loses_root_rank(rank):
    # Features that go round the axes, errors that are all +b: ‖Σ z ξ‖ = b sqrt(n) · sqrt(n/(n+mλ)).
    ridge, bias, n_samples = 1.0, 0.3, 1000 * rank
    features = np.tile(np.eye(rank), (1000, 1))
    grams = grams_before(features, ridge)
    made = contracted(features, ridge, np.full((1, n_samples), bias))[0]
    sharp = theory.contracted_bias_bound(misspecification=bias, n_samples=n_samples)
    summed = bias * theory.widths_in(features, np.repeat(grams[-1:], n_samples, axis=0)).sum()
    naive = theory.naive_bias_bound(
        misspecification=bias, n_samples=n_samples, potential=log_dets(grams[-1:], ridge)[0]
    )
    assert 0.999 * sharp < made <= sharp
    assert summed == pytest.approx(math.sqrt(rank) * made, rel=1e-9)
    assert naive > summed > sharp * 0.999 * math.sqrt(rank)


# Coverage


class Ellipsoid:
    """A fixed design and the confidence ellipsoids around its estimates, for many replicates."""

    def __init__(self, features, *, ridge, theta_bound, noise_scale, failure_prob):
        self.features, self.ridge, self.noise_scale = features, ridge, noise_scale
        self.settings = {
            "ridge": ridge,
            "theta_bound": theta_bound,
            "noise_scale": noise_scale,
            "failure_prob": failure_prob,
        }
        self.grams = grams_before(features, ridge)
        model, self.log_dets = Ridge(features.shape[1], ridge=ridge), [0.0]
        for point in features:
            model.update(point, 0.0)
            self.log_dets.append(model.log_det)

    def misses(self, target, biases, noise, misspecification, radius_scale=1.0):
        """Return which replicates leave the ellipsoid at any time; noise is (n_replicates, n)."""
        confidence = Confidence(
            **self.settings, misspecification=misspecification, radius_scale=radius_scale
        )
        radii = [confidence.total(log_det, n) for n, log_det in enumerate(self.log_dets)]
        pushed = np.cumsum(self.features * (biases + noise)[:, :, None], axis=1)
        pushed = np.concatenate([np.zeros_like(pushed[:, :1]), pushed], axis=1)
        pushed -= self.ridge * target
        inverses = np.linalg.inv(self.grams)
        errors = np.sqrt(np.einsum("rti,tij,rtj->rt", pushed, inverses, pushed))
        return np.any(errors > radii, axis=1)


def ellipsoid(rank, failure_prob):
    features = np.tile(np.eye(rank), (600 // rank, 1))
    return Ellipsoid(
        features, ridge=1.0, theta_bound=1e-3, noise_scale=1.0, failure_prob=failure_prob
    )


@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("failure_prob", [0.2, 0.1])
def test_the_ellipsoid_covers_at_all_times_as_often_as_stated(rank, failure_prob):
    # Estimator: share of 1500 epochs of 600 rounds that miss at any time. At most δ_e is promised;
    # standard error .010 or .008, 5 sigma, false alarm 6e-7 or 8e-7. S is tiny, so that the noise
    # part stands alone: half of δ_e is used up, and a radius 20 % smaller is caught.
    made, rng = ellipsoid(rank, failure_prob), np.random.default_rng(2)
    target = np.full(rank, 1e-3 / math.sqrt(rank))
    noise = rng.standard_normal((1500, 600))
    missed = np.count_nonzero(made.misses(target, 0.0, noise, 0.0))
    assert 1500 * failure_prob / 3 < missed <= at_most(1500, failure_prob)
    smaller = made.misses(target, 0.0, noise, 0.0, radius_scale=0.8)
    assert np.count_nonzero(smaller) > at_most(1500, failure_prob)


@pytest.mark.parametrize("rank", [1, 2])
def test_the_ellipsoid_covers_under_the_worst_bias_and_only_with_its_misspecification_part(rank):
    # As above, with every reward off by +b: the bias uses up its part of the radius to the full
    # (see the contraction), so that without this part nothing is covered.
    bias, failure_prob = 0.5, 0.2
    made, rng = ellipsoid(rank, failure_prob), np.random.default_rng(3)
    target = np.full(rank, -1e-3 / math.sqrt(rank))
    noise = rng.standard_normal((1500, 600))
    missed = np.count_nonzero(made.misses(target, bias, noise, bias))
    assert 1500 * failure_prob / 20 < missed <= at_most(1500, failure_prob)
    assert made.misses(target, bias, noise, 0.0).mean() > 0.99
    assert made.misses(target, bias, noise, bias / 2).mean() > 0.9


# A real run of Algorithm 1


class Recorder:
    """A policy that remembers what it was shown, what it decided and what it was paid."""

    current_rank = None

    def __init__(self, policy):
        self.policy, self.slates, self.decisions, self.rewards = policy, [], [], []

    def choose(self, slate):
        self.slates.append(slate)
        self.decisions.append(self.policy.choose(slate))
        return self.decisions[-1]

    def learn(self, decision, reward):
        self.rewards.append(reward)
        self.policy.learn(decision, reward)


class EpochOfRun:
    """All that the lemmas speak of in one epoch, worked out anew from slates and rewards."""

    def __init__(self, run, record, basis, rounds):
        problem, world = run.problem, run.world
        self.record, self.basis, self.problem = record, basis, problem
        self.n_rounds, rows = len(rounds), slice(rounds.start - 1, rounds.stop - 1)
        slates, self.decisions = run.recorder.slates[rows], run.recorder.decisions[rows]
        stacked = Slate(
            np.concatenate([slate.values for slate in slates]),
            np.concatenate([slate.mask for slate in slates]),
        )
        shape = (self.n_rounds, problem.n_arms)
        self.seen = seen_gram_eigenvalues(basis, stacked.mask)
        self.latent = coordinates(basis, stacked, run.impute_ridge).reshape(*shape, problem.rank)
        self.means, self.rewards = run.means[rows], np.array(run.recorder.rewards[rows])
        self.target = basis.T @ world.theta
        self.surrogate = self.latent @ self.target
        self.arms = np.array([decision.arm for decision in self.decisions])
        self.played = self.of_chosen(self.latent)
        grams = grams_before(self.played, run.ridge)
        self.grams = grams[:-1]
        self.potential = theory.epoch_potential(self.played, ridge=run.ridge)
        self.widths = theory.widths_in(self.latent, self.grams)
        responses = np.cumsum(self.played * self.rewards[:, None], axis=0)
        responses = np.concatenate([np.zeros((1, problem.rank)), responses[:-1]])
        self.estimates = np.linalg.solve(self.grams, responses[:, :, None])[:, :, 0]
        self.error = theory.subspace_error(
            n_arms=record.n_arms,
            arm_bound=problem.arm_bound,
            top_eigenvalue=problem.top_eigenvalue,
            last_eigenvalue=problem.last_eigenvalue,
            observe_prob=problem.observe_prob,
            log_term=theory.log_term(
                dim=problem.dim, failure_prob=run.level, horizon=problem.horizon, round=1
            ),
        )
        known = {
            "arm_bound": problem.arm_bound,
            "observe_prob": problem.observe_prob,
            "subspace_error": self.error,
        }
        self.bias = theory.misspecification(theta_bound=problem.theta_bound, **known)
        self.feature_bound = theory.feature_bound(**known)
        self.failure_prob = run.failure_prob / (2 * 4)  # four epochs: 250, 500, 1000, 2000
        self.learning = {
            "ridge": run.ridge,
            "confidence": theory.confidence_term(self.failure_prob),
        }
        deviations = np.sqrt(log_dets(self.grams, run.ridge) + self.learning["confidence"])
        self.radii = math.sqrt(run.ridge) * problem.theta_bound + problem.noise_scale * deviations
        self.radii += self.bias * np.sqrt(np.arange(self.n_rounds))

    def of_chosen(self, values):
        return values[np.arange(self.n_rounds), self.arms]

    @property
    def losses(self):
        return self.means.max(axis=1) - self.of_chosen(self.means)


class Run:
    """Algorithm 1 after a catalogue of arms that makes ε small, with a burn-in set by hand."""

    impute_ridge, failure_prob, burn_in = 1e-9, 0.1, 249

    def __init__(self, world, n_catalogue):
        self.world, self.problem = world, world.problem()
        self.ridge = theory.theorem_ridge(self.problem)
        self.level = theory.representation_level(self.failure_prob / 2)
        policy = TofuPov.algorithm_1(
            dim=self.problem.dim,
            rank=self.problem.rank,
            observe_prob=self.problem.observe_prob,
            horizon=self.problem.horizon,
            burn_in=self.burn_in,
            impute_ridge=self.impute_ridge,
            arm_bound=self.problem.arm_bound,
            top_eigenvalue=self.problem.top_eigenvalue,
            last_eigenvalue=self.problem.last_eigenvalue,
            noise_scale=self.problem.noise_scale,
            failure_prob=self.failure_prob,
        )
        moments = Moments(self.problem.dim)
        for slate in world.catalogue(n_catalogue):
            policy.absorb(slate)
            moments.absorb(slate)
        self.recorder = Recorder(policy)
        self.trace = play(self.recorder, world)
        self.means = np.array([means for _, means, _, _ in world.rounds()])
        self.epochs, before = [], 0
        for record in policy.epoch_log:
            for slate in self.recorder.slates[before : record.round - 1]:
                moments.absorb(slate)
            before = record.round - 1
            covariance = moments.covariance(self.problem.observe_prob)
            basis = top_eigenpairs(covariance, self.problem.rank)[1]
            stop = policy.schedule.next_start(record.round)
            rounds = range(record.round, min(stop, self.problem.horizon + 1))
            self.epochs.append(EpochOfRun(self, record, basis, rounds))


@pytest.fixture(scope="module")
def run():
    """ε is .037 after 4 million arms of this κ = 1 world."""
    world = RoundWorld(
        dim=32, rank=2, n_arms=5, horizon=3999, observe_prob=0.95, noise_scale=0.1, seed=4
    )
    return Run(world, 4_000_000)


def test_the_policy_scores_with_the_radius_of_the_theorem(run):
    # Everything here is worked out from slates and rewards alone: basis, coordinates, gram, and
    # β_t = sqrt(λ) S + R sqrt(log det ratio + H_e) + b_e sqrt(samples).
    assert [epoch.record.round for epoch in run.epochs] == [250, 500, 1000, 2000]
    for epoch in run.epochs:
        assert epoch.record.misspecification == pytest.approx(epoch.bias, rel=1e-12)
        assert epoch.record.failure_prob == pytest.approx(epoch.failure_prob, rel=1e-12)
        estimates = np.einsum("tki,ti->tk", epoch.latent, epoch.estimates)
        widths = epoch.radii[:, None] * epoch.widths
        scored = [(made.estimates, made.widths, made.arm) for made in epoch.decisions]
        for round, (estimate, width, arm) in enumerate(scored):
            np.testing.assert_allclose(estimate, estimates[round], rtol=0, atol=1e-9)
            np.testing.assert_allclose(width, widths[round], rtol=1e-9)
            assert arm == np.argmax(estimates[round] + widths[round])


def test_the_events_of_the_lemmas_hold_in_the_run(run):
    # Representation: subspace, Gram matrices, surrogate means; confidence: ϑ* = Û'θ covered at all
    # times. δ = .1 for all of them together; the seed is fixed, and the lemmas below need them.
    true, observe_prob = run.world.basis, run.problem.observe_prob
    for epoch in run.epochs:
        aligned = norm(epoch.basis @ align(epoch.basis, true) - true, 2)
        assert max(distance(epoch.basis, true), aligned) <= epoch.error
        assert np.all(epoch.seen >= observe_prob / 2)
        assert np.all(np.abs(epoch.means - epoch.surrogate) <= epoch.bias)
        assert np.all(norm(epoch.latent, axis=2) <= epoch.feature_bound)
        assert epoch.feature_bound**2 <= run.ridge
        missed = epoch.estimates - epoch.target
        assert np.all(np.einsum("ti,tij,tj->t", missed, epoch.grams, missed) <= epoch.radii**2)


def test_the_features_of_the_run_stay_within_the_potential(run):
    for epoch in run.epochs:
        widths = epoch.of_chosen(epoch.widths)
        squares, sums = theory.potential_sums(n_rounds=epoch.n_rounds, potential=epoch.potential)
        ceiling = theory.potential_bound(
            n_rounds=epoch.n_rounds,
            rank=run.problem.rank,
            feature_bound=epoch.feature_bound,
            ridge=run.ridge,
        )
        assert (widths**2).sum() <= squares
        assert widths.sum() <= sums
        # Γ_e is 89 to 95 % of its bound and 40 to 80 % of G_T: little is given away here.
        assert 0.88 * ceiling < epoch.potential < 0.96 * ceiling
        envelope = theory.potential_envelope(run.problem)
        assert 0.4 * envelope < epoch.potential < 0.8 * envelope


def test_the_worst_signs_for_the_features_of_the_run_stay_within_the_contraction(run):
    # Each step of ξ = b·sign(Z V⁻¹ Z'ξ) raises ‖Z'ξ‖: an adversary for as many samples as we like.
    for epoch in run.epochs:
        inverse = np.linalg.inv(run.ridge * np.eye(2) + epoch.played.T @ epoch.played)
        signs = np.ones(epoch.n_rounds)
        for _ in range(20):
            signs = np.where(epoch.played @ (inverse @ (epoch.played.T @ signs)) >= 0, 1.0, -1.0)
        made = epoch.bias * contracted(epoch.played, run.ridge, signs[None])[0]
        samples = {"misspecification": epoch.bias, "n_samples": epoch.n_rounds}
        sharp = theory.contracted_bias_bound(**samples)
        naive = theory.naive_bias_bound(**samples, potential=epoch.potential)
        assert 0.85 * sharp < made <= sharp
        assert naive > 3 * sharp


def test_the_ridge_error_splits_into_shrinkage_misspecification_and_noise(run):
    for epoch in run.epochs:
        biases = epoch.of_chosen(epoch.means) - epoch.of_chosen(epoch.surrogate)
        noise = epoch.rewards - epoch.of_chosen(epoch.means)
        errors = np.einsum("tij,tj->ti", epoch.grams, epoch.estimates - epoch.target)
        for t in (1, epoch.n_rounds // 2, epoch.n_rounds - 1):
            parts = theory.ridge_error(
                epoch.played[:t], epoch.target, biases[:t], noise[:t], ridge=run.ridge
            )
            np.testing.assert_allclose(errors[t], parts.total, atol=1e-8)
            assert norm(parts.misspecification) <= epoch.bias * norm(epoch.played[:t], axis=1).sum()


def test_the_radius_sum_splits_and_each_part_is_bounded(run):
    # (sqrt(λ) S + R sqrt(Γ + H_e)) sqrt(2nΓ), and b n sqrt(Γ): the parts of the epoch's bound.
    for epoch in run.epochs:
        widths, bound = epoch.of_chosen(epoch.widths), expanded_bound(epoch)
        sizes = {"n_rounds": epoch.n_rounds, "potential": epoch.potential}
        steady, growing = theory.radius_sums(epoch.radii, widths, misspecification=epoch.bias)
        steady_bound = theory.steady_sum_bound(run.problem, **sizes, **epoch.learning)
        growing_bound = theory.growing_sum_bound(**sizes, misspecification=epoch.bias)
        assert steady + growing == pytest.approx(epoch.radii @ widths)
        assert 0 < steady <= steady_bound
        assert 0 < growing <= growing_bound
        assert 2 * steady_bound == pytest.approx(bound.ridge + bound.noise)
        flat = 2 * epoch.bias * epoch.n_rounds
        assert 2 * growing_bound + flat == pytest.approx(bound.representation)


def test_no_round_of_the_run_loses_more_than_the_instant_bounds(run):
    trivial, largest_share = 2 * run.problem.theta_bound * run.problem.arm_bound, 0.0
    for epoch in run.epochs:
        widths = epoch.of_chosen(epoch.widths)
        surrogate_losses = epoch.surrogate.max(axis=1) - epoch.of_chosen(epoch.surrogate)
        optimism = theory.surrogate_regret_bound(radius=epoch.radii, width=widths)
        bounds = theory.instant_regret_bound(
            radius=epoch.radii, width=widths, misspecification=epoch.bias
        )
        assert np.all(surrogate_losses <= optimism)
        assert np.all(epoch.losses <= bounds)
        # After a few rounds the bound is below the trivial one, and only the optimistic arm keeps
        # it: at least one in ten of all offered arms does not.
        assert np.mean(bounds < trivial) > 0.8
        all_losses = epoch.means.max(axis=1, keepdims=True) - epoch.means
        all_bounds = 2 * epoch.radii[:, None] * epoch.widths + 2 * epoch.bias
        assert np.mean(all_losses > all_bounds) > 0.1
        largest_share = max(largest_share, (epoch.losses / bounds).max())
    assert largest_share > 0.5  # the worst round comes within a factor of 2


def expanded_bound(epoch):
    return theory.epoch_regret_bound(
        epoch.problem,
        n_rounds=epoch.n_rounds,
        potential=epoch.potential,
        misspecification=epoch.bias,
        **epoch.learning,
    )


def test_no_epoch_of_the_run_loses_more_than_the_epoch_bounds(run):
    trivial = 2 * run.problem.theta_bound * run.problem.arm_bound
    losses = np.diff(run.trace.regret, prepend=0.0)
    cost = theory.representation_cost(run.problem, representation_failure_prob=run.failure_prob / 2)
    for epoch in run.epochs:
        first = epoch.record.round - 1
        regret = losses[first : first + epoch.n_rounds].sum()
        raw = theory.raw_epoch_regret_bound(
            epoch.radii, epoch.of_chosen(epoch.widths), misspecification=epoch.bias
        )
        expanded = expanded_bound(epoch).total
        uniform = theory.uniform_epoch_regret_bound(
            run.problem,
            n_rounds=epoch.n_rounds,
            confidence=epoch.learning["confidence"],
            misspecification=cost / math.sqrt(epoch.record.round),
        ).total
        assert regret == pytest.approx(theory.epoch_regret(epoch.means, epoch.arms))
        assert regret <= raw <= expanded <= uniform
        assert raw < trivial * epoch.n_rounds
        # Expanding the sum costs less than a factor of 2, and keeps the bound useful.
        assert expanded < 2 * raw
        if epoch.n_rounds >= 500:
            assert expanded < trivial * epoch.n_rounds


def test_the_lemmas_bound_the_regret_of_the_whole_run_and_the_theorem_does_not(run):
    # With the run's own Γ_e and b_e and the burn-in charged at the worst rate: .93 of the trivial
    # bound. The theorem counts five arms per slate and knows nothing of the catalogue: 366 times
    # the trivial bound. The run loses a thousandth of it.
    trivial = theory.trivial_regret_bound(run.problem)
    charged = trivial / run.problem.horizon * run.burn_in
    summed = charged + sum(expanded_bound(epoch).total for epoch in run.epochs)
    theorem = theory.main_regret_bound(run.problem, failure_prob=run.failure_prob)
    later = theory.post_burn_in_regret_bound(
        run.problem,
        confidence=run.epochs[0].learning["confidence"],
        representation_failure_prob=run.failure_prob / 2,
    )
    assert 0.0005 * trivial < run.trace.final_regret < 0.002 * trivial
    assert run.trace.final_regret <= summed
    assert summed < trivial
    assert summed - charged <= later.total
    assert 50 * trivial < later.total < 100 * trivial
    assert 300 * trivial < theorem.total < 800 * trivial
