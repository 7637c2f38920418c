"""Saved policies: what is damaged, foreign or newer is refused clearly, and nothing is pickled."""

import io
import itertools
import json
import pickle
import random
import tracemalloc
import zipfile
from contextlib import suppress
from functools import cache

import numpy as np
import pytest

import halfseen
from halfseen import ArchiveError, LatentUcb, TofuPov, archive, load
from halfseen.policies.registry import policy_from_dict, policy_to_dict
from policy_runs import few_arms, walk
from robustness.faults import Interrupter
from robustness.files import entries_of, zipped


def file_bytes(policy):
    return archive.to_bytes(policy_to_dict(policy))


def from_bytes(content):
    return policy_from_dict(archive.from_bytes(content))


@cache
def saved_bytes():
    """Return a small policy inside an epoch as bytes."""
    policy = TofuPov(dim=3, rank=1, observe_prob=0.7, burn_in=2, replay="full")
    walk(policy, few_arms(6, dim=3))
    return file_bytes(policy)


@cache
def latent_bytes():
    """Return a policy inside an epoch of rank 2 as bytes."""
    policy = LatentUcb(dim=4)
    walk(policy, few_arms(14, dim=4))
    assert policy.current_rank == 2
    return file_bytes(policy)


def load_bytes(tmp_path, content):
    path = tmp_path / "policy"
    path.write_bytes(content)
    return load(path)


# Round trip


def test_the_same_state_gives_the_same_file(tmp_path):
    policy = from_bytes(saved_bytes())
    policy.save(tmp_path / "one")
    policy.save(str(tmp_path / "two"))
    assert (tmp_path / "one").read_bytes() == saved_bytes()
    assert (tmp_path / "two").read_bytes() == saved_bytes()
    assert file_bytes(policy) == saved_bytes()


def test_numpy_reads_the_arrays_of_a_file(tmp_path):
    from_bytes(saved_bytes()).save(tmp_path / "policy.npz")
    with np.load(tmp_path / "policy.npz") as arrays:
        assert arrays["0"].dtype == np.float64


def test_a_tree_of_plain_values_and_arrays_survives():
    tree = {
        "none": None,
        "truth": True,
        "number": 3,
        "fraction": 0.1 + 0.2,
        "text": "ε",
        "list": [1, [2, {"deep": np.arange(3)}]],
        "empty": np.empty((4, 0)),
        "not numbers": np.array([np.nan, -np.inf, -0.0]),
        "truths": np.array([[True, False]]),
        "whole": np.array(2**62),
    }
    back = archive.from_bytes(archive.to_bytes(tree))
    assert list(back) == list(tree)
    assert back["list"][1][1]["deep"].tolist() == [0, 1, 2]
    for name, value in tree.items():
        if isinstance(value, np.ndarray):
            assert (back[name].dtype, back[name].shape) == (value.dtype, value.shape)
            assert back[name].tobytes() == value.tobytes()
        elif name != "list":
            assert back[name] == value
            assert type(back[name]) is type(value)


# Damage


@pytest.mark.parametrize("original", [saved_bytes, latent_bytes])
def test_a_flipped_bit_is_refused_or_does_not_matter(original):
    """2,000 of each: a file that is not refused holds the same state."""
    content, rng, n_refused = original(), random.Random(1), 0
    for _ in range(2000):
        damaged = bytearray(content)
        damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        try:
            assert file_bytes(from_bytes(bytes(damaged))) == content
        except ArchiveError:
            n_refused += 1
    assert n_refused > 1200


def test_a_truncated_file_is_refused_at_any_length():
    content = saved_bytes()
    for length in range(len(content)):
        with pytest.raises(ArchiveError):
            archive.from_bytes(content[:length])


@pytest.mark.parametrize(
    "content",
    [b"", b"not a policy", b"PK", b"PK\x03\x04" + bytes(100), bytes(5000), pickle.dumps({})],
    ids=["empty", "text", "half a marker", "a marker", "zeros", "a pickle"],
)
def test_something_else_is_refused(tmp_path, content):
    says = r"policy is not a complete halfseen archive.*restore it from a copy or save again"
    with pytest.raises(ArchiveError, match=says):
        load_bytes(tmp_path, content)


