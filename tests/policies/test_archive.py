"""Saved policies: what is damaged, foreign or newer is refused clearly, and nothing is pickled."""

import io
import json
import pickle
import zipfile
from functools import cache

import numpy as np
import pytest
from policy_runs import few_arms, looks, walk

from halfseen import AmbientOful, ArchiveError, LatentUcb, TofuPov, Uniform, archive, load
from halfseen.policies.registry import policy_from_tree
from robustness.files import entries_of, zipped


def file_bytes(policy):
    return archive.to_bytes(policy.to_tree())


@cache
def saved_bytes():
    """Return a small policy inside an epoch, with an open decision, as bytes."""
    policy = TofuPov(dim=3, rank=1, observe_prob=0.7, burn_in=2, replay="full")
    rounds = few_arms(6, dim=3)
    walk(policy, rounds[:5])
    policy.choose(rounds[5].table)
    return file_bytes(policy)


def load_bytes(tmp_path, content):
    path = tmp_path / "policy"
    path.write_bytes(content)
    return load(path)


@cache
def smaller_bytes():
    """Return an even smaller policy, of which every byte can be damaged in every way."""
    policy = AmbientOful(dim=2)
    walk(policy, few_arms(3, dim=2))
    return file_bytes(policy)


def is_refused(content, original):
    """Return whether damaged bytes are refused; if they are not, the policy must be the same."""
    try:
        policy = policy_from_tree(archive.from_bytes(content)[0])
    except ArchiveError:
        return True
    assert file_bytes(policy) == original
    return False


def content_positions(content):
    """Return the positions of all bytes that belong to the content of an entry."""
    positions = set()
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        for entry in file.infolist():
            start = entry.header_offset + 30 + len(entry.filename)
            positions |= set(range(start, start + entry.compress_size))
    return positions


# Round trip


@pytest.mark.parametrize(
    "policy",
    [
        TofuPov(dim=6, rank=2, observe_prob=0.7, burn_in=5),
        TofuPov(dim=6, rank=2, observe_prob=None, burn_in=5, replay="none"),
        AmbientOful(dim=6),
        Uniform(dim=6),
        LatentUcb(),
        LatentUcb(dim=6, memory_bytes=480, exploration="thompson", seed=3),
    ],
    ids=lambda policy: type(policy).__name__,
)
def test_a_saved_policy_continues_from_its_file(tmp_path, policy):
    rounds = few_arms(20)
    walk(policy, rounds[:7])
    waiting = policy.choose(rounds[7].table)
    policy.save(tmp_path / "policy")
    restored = load(tmp_path / "policy")
    assert type(restored) is type(policy)
    for one in (policy, restored):
        one.learn(waiting, 0.3)
    ours, theirs = walk(policy, rounds[8:]), walk(restored, rounds[8:])
    assert [looks(decision) for decision in theirs] == [looks(decision) for decision in ours]


def test_the_same_state_gives_the_same_file(tmp_path):
    policy = policy_from_tree(archive.from_bytes(saved_bytes())[0])
    policy.save(tmp_path / "one")
    policy.save(str(tmp_path / "two"))
    assert (tmp_path / "one").read_bytes() == saved_bytes()
    assert (tmp_path / "two").read_bytes() == saved_bytes()


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
    back = archive.from_bytes(archive.to_bytes(tree))[0]
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


@pytest.mark.parametrize("original", [saved_bytes, smaller_bytes])
def test_a_damaged_byte_of_the_content_is_refused(original):
    """In the last two bytes of an entry are its end mark and padding, which change no content."""
    content = original()
    positions = sorted(content_positions(content))
    harmless = []
    for position in positions:
        damaged = bytearray(content)
        damaged[position] ^= 0xFF
        if not is_refused(bytes(damaged), content):
            harmless.append(position)
    assert len(positions) > 300
    assert not {position + 2 for position in harmless} & set(positions)


