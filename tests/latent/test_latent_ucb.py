"""`LatentUcb` in the worlds that it is meant for: any table, without settings."""

import math

import numpy as np
import pytest

from halfseen import InvalidSettingError, LatentUcb, LowRankWorld, Slate, load, play
from halfseen.latent.offered import OfferedRows, Sample
from halfseen.latent.row_model import MOST_AMBIENT_FEATURES


def main_world(observe_prob, **settings):
    basics = {"dim": 30, "rank": 3, "n_arms": 8, "horizon": 400, "noise_scale": 0.05}
    return LowRankWorld(**basics | settings, observe_prob=observe_prob)


def mean_regret(policy, world, seeds):
    return np.mean([play(policy(seed), world.realize(seed)).final_regret for seed in seeds])


# How well it plays. Bounds are those of the project's plan, on seeds that no default was chosen on.


@pytest.mark.parametrize(("observe_prob", "most"), [(0.4, 5.5), (0.2, 16.5)])
def test_regret_of_the_main_study_without_knowing_that_means_are_zero(observe_prob, most):
    regret = mean_regret(lambda seed: LatentUcb(seed=seed), main_world(observe_prob), range(20))
    assert regret <= most


def test_regret_of_the_main_study_if_means_are_known_to_be_zero():
    def policy(seed):
        return LatentUcb(seed=seed, through_origin=True, rank=3)

    assert mean_regret(policy, main_world(0.4), range(20)) <= 4.4


def starving(seed):
    """Offers in which only small arms pay, and large ones are most uncertain."""
    random = np.random.default_rng(seed)
    while True:
        size = random.lognormal(0.0, 0.5, (10, 1))
        table = np.hstack([100 * size * (1 + 0.1 * random.normal(size=(10, 4)))])
        table = np.hstack([table, random.normal(size=(10, 4))])
        table[random.random(table.shape) < 0.2] = np.nan
        yield table, (size[:, 0] < 0.45).astype(float)


def earned(policy, seed, rounds, choose=None):
    rewards = []
    for _, (table, payoffs) in zip(range(rounds), starving(seed), strict=False):
        if choose is not None:
            rewards.append(payoffs[choose.integers(len(table))])
            continue
        decision = policy.choose(table)
        rewards.append(payoffs[decision.arm])
        policy.learn(decision, float(rewards[-1]))
    return np.array(rewards)


def test_equal_rewards_do_not_starve_it():
    ours, uniform = [], []
    for seed in range(10):
        ours.append(earned(LatentUcb(seed=seed), seed, 300))
        uniform.append(earned(None, seed, 300, np.random.default_rng(seed)))
    first, first_uniform = (
        np.median([each.argmax() + 1 for each in runs]) for runs in (ours, uniform)
    )
    assert first <= 3 * first_uniform
    # The best arm of a slate pays in about 43 % of the rounds, a random one in 5 %.
    assert min(each[100:].mean() for each in ours) > 0.3


def catalogue(seed, *, n_arms=40, dim=30, useful=True):
    """Fixed arms with fixed holes, and their mean rewards."""
    random = np.random.default_rng(seed)
    latent = random.normal(size=(n_arms, 3))
    table = latent @ random.normal(size=(3, dim))
    table[random.random(table.shape) < 0.5] = np.nan
    return table, latent @ random.normal(size=3) if useful else random.normal(size=n_arms)


