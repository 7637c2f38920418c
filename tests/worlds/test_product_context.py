"""Real items as arms: what is lifted, what is added, what pays, and what it costs to walk."""

import hashlib
import json
import tracemalloc
from importlib.resources import files
from itertools import islice

import numpy as np
import pytest

from halfseen import AmbientOful, InvalidSettingError, TofuPov, play
from halfseen.paper.product_context import SOURCES, ProductContextWorld, load_frozen
from halfseen.worlds.base import world_from

SEEDS = (*range(10), 10_000, 10_001, 10_002)
# Mean held-out accuracy of the published runs, seeds 0 to 4.
PUBLISHED = {"mnist": 0.80637, "newsgroups": 0.86035}
DATA = files("halfseen") / "paper" / "data"


def walked(world, seed=0):
    realization = world.realize(seed)
    arms, means = zip(*((each.arms, each.means) for each in realization.rounds()), strict=True)
    return realization, np.array(arms), np.array(means)


@pytest.fixture(scope="module")
def images():
    return walked(ProductContextWorld(source="mnist"))


@pytest.fixture(scope="module")
def documents():
    return walked(ProductContextWorld(source="newsgroups", dim=60, horizon=900))


def parts(realization, arms):
    """Return coordinates in the basis and what is outside of it, a row per arm."""
    rows = arms.reshape(-1, arms.shape[-1])
    inside = rows @ realization.basis
    return inside, rows - inside @ realization.basis.T


@pytest.mark.parametrize(
    ("source", "dim", "n_arms", "rank", "horizon"),
    [("mnist", 100, 10, 4, 5000), ("newsgroups", 1000, 4, 20, 8000)],
)
def test_sizes_are_the_papers(source, dim, n_arms, rank, horizon):
    world = ProductContextWorld(source=source)
    assert (world.dim, world.horizon) == (dim, horizon)
    facts = ProductContextWorld(source=source, horizon=30).realize(0).facts
    assert (facts.dim, facts.n_arms, facts.rank, facts.noise_scale) == (dim, n_arms, rank, 0.5)
    assert facts.basis.shape == (dim, rank)
    assert facts.basis.T @ facts.basis == pytest.approx(np.eye(rank), abs=1e-12)


def test_the_true_class_pays_one_and_nothing_else_pays(images):
    realization, _, means = images
    labels = realization.frozen.labels[realization.items]
    assert (np.sort(means, axis=1) == [0.0] * 9 + [1.0]).all()
    assert np.array_equal(means.argmax(axis=1), labels)
    assert all(each.noise == 0.0 for each in islice(realization.rounds(), 20))


def test_images_come_once_and_documents_again(images, documents):
    assert len(set(images[0].items.tolist())) == 5000
    assert len(set(documents[0].items.tolist())) < 749 < len(documents[0].items)


@pytest.mark.parametrize("which", ["images", "documents"])
def test_arms_are_contexts_times_class_weights_in_the_lift_and_the_largest_has_norm_1(
    which, request
):
    realization, arms, _ = request.getfixturevalue(which)
    frozen, scene = realization.frozen, realization._scene
    contexts = frozen.features[realization.items][:, None, :] * frozen.weights
    assert arms @ scene.lift == pytest.approx(scene.scale * contexts, abs=1e-12)
    assert np.linalg.norm(arms, axis=2).max() == pytest.approx(1.0, abs=1e-9)
    assert (np.abs(parts(realization, arms)[1]).max() < 1e-14) == (which == "images")


@pytest.mark.parametrize("which", ["images", "documents"])
def test_latent_variances_are_the_second_moment_along_the_basis(which, request):
    realization, arms, _ = request.getfixturevalue(which)
    inside, _ = parts(realization, arms)
    expected = np.diag(realization.latent_variances)
    assert inside.T @ inside / len(inside) == pytest.approx(expected, abs=1e-12)
    assert (np.diff(realization.latent_variances) <= 0).all()


def test_the_nuisance_is_orthogonal_to_the_signal_and_fills_the_rest(documents):
    realization, arms, _ = documents
    frozen, scene = realization.frozen, realization._scene
    contexts = frozen.features[realization.items][:, None, :] * frozen.weights
    nuisance = (arms - scene.scale * contexts @ scene.lift.T).reshape(-1, 60)
    assert np.abs(nuisance @ realization.basis).max() < 1e-12 * np.abs(nuisance).max()
    sizes = np.linalg.svd(nuisance, compute_uv=False)
    assert np.sum(sizes > 1e-9 * sizes[0]) == 60 - 20


def test_the_nuisance_is_fresh_for_every_round_and_arm(documents):
    realization, arms, _ = documents
    inside, outside = parts(realization, arms)
    first, again = np.flatnonzero(realization.items == realization.items[0])[:2] * 4
    assert inside[again] == pytest.approx(inside[first], abs=1e-12)
    # Rows of pure chance: their largest correlation of 3600 pairs stays far from 1.
    rows = outside / np.linalg.norm(outside, axis=1)[:, None]
    assert np.abs(rows[1:] @ rows[0]).max() < 0.8
    assert np.abs(np.einsum("nd,nd->n", rows[1:], rows[:-1])).max() < 0.8


@pytest.mark.parametrize(("dim", "horizon"), [(60, 900), (1000, 600)])
def test_the_nuisance_s_top_eigenvalue_is_a_quarter_of_the_signal_s_smallest(dim, horizon):
    world = ProductContextWorld(source="newsgroups", dim=dim, horizon=horizon)
    realization, arms, _ = walked(world)
    inside, outside = parts(realization, arms)
    smallest = np.linalg.eigvalsh(np.cov(inside.T))[0]
    assert np.linalg.eigvalsh(np.cov(outside.T))[-1] == pytest.approx(smallest / 4, rel=1e-5)


