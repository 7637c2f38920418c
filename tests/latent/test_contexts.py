"""LatentUcb with a context, and with items that have numbers."""

import numpy as np
import pytest

from halfseen import LatentUcb, Slate, load

N_ITEMS, DIM = 4, 8


def disjoint(n_rounds, *, seed=0, share=0.7, noise=0.1):
    """Items without features, each with its own taste for a half-seen context of rank 3."""
    random = np.random.default_rng(seed)
    loadings, tastes = random.normal(size=(3, DIM)), random.normal(size=(N_ITEMS, 3))
    for _ in range(n_rounds):
        latent = random.normal(size=3)
        context = np.where(random.random(DIM) < share, 5.0 + latent @ loadings, np.nan)
        yield context, tastes @ latent, noise * random.normal()


def play(policy, rounds, *, shown=lambda context: context, order=None, reward=float):
    """Return the regret of each round, the choices, and the scores by item."""
    regrets, arms, scores = [], [], []
    nothing = np.full((N_ITEMS, 1), np.nan)
    for index, (context, means, noise) in enumerate(rounds):
        items = np.arange(N_ITEMS) if order is None else order[index]
        decision = policy.choose(nothing, context=shown(context), items=items)
        item = int(items[decision.arm])
        policy.learn(decision, reward(means[item] + noise))
        regrets.append(means.max() - means[item])
        arms.append(item)
        scores.append(decision.scores[np.argsort(items)])
    return np.array(regrets), arms, np.array(scores)


@pytest.mark.parametrize("share", [1.0, 0.7])
def test_items_without_features_are_learned_in_their_context(share):
    """Regret per round in the second half is below a tenth of what uniform play pays."""
    rounds = list(disjoint(400, share=share))
    regrets, *_ = play(LatentUcb(), rounds)
    uniform = np.mean([means.max() - means.mean() for _, means, _ in rounds])
    limit = 0.01 if share == 1.0 else 0.1
    assert regrets[200:].mean() < limit * uniform


def test_units_offsets_and_orders_of_the_context_change_no_choice():
    rounds, random = list(disjoint(100)), np.random.default_rng(3)
    _, expected, _ = play(LatentUcb(), rounds)
    for _ in range(3):
        factors = 10.0 ** random.uniform(-5, 5, DIM) * random.choice([-1.0, 1.0], DIM)
        offsets = factors * random.uniform(-1e2, 1e2, DIM)
        places = random.permutation(DIM)
        unit, shift = 10.0 ** random.uniform(-5, 5), random.uniform(-1e4, 1e4)
        _, arms, _ = play(
            LatentUcb(),
            rounds,
            shown=lambda context: (factors * context + offsets)[places],  # noqa: B023
            order=[random.permutation(N_ITEMS) for _ in rounds],
            reward=lambda r: unit * (r + shift),  # noqa: B023
        )
        assert arms == expected


def test_what_stands_at_a_hidden_entry_of_a_context_never_matters():
    policy, other = LatentUcb(), LatentUcb()
    nothing, items = np.full((N_ITEMS, 1), np.nan), np.arange(N_ITEMS)
    for context, means, _ in disjoint(60):
        hidden = np.isnan(context)
        poisoned = np.ma.array(np.where(hidden, 1e300, context), mask=hidden)
        ours = policy.choose(nothing, context=context, items=items)
        theirs = other.choose(nothing, context=poisoned, items=items)
        np.testing.assert_array_equal(ours.scores, theirs.scores)
        for each, decision in ((policy, ours), (other, theirs)):
            each.learn(decision, means[decision.arm])


def test_an_item_is_known_by_its_number_though_its_features_change():
    """The price changes in every round, and each item has an effect of its own."""

    def regret(items):
        random, policy, total = np.random.default_rng(0), LatentUcb(), 0.0
        effects = random.normal(size=10)
        for index in range(300):
            prices = random.normal(size=(10, 1))
            decision = policy.choose(prices, items=items)
            means = effects - 0.3 * prices[:, 0]
            policy.learn(decision, means[decision.arm] + 0.1 * random.normal())
            total += (index >= 150) * (means.max() - means[decision.arm])
        return total

    assert regret(np.arange(10)) < 0.05 * regret(None)


def test_memory_with_a_context_is_bounded_and_items_are_not_forgotten():
    """With memory for few arms, old rewards are summed up by item, and regret stays small."""
    rounds = list(disjoint(800))
    small, large = LatentUcb(memory_bytes=8_000), LatentUcb()
    ours, *_ = play(small, rounds)
    theirs, *_ = play(large, rounds)
    assert len(small._history) <= 2 * small._settings.n_kept < 200
    counts = small._history.summary.item_products[:, 0, 0]
    assert counts.sum() + len(small._history) == pytest.approx(800)
    assert ours[400:].sum() < 1.5 * theirs[400:].sum()


def test_products_of_many_independent_columns_are_learned():
    random, policy, regrets = np.random.default_rng(0), LatentUcb(), []
    for _ in range(450):
        options, context = random.normal(size=(6, 16)), random.normal(size=20)
        decision = policy.choose(options, context=context)
        means = options[:, 0] * context[0]
        policy.learn(decision, means[decision.arm] + 0.1 * random.normal())
        regrets.append(means.max() - means[decision.arm])
    assert np.mean(regrets[-50:]) < 0.1 * np.mean(regrets[:50])