@pytest.mark.parametrize("bit", range(8))
def test_a_damaged_bit_of_the_files_structure_is_refused_or_does_not_matter(bit):
    content = smaller_bytes()
    structure = sorted(set(range(len(content))) - content_positions(content))
    assert len(structure) > 200
    refused = 0
    for position in structure:
        damaged = bytearray(content)
        damaged[position] ^= 1 << bit
        refused += is_refused(bytes(damaged), content)
    assert refused > 0


@pytest.mark.parametrize("value", [0x00, 0x0C, 0x0E, 0x7F, 0xFF])
def test_another_byte_in_the_files_structure_is_refused_or_does_not_matter(value):
    content = smaller_bytes()
    for position in sorted(set(range(len(content))) - content_positions(content)):
        damaged = bytearray(content)
        damaged[position] = value
        is_refused(bytes(damaged), content)


def test_a_truncated_file_is_refused_at_any_length():
    content = saved_bytes()
    for length in range(len(content)):
        with pytest.raises(ArchiveError):
            archive.from_bytes(content[:length])[0]


@pytest.mark.parametrize(
    "content",
    [b"", b"\0", b"not a policy", b"PK", b"PK\x03\x04" + bytes(100), bytes(5000)],
    ids=["empty", "one byte", "text", "half a marker", "a marker", "zeros"],
)
def test_something_else_is_refused(tmp_path, content):
    with pytest.raises(ArchiveError, match="not a complete halfseen archive"):
        load_bytes(tmp_path, content)


def test_a_pickle_is_refused(tmp_path):
    with pytest.raises(ArchiveError, match="not a complete halfseen archive"):
        load_bytes(tmp_path, pickle.dumps({"policy": "TofuPov"}))


def test_the_message_names_the_file_and_the_remedy(tmp_path):
    with pytest.raises(ArchiveError, match=r"policy is not .*restore it from a copy or save again"):
        load_bytes(tmp_path, saved_bytes()[:-5])


# Archives that are whole but wrong


def rewritten(change_text=None, drop=(), add=(), content=None):
    """Return the saved policy with another text, without some entries, or with others.

    Its digest is right.
    """
    entries = entries_of(saved_bytes() if content is None else content) | dict(add)
    if change_text is not None:
        head = json.loads(entries["halfseen.json"])
        entries["halfseen.json"] = json.dumps(change_text(head) or head).encode()
    return zipped({name: entry for name, entry in entries.items() if name not in drop})


def test_rewriting_alone_does_no_harm(tmp_path):
    """The control: what the tests below refuse is refused because of their one change."""
    assert file_bytes(load_bytes(tmp_path, rewritten())) == saved_bytes()


def test_a_newer_format_is_refused_with_the_advice_to_upgrade(tmp_path):
    newer = rewritten(lambda head: head.update(format=archive.FORMAT + 1))
    with pytest.raises(ArchiveError, match=rf"newer than {archive.FORMAT}: upgrade halfseen"):
        load_bytes(tmp_path, newer)


@pytest.mark.parametrize("version", [1, 0, -1])
def test_an_older_format_is_refused_with_the_advice_to_start_again(tmp_path, version):
    older = rewritten(lambda head: head.update(format=version))
    advice = rf"format {version}, which is too old: read it with the version .* or start again"
    with pytest.raises(ArchiveError, match=advice):
        load_bytes(tmp_path, older)


@pytest.mark.parametrize("version", [None, "1", 1.5, [1], {}], ids=repr)
def test_a_format_that_is_no_number_is_refused(tmp_path, version):
    with pytest.raises(ArchiveError):
        load_bytes(tmp_path, rewritten(lambda head: head.update(format=version)))


def test_an_unknown_policy_is_named(tmp_path):
    other = rewritten(lambda head: head["state"].update(policy="Clairvoyant"))
    with pytest.raises(ArchiveError, match=r"no policy is called 'Clairvoyant'.*TofuPov"):
        load_bytes(tmp_path, other)


def test_each_missing_array_is_noticed(tmp_path):
    names = zipfile.ZipFile(io.BytesIO(saved_bytes())).namelist()
    arrays = [name for name in names if name.endswith(".npy")]
    assert len(arrays) > 8
    for name in arrays:
        with pytest.raises(ArchiveError):
            load_bytes(tmp_path, rewritten(drop=[name]))