# Archives that are whole but wrong


def with_text(change, content=None):
    """Return an archive with another JSON text, which a function changes."""
    entries = entries_of(content or saved_bytes())
    head = json.loads(entries["halfseen.json"])
    change(head)
    return zipped(entries | {"halfseen.json": json.dumps(head).encode()})


def with_value(content, value, *path):
    """Return an archive with another value in its state, or without it."""
    node = tree = archive.from_bytes(content)
    for name in path[:-1]:
        node = node[name]
    if value is ...:
        del node[path[-1]]
    else:
        node[path[-1]] = value
    return archive.to_bytes(tree)


def test_changing_nothing_does_no_harm(tmp_path):
    """The control: what the tests below refuse is refused because of their one change."""
    policy = archive.from_bytes(saved_bytes())["policy"]
    for same in (with_text(lambda head: None), with_value(saved_bytes(), policy, "policy")):
        assert file_bytes(load_bytes(tmp_path, same)) == saved_bytes()


def test_a_newer_format_is_refused_with_the_advice_to_upgrade(tmp_path):
    newer = with_text(lambda head: head.update(format=archive.FORMAT + 1))
    with pytest.raises(ArchiveError, match=rf"newer than {archive.FORMAT}: upgrade halfseen"):
        load_bytes(tmp_path, newer)


@pytest.mark.parametrize("version", [None, "1", 1.5, [1], {}], ids=repr)
def test_a_format_that_is_no_number_is_refused(tmp_path, version):
    with pytest.raises(ArchiveError):
        load_bytes(tmp_path, with_text(lambda head: head.update(format=version)))


def test_each_missing_entry_is_noticed(tmp_path):
    entries = entries_of(saved_bytes())
    assert len(entries) > 7
    for name in entries:
        with pytest.raises(ArchiveError, match=r"halfseen\.json" if "json" in name else None):
            load_bytes(tmp_path, zipped({each: entries[each] for each in entries if each != name}))


def test_each_missing_part_of_the_state_is_noticed(tmp_path):
    tree = archive.from_bytes(saved_bytes())
    for path in [(name,) for name in tree] + [("state", name) for name in tree["state"]]:
        with pytest.raises(ArchiveError):
            load_bytes(tmp_path, with_value(saved_bytes(), ..., *path))


@pytest.mark.parametrize("value", [None, 7, "x", [], {}, [1, 2]], ids=repr)
def test_a_state_of_another_kind_is_refused(tmp_path, value):
    for name in ("state", "settings"):
        with pytest.raises(ArchiveError):
            load_bytes(tmp_path, with_value(saved_bytes(), value, name))
    with pytest.raises(ArchiveError):
        load_bytes(tmp_path, with_text(lambda head: head.update(state=value)))


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        (("policy",), "Clairvoyant", "no policy is called 'Clairvoyant'.*TofuPov"),
        (("settings", "ridge"), -1.0, "ridge must be in .*, got -1"),
        (("state", "epoch", "record", "rank"), 2, "basis"),
        *[
            (("state", "played", "columns", "rewards", 0), bad, "rewards' must be finite")
            for bad in (np.nan, np.inf, -np.inf, 1e101)
        ],
    ],
)
def test_a_value_that_cannot_be_is_refused(tmp_path, path, value, says):
    with pytest.raises(ArchiveError, match=says):
        load_bytes(tmp_path, with_value(saved_bytes(), value, *path))


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_a_number_that_is_none_is_refused(tmp_path, word):
    entries = entries_of(saved_bytes())
    text = entries["halfseen.json"].decode()
    entries["halfseen.json"] = text.replace('"n_arms": ', f'"n_arms": {word}, "other": ').encode()
    with pytest.raises(ArchiveError, match=f"{word} is not a number"):
        load_bytes(tmp_path, zipped(entries))


def arrays(node, *path):
    """Yield where in a state an array stands."""
    if isinstance(node, np.ndarray):
        yield path
    elif isinstance(node, dict | list):
        for name, child in node.items() if isinstance(node, dict) else enumerate(node):
            yield from arrays(child, *path, name)