@pytest.mark.parametrize(
    ("seed", "tofu", "zero_filled"), [(0, 1249, 1959), (1, 1075, 2106), (2, 1547, 2091)]
)
def test_regrets_on_images_are_the_published_ones_of_each_seed(seed, tofu, zero_filled):
    """To 1 %: the networks are the published ones up to the rounding of their training."""
    realization = ProductContextWorld(source="mnist", observe_prob=0.2).realize(seed)
    sizes = {"dim": 100, "observe_prob": 0.2, "horizon": 5000, "noise_scale": 0.5}
    policy = TofuPov(**sizes, rank=4, burn_in=500, replay="full")
    assert play(policy, realization).final_regret == pytest.approx(tofu, rel=0.01)
    policy = AmbientOful(dim=100, noise_scale=0.5, radius_scale=0.25)
    assert play(policy, realization).final_regret == pytest.approx(zero_filled, rel=0.01)


def test_a_nuisance_can_be_left_out_or_added():
    _, arms, _ = walked(ProductContextWorld(source="newsgroups", dim=60, horizon=40, tail=0))
    assert np.linalg.matrix_rank(arms.reshape(-1, 60)) == 20
    _, arms, _ = walked(ProductContextWorld(source="mnist", dim=9, horizon=40, tail=0.1))
    assert np.linalg.matrix_rank(arms.reshape(-1, 9)) == 9


@pytest.mark.parametrize("which", ["images", "documents"])
def test_irreducible_regret_is_that_of_the_classifier_on_the_very_rounds(which, request):
    realization, arms, means = request.getfixturevalue(which)
    theta = realization._scene.lift.sum(axis=1)  # entries of h ⊙ w_k add up to the class's score
    missed = means.argmax(axis=1) != (arms @ theta).argmax(axis=1)
    assert realization.irreducible_regret() == missed.sum()


def test_other_probabilities_have_the_same_arms_and_nested_masks():
    few, many = (
        ProductContextWorld(source="newsgroups", dim=200, horizon=60, observe_prob=p).realize(3)
        for p in (0.2, 0.5)
    )
    assert few._scene is many._scene  # the walk through the nuisance is not done again
    seen = []
    for one, other in zip(few.rounds(), many.rounds(), strict=True):
        assert np.array_equal(one.arms, other.arms)
        assert not (one.slate.mask & ~other.slate.mask).any()
        seen.append(one.slate.mask.mean())
    assert np.mean(seen) == pytest.approx(0.2, abs=5 * np.sqrt(0.16 / (60 * 4 * 200)))


def test_a_walk_holds_a_chunk_and_not_the_horizon():
    """All arms of 8000 rounds would be 256 MB; the first walk, for the nuisance, has a Gram."""
    short, long = (
        ProductContextWorld(source="newsgroups", horizon=horizon).realize(0)
        for horizon in (200, 600)
    )
    assert peak(lambda: ProductContextWorld(source="newsgroups", horizon=50).realize(1)) < 60e6
    early, late = (peak(lambda w=each: [None for _ in w.rounds()]) for each in (short, long))
    assert early < 8e6
    assert late < early + 100_000


def peak(work):
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"source": "cifar"}, "source must be one of 'mnist', 'newsgroups', got 'cifar'"),
        ({"source": "mnist", "horizon": 5001}, r"horizon .* \[1, 5000\], got 5001"),
        ({"source": "mnist", "dim": 3}, r"dim .* \[4, inf\), got 3"),
        ({"source": "newsgroups", "dim": 20}, r"dim .* \[21, inf\), got 20"),
        ({"source": "mnist", "tail": -1}, r"tail .* got -1"),
        ({}, "source"),
    ],
)
def test_what_does_not_fit_is_refused(settings, message):
    with pytest.raises(InvalidSettingError, match=message):
        world_from({"kind": "product-context", **settings}).realize(0)


def test_a_seed_without_features_is_refused_with_those_there_are_and_the_remedy():
    with pytest.raises(InvalidSettingError, match=r"8, 9, 10000, .*got 10:.*build_data"):
        ProductContextWorld(source="mnist").realize(10)


def test_images_have_the_published_lift_at_the_papers_dim():
    frozen = load_frozen("mnist", 4)
    assert np.array_equal(ProductContextWorld(source="mnist").realize(4)._scene.lift, frozen.lift)
    other = ProductContextWorld(source="mnist", dim=50).realize(4).basis
    assert other.T @ other == pytest.approx(np.eye(4), abs=1e-12)


@pytest.mark.parametrize("source", SOURCES)
def test_the_manifest_tells_of_the_small_archive_that_ships(source):
    manifest = json.loads((DATA / f"{source}.json").read_text(encoding="utf-8"))
    archive = (DATA / f"{source}.npz").read_bytes()
    assert len(archive) < 2_000_000
    assert manifest["archive_sha256"] == hashlib.sha256(archive).hexdigest()
    assert tuple(int(seed) for seed in manifest["seeds"]) == SEEDS
    for seed in SEEDS:
        told = manifest["seeds"][str(seed)]["heldout_accuracy"]
        assert told == pytest.approx(load_frozen(source, seed).heldout_accuracy, abs=1e-6)


@pytest.mark.parametrize("source", SOURCES)
def test_accuracies_are_the_published_ones(source):
    found = np.mean([load_frozen(source, seed).heldout_accuracy for seed in range(5)])
    assert found == pytest.approx(PUBLISHED[source], abs=0.005)