def test_a_missing_text_is_noticed(tmp_path):
    with pytest.raises(ArchiveError, match=r"halfseen\.json"):
        load_bytes(tmp_path, rewritten(drop=["halfseen.json"]))


def saved_text(content=None):
    source = zipfile.ZipFile(io.BytesIO(saved_bytes() if content is None else content))
    return json.loads(source.read("halfseen.json"))


def test_each_missing_part_of_the_state_is_noticed(tmp_path):
    state = saved_text()["state"]
    for name in state:
        without = rewritten(lambda head, name=name: head["state"].__delitem__(name))
        with pytest.raises(ArchiveError):
            load_bytes(tmp_path, without)
    for name in state["state"]:
        without = rewritten(lambda head, name=name: head["state"]["state"].__delitem__(name))
        with pytest.raises(ArchiveError):
            load_bytes(tmp_path, without)


@pytest.mark.parametrize("value", [None, 7, "x", [], {}, [1, 2]], ids=repr)
def test_a_state_of_another_kind_is_refused(tmp_path, value):
    with pytest.raises(ArchiveError):
        load_bytes(tmp_path, rewritten(lambda head: head.update(state=value)))
    with pytest.raises(ArchiveError):
        load_bytes(tmp_path, rewritten(lambda head: head["state"].update(state=value)))
    with pytest.raises(ArchiveError):
        load_bytes(tmp_path, rewritten(lambda head: head["state"].update(settings=value)))


def test_settings_out_of_range_are_refused(tmp_path):
    other = rewritten(lambda head: head["state"]["settings"].update(ridge=-1.0))
    with pytest.raises(ArchiveError, match=r"ridge must be in .*, got -1"):
        load_bytes(tmp_path, other)


def npy(array, **options):
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asarray(array), **options)
    return buffer.getvalue()


def arrays(node, path=""):
    """Yield where in the state an array stands, and its entry."""
    if isinstance(node, dict) and "$array" in node:
        yield path, f"{node['$array']}.npy"
    elif isinstance(node, dict):
        for name, child in node.items():
            yield from arrays(child, f"{path}/{name}")
    elif isinstance(node, list):
        for index, child in enumerate(node):
            yield from arrays(child, f"{path}/{index}")


ARRAYS = dict(arrays(saved_text()["state"]["state"]))


def saved_array(entry, content=None):
    source = zipfile.ZipFile(io.BytesIO(saved_bytes() if content is None else content))
    return np.lib.format.read_array(io.BytesIO(source.read(entry)))


@pytest.mark.parametrize("where", ARRAYS)
@pytest.mark.parametrize("axis", [0, -1], ids=["longer", "wider"])
def test_an_array_of_another_shape_is_refused(tmp_path, where, axis):
    """Compiled loops do not check bounds: what does not fit must not come in."""
    if where == "/offered/waiting":
        axis = -1  # any number of arms may wait
    array = saved_array(ARRAYS[where])
    shape = list(array.shape)
    shape[axis] += 1
    wrong = np.ones(shape, dtype=array.dtype)
    with pytest.raises(ArchiveError):
        load_bytes(tmp_path, rewritten(add={ARRAYS[where]: npy(wrong)}))


@pytest.mark.parametrize("where", ARRAYS)
def test_an_array_of_texts_is_refused(tmp_path, where):
    wrong = np.full(saved_array(ARRAYS[where]).shape, "text")
    with pytest.raises(ArchiveError):
        load_bytes(tmp_path, rewritten(add={ARRAYS[where]: npy(wrong)}))


def test_an_epoch_of_another_rank_than_its_record_is_refused(tmp_path):
    """Compiled loops do not check bounds: coordinates must fit the regression."""

    def change(head):
        head["state"]["state"]["epoch"]["record"]["rank"] = 2

    with pytest.raises(ArchiveError, match="rank 2"):
        load_bytes(tmp_path, rewritten(change))
    wider = {ARRAYS["/epoch/basis"]: npy(np.eye(3)[:, :2])}
    with pytest.raises(ArchiveError, match="rank 1"):
        load_bytes(tmp_path, rewritten(add=wider))