ARRAYS = [
    pytest.param(original, path, id="/".join([original.__name__, *map(str, path)]))
    for original in (saved_bytes, latent_bytes)
    for path in arrays(archive.from_bytes(original()))
]


@pytest.mark.parametrize(("original", "path"), ARRAYS)
def test_an_array_of_another_shape_or_type_is_refused(tmp_path, original, path):
    """Compiled loops do not check bounds: what does not fit must not come in."""
    array = archive.from_bytes(original())
    for name in path:
        array = array[name]
    longer, wider = list(array.shape), list(array.shape)
    # Any rounds so far may be pending, a bit each; 800 later ones may not.
    more = 100 if path == ("state", "pending", "bits") else 1
    longer[0] += more
    wider[-1] += more
    wrong = [np.ones(wider, array.dtype), np.full(array.shape, "string")]
    if path != ("state", "offered", "waiting"):  # any number of arms may wait
        wrong.append(np.ones(longer, array.dtype))
    for each in wrong:
        with pytest.raises(ArchiveError):
            load_bytes(tmp_path, with_value(original(), each, *path))


def npy(array, **options):
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asarray(array), **options)
    return buffer.getvalue()


# Hostile files


class Bomb:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (self.path, "w"))


def test_a_pickled_array_is_refused_and_never_run(tmp_path):
    trace = tmp_path / "trace"
    bomb = npy(np.array([Bomb(str(trace))], dtype=object), allow_pickle=True)
    assert b"trace" in bomb
    for entries in (entries_of(saved_bytes()), entries_of(latent_bytes())):
        for name in entries.keys() - {"halfseen.json"}:
            with pytest.raises(ArchiveError):
                from_bytes(zipped(entries | {name: bomb}))
    assert not trace.exists()


def test_a_state_with_objects_is_not_written():
    with pytest.raises(ValueError, match=r"[Oo]bject"):
        archive.to_bytes({"objects": np.array([{}], dtype=object)})
    with pytest.raises(TypeError):
        archive.to_bytes({"object": object()})


def test_a_file_that_expands_is_refused_before_it_is_unpacked():
    entries = entries_of(saved_bytes()) | {"0.npy": npy(np.zeros(7_500_000))}
    peak, message = peak_of_loading(zipped(entries, zipfile.ZIP_DEFLATED))
    assert "an entry is compressed" in message
    assert peak < 10_000_000


def test_an_entry_is_used_once_and_all_are_used():
    for more in ({"$array": 0}, {"$array": 10**6}):
        with pytest.raises(ArchiveError, match="not a complete halfseen archive"):
            from_bytes(with_text(lambda head, more=more: head["state"].update(more=more)))
    with pytest.raises(ArchiveError, match=r"no part of the state is called more\.npy"):
        from_bytes(zipped(entries_of(saved_bytes()) | {"more.npy": npy(np.zeros(3))}))


def test_an_array_whose_header_promises_more_than_there_is_is_refused():
    entry = npy(np.zeros(27))
    forged = entry.replace(b"(27,), }     ", b"(27000000000,), }")[: len(entry)]
    peak, message = peak_of_loading(zipped(entries_of(saved_bytes()) | {"0.npy": forged}))
    assert "another type or size than its header says" in message
    assert peak < 10_000_000


def peak_of_loading(content):
    tracemalloc.start()
    try:
        with pytest.raises(ArchiveError) as refused:
            archive.from_bytes(content)
        return tracemalloc.get_traced_memory()[1], str(refused.value)
    finally:
        tracemalloc.stop()


# Saving


def test_a_file_that_is_not_there_is_no_archive_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing")


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
def test_an_interrupt_leaves_the_old_file_or_the_new_one_and_no_litter(tmp_path, monkeypatch):
    path, new = tmp_path / "policy", archive.to_bytes({"number": 1})
    monkeypatch.setattr(archive, "to_bytes", lambda tree: new)  # packing touches no file
    for at in itertools.count(1):
        path.write_bytes(b"old")
        with suppress(KeyboardInterrupt), Interrupter("line", at) as interrupter:
            archive.write(path, {"number": 1})
        assert list(tmp_path.iterdir()) == [path]
        assert path.read_bytes() in (b"old", new)
        if interrupter.n_events < at:
            break
    assert at > 10