def test_items_that_come_back_keep_their_own_coefficients_beside_many_columns():
    """Products would leave room for few of them, and an opening would take seconds."""
    random = np.random.default_rng(0)
    options, own = random.normal(size=(150, 30)), random.normal(size=(150, 30))
    items, contexts = random.integers(150, size=1024), random.normal(size=(1024, 30))
    rewards = (own[items] * contexts).sum(axis=1) + 0.1 * random.normal(size=1024)
    policy = LatentUcb(growth=16.0)
    policy.learn_logged(options[items], rewards, contexts=contexts, items=items)
    policy.choose(options, context=contexts[0], items=np.arange(150))
    rewards = policy._epoch.reward_model
    assert rewards.features.n_features < 100
    assert len(rewards.items) == 150


def test_without_the_group_a_context_changes_no_choice():
    groups = ["latent", "filled", "mask", "item"]
    random = np.random.default_rng(0)
    policy, blind = (LatentUcb(groups=groups) for _ in range(2))
    for _ in range(60):
        table = random.normal(size=(5, 6))
        ours = policy.choose(table, context=random.normal(size=3))
        theirs = blind.choose(table)
        assert ours.arm == theirs.arm
        for each, decision in ((policy, ours), (blind, theirs)):
            each.learn(decision, table[decision.arm, 0])


def test_an_item_is_not_the_arm_with_that_value():
    policy = LatentUcb(dim=1)
    random = np.random.default_rng(0)
    for index in range(100):
        decision = policy.choose([[0.0], [1.0], [2.0]])
        policy.learn(decision, [0.0, 0.0, 5.0][decision.arm] + 0.1 * random.normal())
        if index >= 60:
            policy.choose([[0.5], [0.5]], items=[2, 7])
    estimates = policy.score([[0.5], [0.5]], items=[2, 7]).estimates
    assert estimates[0] == estimates[1]


def test_a_context_of_a_logged_slate_counts_for_all_of_it():
    slate = Slate(np.eye(3), context=[1.0, 2.0])
    ours, theirs = LatentUcb(), LatentUcb()
    ours.learn_logged(slate, [1.0, 0.0, 2.0])
    theirs.learn_logged(np.eye(3), [1.0, 0.0, 2.0], contexts=[[1.0, 2.0]] * 3)
    np.testing.assert_array_equal(ours.score(slate), theirs.score(slate))
    assert ours.context_dim == 2


def test_a_context_that_grows_far_enters_with_the_next_epoch_and_not_as_a_huge_model(tmp_path):
    random = np.random.default_rng(0)
    policy = LatentUcb()
    for _ in range(40):
        decision = policy.choose(random.normal(size=(4, 14)), context=random.normal(size=10))
        policy.learn(decision, random.normal())
    waiting = policy.choose(random.normal(size=(4, 14)), context=random.normal(size=10))
    policy.widen(context_dim=400)
    policy.save(tmp_path / "policy")
    load(tmp_path / "policy").learn(waiting, 1.0)
    n_epochs = len(policy.epoch_log)
    while len(policy.epoch_log) == n_epochs or policy.round < 60:
        decision = policy.choose(random.normal(size=(4, 14)), context=random.normal(size=400))
        policy.learn(decision, random.normal())
        assert np.isfinite(decision.scores).all()
    assert policy._epoch.context.factors.dim == 400
    assert policy._epoch.reward_model.features.n_features < 1000


def test_little_memory_does_not_keep_a_policy_from_being_loaded(tmp_path):
    """Sums that were carried leave covariances that exceed 1 by rounding."""
    for seed in range(20, 24):
        random, policy = np.random.default_rng(seed), LatentUcb(memory_bytes=1)
        for _ in range(34):
            context, arms = random.normal(size=4), random.normal(size=(4, 3))
            context[random.random(4) < 0.3] = np.nan
            arms[random.random((4, 3)) < 0.3] = np.nan
            items = random.permutation(6)[:4]
            given = context if random.random() < 0.8 else None
            decision = policy.choose(arms, context=given, items=items)
            reward = np.nansum(context) * (items[decision.arm] - 2) + random.normal()
            policy.learn(decision, float(reward))
        policy.save(tmp_path / "policy")
        other = load(tmp_path / "policy")
        ours, theirs = (each.score(arms, context=context, items=items) for each in (policy, other))
        np.testing.assert_array_equal(ours, theirs)


def test_widths_are_half_as_large_where_the_context_decides_which_item_is_best():
    nothing, items, widths = np.full((N_ITEMS, 1), np.nan), np.arange(N_ITEMS), []
    for matters in (True, False):
        policy = LatentUcb()
        for context, by_context, noise in disjoint(150):
            decision = policy.choose(nothing, context=context, items=items)
            means = by_context if matters else items
            policy.learn(decision, means[decision.arm] + noise)
        widths.append(policy._width_factors(Slate(nothing, context=context, items=items))[0])
    assert widths[0] / widths[1] == pytest.approx(0.5, abs=0.05)