@pytest.mark.parametrize(
    ("where", "value"), [("basis", None), ("record", {}), ("model", None)], ids=str
)
def test_an_epoch_that_makes_no_sense_is_refused(tmp_path, where, value):
    def change(head):
        head["state"]["state"]["epoch"][where] = value

    with pytest.raises(ArchiveError):
        load_bytes(tmp_path, rewritten(change))


# What only a policy with a sample of arms has


@cache
def latent_bytes():
    """Return a policy inside an epoch of rank 2, as bytes."""
    policy = LatentUcb(dim=4)
    walk(policy, few_arms(14, dim=4))
    assert policy.current_rank == 2
    return file_bytes(policy)


LATENT_ARRAYS = dict(arrays(saved_text(latent_bytes())["state"]["state"]))


def test_a_latent_policy_has_arms_and_loadings_in_its_file():
    assert {"/offered/rows", "/epoch/arms/latent/loadings"} <= set(LATENT_ARRAYS)


@pytest.mark.parametrize("where", LATENT_ARRAYS)
@pytest.mark.parametrize("axis", [0, -1], ids=["longer", "wider"])
def test_an_array_of_another_shape_in_a_latent_policy_is_refused(tmp_path, where, axis):
    array = saved_array(LATENT_ARRAYS[where], latent_bytes())
    shape = list(array.shape)
    shape[axis] += 1
    wrong = npy(np.ones(shape, dtype=array.dtype))
    content = rewritten(add={LATENT_ARRAYS[where]: wrong}, content=latent_bytes())
    with pytest.raises(ArchiveError):
        load_bytes(tmp_path, content)


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
    for entry in ARRAYS.values():
        with pytest.raises(ArchiveError):
            load_bytes(tmp_path, rewritten(add={entry: bomb}))
    assert not trace.exists()


def test_a_state_with_objects_is_not_written():
    with pytest.raises(ValueError, match=r"[Oo]bject"):
        archive.to_bytes({"objects": np.array([{}], dtype=object)})
    with pytest.raises(TypeError):
        archive.to_bytes({"object": object()})


# Saving


@pytest.mark.parametrize("part", ["fsync", "replace"])
def test_a_save_that_fails_leaves_the_old_file_and_no_other(tmp_path, monkeypatch, part):
    path = tmp_path / "policy"
    policy = policy_from_tree(archive.from_bytes(saved_bytes())[0])
    policy.save(path)
    walk(policy, few_arms(3, dim=3))

    def fail(*args):
        raise OSError("disk is gone")

    with monkeypatch.context() as patch:
        patch.setattr(archive.os, part, fail)
        with pytest.raises(OSError, match="disk is gone"):
            policy.save(path)
    assert path.read_bytes() == saved_bytes()
    assert [file.name for file in tmp_path.iterdir()] == ["policy"]


def test_a_state_that_cannot_be_written_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "policy"
    policy = policy_from_tree(archive.from_bytes(saved_bytes())[0])
    policy.save(path)
    monkeypatch.setattr(policy, "state", lambda: {"not a number": float("nan")})
    with pytest.raises(ValueError, match="JSON"):
        policy.save(path)
    assert path.read_bytes() == saved_bytes()
    assert [file.name for file in tmp_path.iterdir()] == ["policy"]


def test_saving_replaces_the_old_file(tmp_path):
    path = tmp_path / "policy"
    path.write_bytes(b"old")
    policy = policy_from_tree(archive.from_bytes(saved_bytes())[0])
    policy.save(path)
    assert path.read_bytes() == saved_bytes()


def test_saving_does_not_change_the_policy(tmp_path):
    policy = policy_from_tree(archive.from_bytes(saved_bytes())[0])
    policy.save(tmp_path / "policy")
    assert file_bytes(policy) == saved_bytes()


def test_a_file_that_is_not_there_is_no_archive_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing")
