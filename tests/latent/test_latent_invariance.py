"""Nothing that `LatentUcb` chooses depends on units, offsets or orders."""

import numpy as np
import pytest

from halfseen import LatentUcb

ROUNDS, DIM, N_ARMS = 150, 12, 6


def made_rounds(kind, share):
    """Slates, mean rewards and noise: exactly low-rank, noisy, or with columns of 0 and 1."""
    random = np.random.default_rng(1)
    loadings, theta, offsets = (random.normal(size=size) for size in ((3, DIM), 3, DIM))
    rounds = []
    for _ in range(ROUNDS):
        latent = random.normal(size=(N_ARMS, 3))
        table = offsets + latent @ loadings
        if kind != "low-rank":
            table += 0.3 * random.normal(size=table.shape)
        if kind == "mixed":
            table[:, :3] = table[:, :3] > 0.0
        table[random.random(table.shape) > share] = np.nan
        rounds.append((table, 1.0 + latent @ theta, 0.1 * random.normal()))
    return rounds


class Played:
    """A run: arms by their place in the unpermuted slate, rounds with a near-tie, and regret."""

    def __init__(self, rounds, *, options=lambda table: table, reward=float, orders=None):
        policy = LatentUcb(seed=3)
        self.arms, self.scores, self.ties, self.regret = [], [], [], 0.0
        for index, (table, means, noise) in enumerate(rounds):
            order = np.arange(N_ARMS) if orders is None else orders[index]
            decision = policy.choose(options(table)[order])
            arm = int(order[decision.arm])
            policy.learn(decision, reward(means[arm] + noise))
            best, second = np.sort(decision.scores)[::-1][:2]
            spread = best - decision.scores.min()
            self.ties.append(spread > 0.0 and best - second <= 1e-6 * spread)
            self.arms.append(arm)
            self.scores.append(decision.scores)
            self.regret += means.max() - means[arm]


CASES = [(kind, share) for kind in ("low-rank", "noisy", "mixed") for share in (1.0, 0.5)]


@pytest.mark.parametrize(("kind", "share"), CASES)
def test_powers_of_two_change_no_bit(kind, share):
    rounds, random = made_rounds(kind, share), np.random.default_rng(2)
    expected = Played(rounds)
    for _ in range(2):
        factors = 2.0 ** random.integers(-20, 20, DIM)
        unit = 2.0 ** random.integers(-20, 20)
        other = Played(
            rounds, options=lambda table, by=factors: by * table, reward=lambda r, by=unit: by * r
        )
        assert other.arms == expected.arms
        np.testing.assert_array_equal(np.array(other.scores), unit * np.array(expected.scores))


@pytest.mark.parametrize(("kind", "share"), CASES)
def test_units_offsets_and_orders_change_no_choice(kind, share):
    """Each map changes all at once: every unit and offset, the order of features and of arms."""
    rounds, random = made_rounds(kind, share), np.random.default_rng(3)
    deviations = np.nanstd(np.vstack([table for table, *_ in rounds]), axis=0)
    expected, regrets = Played(rounds), []
    for _ in range(6):
        factors = 10.0 ** random.uniform(-6, 6, DIM) * random.choice([-1.0, 1.0], DIM)
        offsets = factors * deviations * random.uniform(-1e3, 1e3, DIM)
        features = random.permutation(DIM)
        unit, shift = 10.0 ** random.uniform(-6, 6), random.uniform(-1e6, 1e6)
        other = Played(
            rounds,
            options=lambda table: (factors * table + offsets)[:, features],  # noqa: B023
            reward=lambda r: unit * (r + shift),  # noqa: B023
            orders=[random.permutation(N_ARMS) for _ in rounds],
        )
        ties = np.flatnonzero(np.array(other.ties) | np.array(expected.ties))
        end = ties[0] if len(ties) else ROUNDS
        assert other.arms[:end] == expected.arms[:end]
        regrets.append(other.regret)
    assert np.mean(regrets) == pytest.approx(expected.regret, rel=0.05)
