"""Files that are damaged, forged or made to fill the memory, and saves that are interrupted."""

import io
import json
import os
import tracemalloc
import zipfile

import numpy as np
import pytest

import halfseen
from halfseen import ArchiveError, archive
from robustness import files

MANY = 20 if os.environ.get("HALFSEEN_SOAK") else 1
SAVED = files.saved()


def load_bytes(tmp_path, content):
    (tmp_path / "policy").write_bytes(content)
    return halfseen.load(tmp_path / "policy")


def npy(array):
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array)
    return buffer.getvalue()


# Damage and forgery


@pytest.mark.parametrize("seed", range(4))
def test_a_changed_archive_is_refused_or_plays_finite_scores(seed):
    tried, failures = files.run(250 * MANY, seed)
    assert tried == 250 * MANY
    assert failures == []


def test_what_is_not_changed_is_not_refused():
    """The control: what is refused above is refused because of its change."""
    for content in SAVED.values():
        again = files.zipped(files.entries_of(content))
        assert files.plays(files.loaded(again))


@pytest.mark.parametrize("name", SAVED)
def test_every_entry_is_under_the_digest(name):
    """Entries are changed so that only the digest tells: sizes and checksums of the zip fit."""
    entries = files.entries_of(SAVED[name])
    for which, entry in entries.items():
        changed = bytearray(entry)
        changed[-1] ^= 1
        forged = archive._zipped(entries | {which: bytes(changed)}, zipfile.ZIP_DEFLATED)
        with pytest.raises(ArchiveError, match="its content does not fit its digest"):
            archive.from_bytes(forged)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA], ids=["bzip2", "lzma"])
def test_other_compressions_are_refused_before_they_unpack(method):
    """`zipfile` unpacks all of them at once, whatever size is listed: 300 bytes may be 600 MB."""
    entries = files.entries_of(SAVED["tofu"])
    with pytest.raises(ArchiveError, match="compressed in another way"):
        archive.from_bytes(archive._zipped(entries, method))


def test_only_an_archive_of_before_there_were_digests_may_lack_one():
    entries = files.entries_of(SAVED["tofu"])
    del entries["sha256"]
    with pytest.raises(ArchiveError, match="it has no digest"):
        archive.from_bytes(archive._zipped(entries, zipfile.ZIP_DEFLATED))
    text = entries["halfseen.json"].replace(b'"format": %d' % archive.FORMAT, b'"format": 3')
    entries["halfseen.json"] = text
    tree, version = archive.from_bytes(archive._zipped(entries, zipfile.ZIP_DEFLATED))
    assert (tree["policy"], version) == ("TofuPov", 3)


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_a_number_that_is_none_is_refused(tmp_path, word):
    entries = files.entries_of(SAVED["ambient"])
    text = entries["halfseen.json"].decode()
    entries["halfseen.json"] = text.replace('"log_det": ', f'"log_det": {word}, "other": ').encode()
    with pytest.raises(ArchiveError, match=f"{word} is no number"):
        load_bytes(tmp_path, files.zipped(entries))


def test_an_entry_that_belongs_to_nothing_is_refused(tmp_path):
    entries = files.entries_of(SAVED["ambient"]) | {"more.npy": npy(np.zeros(3))}
    with pytest.raises(ArchiveError, match=r"no part of the state is called more\.npy"):
        load_bytes(tmp_path, files.zipped(entries))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e101])
def test_an_arm_that_no_slate_may_hold_is_refused(tmp_path, value):
    tree, _ = archive.from_bytes(SAVED["tofu"])
    tree["state"]["played"]["rewards"][0] = value
    with pytest.raises(ArchiveError, match="array 'rewards' must be finite"):
        load_bytes(tmp_path, archive.to_bytes(tree))


# Files that expand


