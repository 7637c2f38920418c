"""The builder of frozen features, on made-up data that takes no time."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

from halfseen.paper.product_context import read_archive

SPEC = importlib.util.spec_from_file_location(
    "build_data", Path(__file__).parents[1] / "tools" / "build_data.py"
)
build_data = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(build_data)
Raw = build_data.Raw


def made_up_documents(seed=0):
    """Four subjects of ten words each, and twenty words that everybody uses."""
    random = np.random.default_rng(seed)
    labels = np.repeat(np.arange(4), 30)
    subjects = [[f"subject{label}word{index}" for index in range(10)] for label in range(4)]
    common = [f"common{index}" for index in range(20)]
    texts = [
        " ".join([*random.choice(subjects[label], 6), *random.choice(common, 6)])
        for label in labels
    ]
    return Raw(texts, labels)


def made_up_images():
    """A bright square in one of ten places."""
    labels = np.tile(np.arange(10), 60)
    images = np.random.default_rng(0).random((600, 1, 28, 28)).astype(np.float32) / 4
    for image, label in zip(images, labels, strict=True):
        row, column = divmod(int(label), 4)
        image[0, 9 * row : 9 * row + 8, 7 * column : 7 * column + 7] = 1.0
    return Raw(images, labels)


def test_a_split_holds_out_a_fifth_of_every_class():
    labels = np.random.default_rng(0).permutation(np.repeat([0, 1, 2], [50, 21, 9]))
    train, heldout = build_data.stratified_split(labels, np.random.default_rng(1))
    assert sorted([*train, *heldout]) == list(range(80))
    assert np.bincount(labels[heldout]).tolist() == [10, 4, 2]
    other, _ = build_data.stratified_split(labels, np.random.default_rng(2))
    assert not np.array_equal(train, other)


def test_documents_become_unit_vectors_that_their_classifier_tells_apart():
    frozen = build_data.represent_newsgroups(made_up_documents(), 0, rank=6)
    assert frozen.features.shape == (24, 6)
    assert frozen.weights.shape == (4, 6)
    assert np.linalg.norm(frozen.features, axis=1) == pytest.approx(np.ones(24))
    assert frozen.heldout_accuracy == 1 - frozen.wrong().mean()
    assert frozen.heldout_accuracy > 0.9


def test_equal_raw_data_give_equal_archives_with_a_manifest(tmp_path, capsys):
    raw = made_up_documents()
    one, other = (tmp_path / f"{name}.npz" for name in "ab")
    build_data.build("newsgroups", raw, [0, 5], one)
    build_data.build("newsgroups", made_up_documents(), [0, 5], other)
    assert one.read_bytes() == other.read_bytes()
    stored = read_archive(one)
    assert list(stored) == [0, 5]
    made = build_data.represent_newsgroups(raw, 5)
    assert build_data.largest_difference(stored[5].features, made.features) < 1e-6  # float32
    manifest = json.loads(one.with_suffix(".json").read_text(encoding="utf-8"))
    assert manifest["raw"] == {"n_items": 120, "sha256": raw.checksum()}
    assert list(manifest["seeds"]) == ["0", "5"]
    assert raw.checksum() != made_up_documents(1).checksum()


def test_a_comparison_with_the_features_that_ship_says_how_far_a_build_is_off(capsys):
    build_data.compare("newsgroups", made_up_documents(), [0])
    assert "largest difference of a feature inf" in capsys.readouterr().out  # other documents


def test_images_become_four_numbers_that_their_network_tells_apart():
    torch = pytest.importorskip("torch")
    raw, before = made_up_images(), torch.random.get_rng_state()
    frozen = build_data.represent_mnist(raw, 0, n_train=400, n_sampled=50, epochs=12)
    assert frozen.features.shape == (50, 4)
    assert frozen.weights.shape == (10, 4)
    assert frozen.heldout_accuracy > 0.5  # by chance 0.1
    assert torch.equal(before, torch.random.get_rng_state())
    one, other = (
        build_data.represent_mnist(raw, 1, n_train=200, n_sampled=50, epochs=1) for _ in "ab"
    )
    assert build_data.largest_difference(one.features, other.features) < 1e-4
