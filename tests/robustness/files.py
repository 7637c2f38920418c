"""Forged archives: nothing but a named error, or a policy that plays finite scores.

`tests/robustness/test_fuzz.py` tries some, `run(n, seed)` as many as one likes.
"""

import copy
import io
import json
import math
import random
import warnings
import zipfile
from functools import cache

import numpy as np

from golden.make_golden import FACTORIES, rounds
from halfseen import HalfseenError, archive
from halfseen.errors import ArchiveError
from halfseen.policies.registry import policy_from_dict, policy_to_dict

NUMBERS = (
    *(0, 1, -1, 2, 3, 7, 10**6, 2**31, 2**63, -(2**63), 10**30),
    *(0.0, -0.0, 0.5, -1.5, 1e-320, 1e-300, 1e-160, 1e-99, 1e-30, 1e-9, 1e9, 1e30, -1e30),
    *(1e99, -1e99, 1e129, -1e129, 1e160, 1e209, 1.7e308),
    *(math.nan, math.inf, -math.inf),
)
OTHERS = (None, True, False, "", "x", "1", [], [1], {}, {"a": 1}, [[1.0]], {"$array": 0})


def entries_of(content):
    """Return the entries of an archive by name."""
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        return {name: file.read(name) for name in file.namelist()}


def zipped(entries, method=zipfile.ZIP_STORED):
    """Return an archive of entries."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as file:
        for name, entry in entries.items():
            file.writestr(zipfile.ZipInfo(name, archive._EPOCH), entry, method)
    return buffer.getvalue()


@cache
def saved():
    """Return one small archive per kind of policy."""
    found = {}
    for name, factory in FACTORIES.items():
        policy = factory()
        for index, (table, rewards) in enumerate(rounds(17, seed=0)):
            decision = policy.choose(table)
            if index not in (2, 14, 16):
                policy.learn(decision, float(rewards[decision.arm]))
        found[name] = archive.to_bytes(policy_to_dict(policy))
    return found


def plays(policy):
    """Return whether a policy plays on with finite scores; it may refuse what it is asked."""
    for table, rewards in rounds(6, seed=1):
        table = table[:, : policy.dim]
        if policy.dim > table.shape[1]:
            table = np.pad(table, ((0, 0), (0, policy.dim - table.shape[1])))
        decision = policy.choose(table)
        if not all(np.isfinite(part).all() for part in (decision.scores, decision.widths)):
            return False
        policy.learn(decision, float(rewards[decision.arm]))
    return True


def outcome(content):
    """Return what is wrong about how an archive is taken; nothing if it is refused, or plays on."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            policy = loaded(content)
        except ArchiveError:
            return ""
        except Exception as error:
            return f"at load {type(error).__name__}: {error}"
        try:
            return "" if plays(policy) else "a score is not finite"
        except HalfseenError as error:
            return f"met later: {type(error).__name__}: {error}"
        except Exception as error:
            return f"later {type(error).__name__}: {error}"


def loaded(content):
    """Return the policy in an archive, as `halfseen.load` does from a file."""
    tree = archive.from_bytes(content)
    try:
        return policy_from_dict(tree)
    except ArchiveError:
        raise
    except Exception as error:
        raise ArchiveError(str(error)) from None


# What may happen to an archive; `tests/test_archive.py` flips its bits and cuts it off


def changed_leaf(content, rng):
    """Change a number, a text or a part of the JSON text."""
    entries = entries_of(content)
    head = json.loads(entries["halfseen.json"])
    places = list(_places(head["state"]))
    parent, key = rng.choice(places)
    value = parent[key]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    other = rng.choice(NUMBERS if is_number and rng.random() < 0.8 else (*NUMBERS, *OTHERS))
    if is_number and rng.random() < 0.2:
        other = value * rng.choice((-1, 2, 0.5, 10, 1000))
    if rng.random() < 0.1:
        other = copy.deepcopy(rng.choice(places)[0])
    if rng.random() < 0.1:
        del parent[key]
    else:
        parent[key] = other
    entries["halfseen.json"] = json.dumps(head).encode()
    return zipped(entries)


def _places(node):
    keys = node if isinstance(node, dict) else range(len(node))
    for key in keys:
        yield node, key
        if isinstance(node[key], dict | list):
            yield from _places(node[key])


def changed_array(content, rng):
    """Change entries, shape or type of an array."""
    entries = entries_of(content)
    name = rng.choice([name for name in entries if name.endswith(".npy")] or ["0.npy"])
    if name not in entries:
        return changed_leaf(content, rng)
    array = np.lib.format.read_array(io.BytesIO(entries[name])).copy()
    kind = rng.random()
    if kind < 0.15:
        array = array.reshape(-1)[: rng.randrange(array.size + 1)]
    elif kind < 0.25:
        array = np.nan_to_num(array)
        array = array.astype(rng.choice([np.float32, np.int64, np.bool_, np.complex128, ">f8"]))
    elif array.size:
        flat = array.reshape(-1)
        for _ in range(rng.choice((1, 1, 3, flat.size))):
            value = rng.choice(NUMBERS)
            if array.dtype.kind in "iu":
                value, whole = int(value) if math.isfinite(value) else 0, np.iinfo(array.dtype)
                value = max(whole.min, min(whole.max, value))
            flat[rng.randrange(flat.size)] = value
        array = flat.reshape(array.shape)
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, allow_pickle=False)
    entries[name] = buffer.getvalue()
    return zipped(entries)


MUTATIONS = (changed_leaf, changed_array)


def run(n, seed):
    """Try `n` mutations; return how many were tried, and a line per failure."""
    archives, failures = saved(), []
    for index in range(n):
        rng = random.Random(f"{seed}-{index}")  # each can be repeated alone
        name, mutate = rng.choice(sorted(archives)), rng.choice(MUTATIONS)
        wrong = outcome(mutate(archives[name], rng))
        if wrong:
            failures.append(f"{name}, {mutate.__name__}, seed {seed}, number {index}: {wrong}")
    return n, failures