def expanding(level=9, n_bytes=60_000_000):
    """Return a small archive whose array takes much memory, as a compressor makes it."""
    entries = files.entries_of(SAVED["ambient"])
    entries["0.npy"] = npy(np.zeros(n_bytes // 8))
    entries["sha256"] = archive._digest(
        {n: e for n, e in entries.items() if n != "sha256"}
    ).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=level) as file:
        for name, entry in entries.items():
            file.writestr(name, entry)
    return buffer.getvalue()


def peak_of_loading(content):
    tracemalloc.start()
    try:
        with pytest.raises(ArchiveError) as refused:
            archive.from_bytes(content)
        return tracemalloc.get_traced_memory()[1], str(refused.value)
    finally:
        tracemalloc.stop()


def test_an_archive_that_expands_is_refused_before_it_is_unpacked():
    content = expanding()
    assert len(content) < 80_000
    peak, message = peak_of_loading(content)
    assert "must not expand to 60" in message
    assert peak < 10_000_000


def test_an_archive_that_says_it_is_small_is_not_unpacked_further():
    """The sizes of the directory are changed, so that only reading would tell."""
    content = expanding()
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        size = file.getinfo("0.npy").file_size
    forged = content.replace(size.to_bytes(4, "little"), (1000).to_bytes(4, "little"))
    assert forged != content
    assert peak_of_loading(forged)[0] < 10_000_000


def test_an_array_that_is_named_many_times_is_refused():
    entries = files.entries_of(SAVED["ambient"])
    head = json.loads(entries["halfseen.json"])
    head["state"]["more"] = [{"$array": 0}] * 1000
    entries["halfseen.json"] = json.dumps(head).encode()
    with pytest.raises(ArchiveError, match="not a complete halfseen archive"):
        archive.from_bytes(files.zipped(entries))


def test_an_array_whose_header_promises_more_than_there_is_is_refused():
    entries = files.entries_of(SAVED["ambient"])
    entry = npy(np.zeros(27))
    entries["0.npy"] = entry.replace(b"(27,), }     ", b"(27000000000,), }")[: len(entry)]
    peak, message = peak_of_loading(files.zipped(entries))
    assert "another type or size than its header says" in message
    assert peak < 10_000_000


@pytest.mark.parametrize("shape", [(2000, 2000), (0, 5), ()])
def test_every_written_state_can_be_read(shape):
    """Zeros compress well: a large state of zeros is not mistaken for a forged one."""
    tree = {"zeros": np.zeros(shape), "list": [np.arange(4)]}
    back = archive.from_bytes(archive.to_bytes(tree))[0]
    assert back["zeros"].shape == shape
    assert back["zeros"].flags.writeable
    assert not back["zeros"].any()


# Saving


def test_saving_to_a_link_keeps_it_and_writes_what_it_points_to(tmp_path):
    real, link = tmp_path / "disk" / "policy-1", tmp_path / "current"
    real.parent.mkdir()
    link.symlink_to("disk/policy-1")
    policy = halfseen.AmbientOful(dim=2)
    for _ in range(2):  # a file that is not there yet, and one that is
        policy.choose([[1.0, 2.0]])
        policy.save(link)
        assert link.is_symlink()
        assert not real.is_symlink()
        assert halfseen.load(real).round == halfseen.load(link).round == policy.round
    assert [file.name for file in real.parent.iterdir()] == ["policy-1"]


def test_saving_keeps_who_may_read_the_file(tmp_path):
    path, policy = tmp_path / "policy", halfseen.AmbientOful(dim=2)
    policy.save(path)
    (tmp_path / "other").touch()
    assert path.stat().st_mode == (tmp_path / "other").stat().st_mode
    path.chmod(0o600)
    policy.save(path)
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a file not closed
def test_an_interrupt_leaves_the_old_file_or_the_new_one_and_no_litter(tmp_path):
    outcomes = list(files.interrupted_writes(tmp_path))
    assert len(outcomes) > 200
    assert [wrong for wrong in outcomes if wrong] == []