@pytest.mark.parametrize("useful", [True, False], ids=["features tell", "features tell nothing"])
@pytest.mark.parametrize(("n_arms", "noise"), [(40, 0.5), (10, 0.1)])
def test_regret_in_a_catalogue_levels_off(n_arms, noise, useful):
    halves = np.zeros(2)
    for seed in range(4):
        table, means = catalogue(seed, n_arms=n_arms, useful=useful)
        policy, random = LatentUcb(seed=seed), np.random.default_rng(seed)
        for round in range(1000):
            decision = policy.choose(table)
            policy.learn(decision, means[decision.arm] + noise * random.normal())
            halves[round // 500] += means.max() - means[decision.arm]
    assert halves[1] <= 0.5 * halves[0]


def test_arms_that_come_back_count_once():
    ranks = []
    for seed in range(10):
        table, means = catalogue(seed)
        policy = LatentUcb(seed=seed)
        for _ in range(12):
            decision = policy.choose(table)
            policy.learn(decision, means[decision.arm])
        assert policy.epoch_log[-1].n_arms == len(table)
        ranks.append(policy.current_rank)
    assert ranks.count(3) >= 9


@pytest.mark.parametrize("change", ["taste", "subspace", "unit"])
def test_with_a_half_life_it_recovers_from_a_change(change):
    half_life, dim = 60, 15
    before, after = 0.0, 0.0
    for seed in range(3):
        random = np.random.default_rng(seed)
        loadings, theta, unit = random.normal(size=(3, dim)), random.normal(size=3), np.ones(dim)
        policy = LatentUcb(seed=seed, half_life=half_life)
        for round in range(720):
            if round == 360 and change == "taste":
                theta = random.normal(size=3)
            if round == 360 and change == "subspace":
                loadings = random.normal(size=(3, dim))
            if round == 360 and change == "unit":
                unit[0] = 1000.0
            latent = random.normal(size=(6, 3))
            table = unit * (latent @ loadings + 0.5 * random.normal(size=(6, dim)))
            table[random.random(table.shape) < 0.4] = np.nan
            decision, means = policy.choose(table), latent @ theta
            policy.learn(decision, means[decision.arm] + 0.5 * random.normal())
            loss = means.max() - means[decision.arm]
            before += loss * (180 <= round < 360)
            after += loss * (round >= 360 + 3 * half_life)
    assert after <= 2.0 * before


def test_with_a_half_life_old_arms_and_rewards_make_room_for_new_ones():
    policy, random = LatentUcb(half_life=10.0), np.random.default_rng(0)
    for _ in range(400):  # more arms than a model is fitted to
        decision = policy.choose(random.normal(size=(16, 3)))
        policy.learn(decision, float(random.normal()))
    counted = 16 * policy._settings.oldest_age
    assert abs(policy.epoch_log[-1].n_arms - counted) < 0.1 * counted
    assert len(policy._history) < 2 * policy._settings.oldest_age


def test_a_first_hidden_cell_is_not_taken_for_information():
    """With a half-life, ages weigh rows: a share of 1 up to rounding once made masks a feature."""
    for half_life in (50.0, 100.0, 400.0):
        policy, random = LatentUcb(half_life=half_life), np.random.default_rng(0)
        for _ in range(150):
            table = random.normal(size=(4, 6))
            decision = policy.choose(table)
            policy.learn(decision, table[decision.arm, 0] + 0.1 * random.normal())
        table = random.normal(size=(4, 6))
        table[2, 5] = np.nan
        assert policy.score(table).widths.max() < 1.0


def test_a_rare_reward_that_has_faded_opens_no_epochs():
    policy, random = LatentUcb(half_life=20.0), np.random.default_rng(0)
    for round in range(300):
        decision = policy.choose(random.normal(size=(4, 3)))
        policy.learn(decision, float(round == 5))
    assert len(policy.epoch_log) < 100


def test_absorbed_arms_count_as_items():
    table, means = catalogue(0, n_arms=40, dim=6)
    policy, random = LatentUcb(dim=6), np.random.default_rng(0)
    for _ in range(3):
        policy.absorb(table)
    for _ in range(20):
        some = random.choice(40, 8, replace=False)
        decision = policy.choose(table[some])
        policy.learn(decision, means[some[decision.arm]])
    assert policy.epoch_log[-1].n_items == 40


@pytest.mark.parametrize(("n_items", "times"), [(3000, 12), (12_000, 6), (30_000, 1)])
def test_how_often_items_return_does_not_depend_on_the_size_of_the_sample(n_items, times):
    """A sample of 5,000 rows has nearly all of 3,000 items, and few of 12,000 twice."""
    sample = Sample(1, max_rows=5000, seed=0, recent=False)
    random = np.random.default_rng(0)
    for _ in range(times):
        items = random.permutation(n_items)
        sample = sample.plus(items[:, None] / 7.0, items)
    rows = OfferedRows.of(sample, 1000, math.inf)
    assert rows.n_items() == pytest.approx(n_items, rel=0.05)


def test_without_a_half_life_old_rewards_count_forever():
    policy = LatentUcb(dim=3)
    assert policy._settings.decay([0, 1000]).tolist() == [1.0, 1.0]
    assert LatentUcb(dim=3, half_life=10.0)._settings.decay([0, 10, 20]).tolist() == [
        1.0,
        0.5,
        0.0625,
    ]


def test_holes_that_mean_something_are_found():
    random = np.random.default_rng(0)
    policy, gained = LatentUcb(), []
    for _ in range(300):
        table = random.normal(size=(6, 5))
        hidden = random.random((6, 5)) < 0.4
        decision = policy.choose(np.where(hidden, np.nan, table))
        means = 2.0 * hidden[:, 0]
        policy.learn(decision, means[decision.arm] + 0.3 * random.normal())
        gained.append(means[decision.arm] == means.max())
    assert np.mean(gained[50:]) > 0.95
    scales = policy.epoch_log[-1].scales
    assert scales["mask"] > 3 * scales["filled"]


# What it is made of


def offers(n, dim=6, seed=0):
    random = np.random.default_rng(seed)
    loadings = random.normal(size=(2, dim))
    for _ in range(n):
        latent = random.normal(size=(4, 2))
        table = 1.0 + latent @ loadings + 0.1 * random.normal(size=(4, dim))
        yield np.where(random.random(table.shape) < 0.6, table, np.nan), latent[:, 0]


def played(policy, n=40, **settings):
    for table, rewards in offers(n, **settings):
        decision = policy.choose(table)
        policy.learn(decision, float(rewards[decision.arm]))
    return policy


def test_epochs_start_in_rounds_that_grow_by_a_quarter():
    starts = [record.round for record in played(LatentUcb()).epoch_log]
    assert starts == [2, 3, 4, 5, 7, 9, 12, 15, 19, 24, 30, 38]


def test_an_epoch_opens_as_soon_as_two_rewards_differ():
    policy = LatentUcb(growth=100.0)
    rewards = iter([0.0, 0.0, 0.0, 1.0, 0.0, 0.0])
    for table, _ in offers(6):
        policy.learn(policy.choose(table), next(rewards))
    assert [record.round for record in policy.epoch_log] == [2, 5]
    assert [record.noise_scale is None for record in policy.epoch_log] == [True, False]


def test_without_an_intercept_one_reward_is_enough():
    policy = LatentUcb(through_origin=True)
    tables = [table for table, _ in offers(2)]
    policy.learn(policy.choose(tables[0]), 1.0)
    assert policy.choose(tables[1]).estimates.any()


def test_late_rewards_lead_to_the_same_models_as_timely_ones():
    """Both policies play the same arms; one gets its rewards in pairs, in reverse order."""
    policy, late = LatentUcb(), LatentUcb()
    waiting = []
    for table, rewards in offers(24):
        decision = policy.choose(table)
        other = late.choose(table[decision.arm : decision.arm + 1])  # it has no other choice
        late.absorb(np.delete(table, decision.arm, axis=0))
        policy.learn(decision, float(rewards[decision.arm]))
        waiting.append((other, float(rewards[decision.arm])))
        if len(waiting) == 2:
            late.learn(*waiting.pop())
            late.learn(*waiting.pop())
    ours, theirs = (each._history.rows.merged() for each in (policy, late))
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(mine, other)
    assert policy.epoch_log[-1].rank == late.epoch_log[-1].rank


def test_a_late_reward_enters_the_present_regression():
    policy = played(LatentUcb())
    (table, _), *_ = offers(1, seed=5)
    before = policy.choose(table)
    played_on = played(policy, 20, seed=6)
    n_samples = played_on._epoch.reward_model.ridge.n_samples
    played_on.learn(before, 3.0)
    assert played_on._epoch.reward_model.ridge.n_samples == n_samples + 1


def test_groups_can_be_left_out():
    groups = ["mask", "latent"]
    policy = played(LatentUcb(groups=groups))
    assert set(policy.epoch_log[-1].scales) == {"latent", "mask"}
    assert policy.groups == ("latent", "mask")
    assert policy.settings()["groups"] == ["latent", "mask"]


def test_filled_arms_are_left_out_where_the_latent_model_explains_everything():
    policy = LatentUcb()
    play(policy, main_world(0.6, horizon=40).realize(0))
    assert set(policy.epoch_log[-1].scales) == {"latent", "mask"}


def test_with_many_features_only_latent_coordinates_are_used():
    policy = played(LatentUcb(), 12, dim=MOST_AMBIENT_FEATURES + 1)
    assert set(policy.epoch_log[-1].scales) == {"latent"}
    assert set(played(LatentUcb(), 12, dim=20).epoch_log[-1].scales) == {
        "latent",
        "filled",
        "mask",
    }


def test_a_given_rank_is_used():
    assert played(LatentUcb(rank=1)).current_rank == 1
    assert played(LatentUcb(rank=0)).current_rank == 0


def test_a_rank_that_features_do_not_allow_is_said():
    """Of d features at most d − 1 latent coordinates are used, until more features come."""
    policy = played(LatentUcb(rank=4), dim=4)
    assert policy.current_rank == 3
    (said,) = policy.warnings()
    assert said.startswith("rank is 4, and 4 features allow 3")
    policy.widen(5)
    assert played(LatentUcb(rank=3), dim=4).warnings() == policy.warnings() == ()


@pytest.mark.parametrize(
    "table",
    [
        np.full((3, 4), np.nan),
        np.ones((3, 4)),
        np.array([[1.0, np.nan, np.nan, np.nan]] * 3),
        np.array([[0.0, 1.0, 1.0, 0.0], [1.0, 0.0, 1.0, 0.0], [1.0, 1.0, 1.0, 1.0]]),
        np.arange(4.0)[None, :],
    ],
    ids=["nothing seen", "constant", "one feature", "zeros and ones", "one arm"],
)
def test_poor_tables_are_played(table):
    policy, random = LatentUcb(), np.random.default_rng(0)
    for _ in range(25):
        decision = policy.choose(table)
        assert np.isfinite(decision.scores).all()
        policy.learn(decision, float(random.normal()))


def test_absorbed_arms_teach_the_latent_model():
    policy = LatentUcb(dim=6)
    for table, _ in offers(30):
        policy.absorb(table)
    (table, _), (second, _) = offers(2, seed=3)
    policy.choose(table)
    policy.choose(second)
    assert policy.current_rank == 2


def test_a_policy_with_items_and_a_half_life_is_saved_whole(tmp_path):
    table, means = catalogue(0, n_arms=10, dim=6)
    policy, random = LatentUcb(half_life=50.0, memory_bytes=4800), np.random.default_rng(0)
    for _ in range(60):
        policy.learn(decision := policy.choose(table), means[decision.arm] + random.normal())
    assert len(policy._epoch.reward_model.items)
    policy.save(tmp_path / "policy.halfseen")
    again = load(tmp_path / "policy.halfseen")
    for _ in range(30):
        decision, other = policy.choose(table), again.choose(table)
        np.testing.assert_array_equal(decision.scores, other.scores)
        reward = means[decision.arm] + random.normal()
        policy.learn(decision, reward)
        again.learn(other, reward)


@pytest.mark.parametrize(
    "settings",
    [
        {"rank": -1},
        {"dim": 3, "rank": 4},
        {"groups": []},
        {"groups": "latent"},
        {"groups": ["latent", "all"]},
        {"half_life": 0.5},
        {"exploration": "wild"},
    ],
)
def test_impossible_settings_are_refused(settings):
    with pytest.raises(InvalidSettingError):
        LatentUcb(**settings)


def test_a_log_does_not_make_items_seem_rare():
    """A row of it is one item; here every round offers all of them."""
    random = np.random.default_rng(0)
    policy, nothing, items = LatentUcb(), np.full((8, 1), np.nan), np.arange(8)
    rows = random.integers(8, size=500)
    policy.learn_logged(np.full((500, 1), np.nan), random.normal(size=500), items=rows)
    decision = policy.choose(nothing, items=items)
    _, item_width = policy._width_factors(Slate(nothing, items=items))
    assert item_width == pytest.approx(0.75 * np.sqrt(2.0 * np.log(502)), rel=0.01)
    assert decision.widths.min() > 0.0


def test_widths_are_half_as_large_where_arms_are_fresh():
    random = np.random.default_rng(0)
    catalogue, widths = random.normal(size=(6, 4)), []
    for fresh in (True, False):
        policy = LatentUcb()
        for _ in range(30):
            arms = random.normal(size=(6, 4)) if fresh else catalogue
            decision = policy.choose(arms)
            policy.learn(decision, float(arms[decision.arm].sum() + random.normal()))
        widths.append(policy._width_factors(Slate(arms))[0])
    assert widths[0] == pytest.approx(1.0)
    assert widths[1] > 1.9
