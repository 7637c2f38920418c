"""The builders of frozen features, on made-up data that takes no time."""

import json
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from halfseen import InvalidInputError
from halfseen.cli import app
from halfseen.errors import HalfseenError
from halfseen.paper import databuild as building
from halfseen.paper.databuild import (
    RECIPES,
    Raw,
    build,
    compare,
    difference,
    represent_mnist,
    represent_newsgroups,
    stratified_split,
)
from halfseen.paper.product_context import ProductContextWorld, load_frozen, read_archive


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


@pytest.fixture
def raw():
    return made_up_documents()


@pytest.fixture
def offline(monkeypatch, raw):
    recipe = RECIPES["newsgroups"]._replace(load=lambda: raw)
    monkeypatch.setattr(building, "RECIPES", {**RECIPES, "newsgroups": recipe})


def call(*arguments):
    return CliRunner().invoke(app, ["build-data", *arguments], env={"COLUMNS": "150"})


def test_a_split_holds_out_a_fifth_of_every_class():
    labels = np.random.default_rng(0).permutation(np.repeat([0, 1, 2], [50, 21, 9]))
    train, heldout = stratified_split(labels, np.random.default_rng(1))
    assert sorted([*train, *heldout]) == list(range(80))
    assert np.bincount(labels[heldout]).tolist() == [10, 4, 2]
    again, _ = stratified_split(labels, np.random.default_rng(1))
    assert np.array_equal(train, again)
    other, _ = stratified_split(labels, np.random.default_rng(2))
    assert not np.array_equal(train, other)


def test_too_few_items_are_refused():
    with pytest.raises(InvalidInputError, match="2 items are too few"):
        stratified_split(np.array([0, 1]), np.random.default_rng(0))


def test_a_checksum_tells_raw_data_apart(raw):
    assert raw.checksum() == made_up_documents().checksum()
    others = [
        made_up_documents(1),
        raw._replace(labels=raw.labels[::-1]),
        raw._replace(items=[raw.items[0] + raw.items[1], "", *raw.items[2:]]),
    ]
    assert len({raw.checksum(), *(other.checksum() for other in others)}) == 4
    assert made_up_images().checksum() == made_up_images().checksum()


def test_documents_become_unit_vectors_that_their_classifier_tells_apart(raw):
    frozen = represent_newsgroups(raw, 0, rank=6)
    assert frozen.features.shape == (24, 6)
    assert frozen.weights.shape == (4, 6)
    assert np.linalg.norm(frozen.features, axis=1) == pytest.approx(np.ones(24))
    assert frozen.heldout_accuracy == 1 - frozen.wrong().mean()
    assert frozen.heldout_accuracy > 0.9
    other = represent_newsgroups(raw, 1, rank=6)
    assert not np.array_equal(frozen.features, other.features)


def test_an_archive_grows_seed_by_seed_and_feeds_a_world(raw, tmp_path):
    archive = build("newsgroups", raw, [0], tmp_path)
    before = read_archive(archive)[0]
    told = []
    build("newsgroups", raw, [0, 5], tmp_path, done=lambda seed, frozen: told.append(seed))
    assert told == [0, 5]
    assert list(read_archive(archive)) == [0, 5]
    assert difference(before, read_archive(archive)[0]) == (0.0, 0.0, 0, 0.0)
    world = ProductContextWorld(source="newsgroups", path=str(archive), dim=30, horizon=4)
    assert len(list(world.realize(5).rounds())) == 4
    manifest = json.loads((tmp_path / "newsgroups.json").read_text(encoding="utf-8"))
    assert manifest["raw"] == {"n_items": 120, "sha256": raw.checksum()}
    assert list(manifest["seeds"]) == ["0", "5"]
    assert "scikit-learn" in manifest["versions"]
    assert not list(tmp_path.glob("*.part"))


def test_equal_makings_give_equal_bytes(raw, tmp_path):
    one, other = (build("newsgroups", raw, [2], tmp_path / name) for name in "ab")
    assert one.read_bytes() == other.read_bytes()


def test_other_raw_data_never_mix_into_an_archive(raw, tmp_path):
    build("newsgroups", raw, [0], tmp_path)
    other = made_up_documents(1)
    with pytest.raises(InvalidInputError, match=r"was made with other raw .*--again"):
        build("newsgroups", other, [1], tmp_path)
    archive = build("newsgroups", other, [1], tmp_path, again=True)
    assert list(read_archive(archive)) == [1]


def test_an_archive_without_its_manifest_is_refused(raw, tmp_path):
    archive = build("newsgroups", raw, [0], tmp_path)
    (tmp_path / "newsgroups.json").unlink()
    with pytest.raises(InvalidInputError, match=r"newsgroups\.json cannot be read"):
        build("newsgroups", raw, [0], tmp_path)
    assert archive.exists()


def test_a_comparison_says_how_far_a_new_making_is_off(raw, tmp_path):
    archive = build("newsgroups", raw, [0, 1], tmp_path)
    for each in compare("newsgroups", raw, [0, 1], archive).values():
        assert each.features < 1e-6  # single precision
        assert each.weights < 1e-5
        assert (each.labels, each.heldout_accuracy) == (0, 0.0)
    other = difference(represent_newsgroups(raw, 0), represent_newsgroups(raw, 1))
    assert other.features > 0.1
    shipped = compare("newsgroups", raw, [0])[0]
    assert shipped.features == np.inf  # another number of documents
    assert shipped.labels == -1


def test_the_command_builds_and_compares(offline, tmp_path):
    done = call("newsgroups", "--seeds", "0:2", "--out", str(tmp_path))
    assert done.exit_code == 0, done.output
    assert "newsgroups.npz" in done.output
    assert list(read_archive(tmp_path / "newsgroups.npz")) == [0, 1]
    assert load_frozen("newsgroups", 1, str(tmp_path / "newsgroups.npz")).labels.shape == (24,)
    done = call("newsgroups", "--seeds", "3", "--compare")
    assert done.exit_code == 0, done.output
    assert "against those that ship" in done.output
    assert "inf" in done.output


def test_the_command_refuses_other_sources():
    done = call("cifar")
    assert done.exit_code == 2
    assert "source must be one of 'mnist', 'newsgroups', got 'cifar'" in done.output


def test_without_torch_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(HalfseenError, match=r"pip install 'halfseen\[images\]'"):
        represent_mnist(made_up_images(), 0)
    done = call("mnist")
    assert done.exit_code == 2
    assert "pip install 'halfseen[images]'" in done.output


def test_images_become_four_numbers_that_their_network_tells_apart():
    torch = pytest.importorskip("torch", reason="the extra `images` is not installed")
    raw, before = made_up_images(), torch.random.get_rng_state()
    frozen = represent_mnist(raw, 0, n_train=400, n_sampled=50, epochs=12)
    assert frozen.features.shape == (50, 4)
    assert frozen.weights.shape == (10, 4)
    assert frozen.heldout_accuracy > 0.5  # by chance 0.1
    assert torch.equal(before, torch.random.get_rng_state())
    one, other = (represent_mnist(raw, 1, n_train=200, n_sampled=50, epochs=1) for _ in "ab")
    assert difference(one, other).features < 1e-4
