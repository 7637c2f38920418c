"""Upgrades saved policies of earlier formats to the current one, one format at a time."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from halfseen import archive
from halfseen.core.plays import DEFAULT_MEMORY, arms_kept
from halfseen.errors import ArchiveError
from halfseen.log import logger

Tree = dict[str, Any]

# Options that TofuPov had up to format 4, with their defaults.
_TOFU_OPTIONS = {
    "subspace": "covariance",
    "features": "least-squares",
    "exploration": "ucb",
    "fallback": False,
}
_TOFU_SCALES = ("ridge", "theta_bound", "noise_scale")
# What a record of an epoch had up to format 4, and what LatentUcb still has of its settings.
_RECORD_FIELDS = {"fallback", *_TOFU_SCALES}
_LATENT_SETTINGS = ("dim", "seed", "max_open", "memory_bytes", "growth", "exploration")


# Earlier formats had neither contexts nor numbers of items.
_FIRST_WITH_CONTEXT = 7


def upgraded(tree: Tree, version: int, name: str) -> Tree:
    """Return the tree of a saved policy in the current format.

    `name` is for the error message.

    Raises
    ------
    ArchiveError
        The format is too old.
    """
    while version < archive.FORMAT:
        if version not in _STEPS:
            raise ArchiveError(
                f"{name} has format {version}, which is too old: read it with the version of "
                "halfseen that wrote it, or start again"
            )
        tree, version = _STEPS[version](tree), version + 1
    return tree


def upgraded_core(core: Tree, version: int, name: str) -> Tree:
    """Return the state of a saved agent in the current format."""
    if version < _FIRST_WITH_CONTEXT:
        decisions = core["decisions"]
        waiting = [[*each, note_from_format_6(note)] for *each, note in decisions["waiting"]]
        core = core | {
            "context_encoder": {"width": 0, "columns": []},
            "context_seen": {"sums": np.zeros((3, 0)), "counts": np.zeros(3), "n_events": 0},
            "decisions": decisions | {"waiting": waiting},
        }
    return core | {"policy": upgraded(core["policy"], version, name)}


def _from_format_2(tree: Tree, shown: Mapping[str, Any] | None = None) -> Tree:
    """Format 2 stored no arms of open decisions, and zeros for hidden entries of waiting arms.

    `LatentUcb` wrote None for settings that it estimates.

    `shown` are the notes of an outer policy, which stored the view that it gave to this one.
    """
    state, notes = dict(tree["state"]), tree["open"]
    for name in ("offered", "moments"):
        if state.get(name):
            state[name] = _with_hidden_entries(state[name])
    if "burn_in_policy" in state:
        state["burn_in_policy"] = _from_format_2(state["burn_in_policy"])
    if "inners" in state:
        given = {note[0]: note for _, note in notes}
        state["inners"] = [_from_format_2(inner, given) for inner in state["inners"]]
    opened = [[id, _note_from_format_2(id, note, (shown or {}).get(id))] for id, note in notes]
    settings = tree["settings"]
    if tree["policy"] == "LatentUcb":
        settings = {name: value for name, value in settings.items() if value is not None}
    return tree | {"settings": settings, "state": state, "open": opened}


def _note_from_format_2(id: str, note: Any, shown: Any) -> Tree:
    epoch, arm = (-1, np.empty(0)) if shown is None else (shown[2], shown[4])
    round = int(id.rsplit("-", 1)[1])
    inner = None if note is None else note[0]
    return {"round": round, "epoch": epoch, "arm": arm, "point": None, "inner": inner}


def _with_hidden_entries(moments: Tree) -> Tree:
    """Return the state of moments with NaN for hidden entries of waiting arms, as far as known."""
    mask = moments.get("waiting_mask")
    if mask is None:  # pairs are not counted, so zeros are equivalent
        return moments
    return moments | {"waiting": np.where(mask, moments["waiting"], np.nan)}


def _from_format_3(tree: Tree) -> Tree:
    """Format 3 stored the note of an inner policy in that policy, by an id."""
    state = dict(tree["state"])
    inners = [_from_format_3(inner) for inner in state.get("inners", [])]
    if "inners" in state:
        state["inners"] = [inner | {"open": []} for inner in inners]
    if "burn_in_policy" in state:
        inners.append(_from_format_3(state["burn_in_policy"]))
        state["burn_in_policy"] = inners[-1] | {"open": []}
    notes = {id: note for inner in inners for id, note in inner["open"]}
    opened = [[id, note | {"inner": notes.get(note["inner"])}] for id, note in tree["open"]]
    return tree | {"state": state, "open": opened, "n_forgotten": 0}


def _from_format_4(tree: Tree) -> Tree:
    """In format 4 LatentUcb was a TofuPov, whose options served it."""
    settings, state = _settings_from_format_4(tree["policy"], tree["settings"]), tree["state"]
    if tree["policy"] == "LatentUcb":
        if state:
            state = {name: state[name] for name in ("offered", "played")}
            state["n_offered"] = max(tree["round"], state["offered"]["n_arms"])
    elif "burn_in_policy" in state:  # TofuPov, or a policy derived from it
        state = _tofu_state_from_format_4(state)
    elif "inners" in state:
        state = state | {"inners": [_from_format_4(inner) for inner in state["inners"]]}
    opened = [[id, _note_from_format_4(tree, note)] for id, note in tree["open"]]
    return tree | {"settings": settings, "state": state, "open": opened}


def _settings_from_format_4(policy: str, settings: Tree) -> Tree:
    if policy == "LatentUcb":
        return _latent_settings_from_format_4(settings)
    if not {"rank", "impute_ridge", *_TOFU_SCALES} <= settings.keys():
        return settings  # neither TofuPov nor a policy derived from it
    used = [name for name, plain in _TOFU_OPTIONS.items() if settings.get(name, plain) != plain]
    used += [name for name in _TOFU_SCALES if settings[name] == "estimated"]
    if settings["rank"]["rule"] == "HeldOutRank":
        used.append("rank")
    if used:
        raise _gone(policy, used[0], settings[used[0]])
    kept = {name: value for name, value in settings.items() if name not in _TOFU_OPTIONS}
    for name in ("burn_in_policy", "first_phase"):
        inner = kept.get(name)
        if isinstance(inner, dict):
            plain = _settings_from_format_4(inner["policy"], inner["settings"])
            kept[name] = inner | {"settings": plain}
    if policy == "TwoPhase":
        kept["memory_bytes"] = 1  # as it was, whatever the default is now
    return kept


def _latent_settings_from_format_4(settings: Tree) -> Tree:
    if settings.get("subspace", "likelihood") != "likelihood":  # it may have kept no arms
        raise _gone("LatentUcb", "subspace", settings["subspace"])
    if settings.get("replay", "full") != "full":  # it kept no rewards
        raise _gone("LatentUcb", "replay", settings["replay"])
    kept = {name: settings[name] for name in _LATENT_SETTINGS if name in settings}
    rule = settings.get("rank") or {}
    if rule.get("rule") == "FixedRank":
        kept["rank"] = rule["rank"]
    return kept


def _gone(policy: str, name: str, value: Any) -> ArchiveError:
    return ArchiveError(
        f"a saved {policy} has {name}={value!r}, which no longer exists: read it with the version "
        "of halfseen that wrote it"
    )


def _tofu_state_from_format_4(state: Tree) -> Tree:
    epoch = state["epoch"]
    if epoch is not None:
        epoch = {
            "basis": epoch["subspace"]["basis"],
            "record": _record_from_format_4(epoch["record"]),
            "model": epoch["model"],
        }
    return state | {
        "log": [_record_from_format_4(record) for record in state["log"]],
        "epoch": epoch,
        "burn_in_policy": _from_format_4(state["burn_in_policy"]),
    }


def _record_from_format_4(record: Tree) -> Tree:
    return {name: value for name, value in record.items() if name not in _RECORD_FIELDS}


def _note_from_format_4(tree: Tree, note: Tree | None) -> Tree | None:
    if note is None:
        return None
    if tree["policy"] == "LatentUcb":
        return note | {"epoch": -1, "point": None, "inner": None}
    if "burn_in_policy" not in tree["state"]:
        return note
    return note | {"inner": _note_from_format_4(tree["state"]["burn_in_policy"], note["inner"])}


def _from_format_5(tree: Tree) -> Tree:
    """In format 5 LatentUcb kept every played arm, and a larger sample of the offered ones.

    Its models are fitted anew to the arms and rewards that the file holds.
    """
    state = dict(tree["state"])
    if "burn_in_policy" in state:
        state["burn_in_policy"] = _from_format_5(state["burn_in_policy"])
    if "inners" in state:
        state["inners"] = [_from_format_5(inner) for inner in state["inners"]]
    opened = [[id, _note_from_format_5(tree, note)] for id, note in tree["open"]]
    if tree["policy"] != "LatentUcb":
        return tree | {"state": state, "open": opened}
    logger.warning(
        "a saved LatentUcb of an earlier version is fitted anew by this one: its decisions may "
        "differ from those of the version that wrote it"
    )
    if state:
        state = {
            "offered": _sampled(state["offered"], tree["settings"]),
            "plays": {
                "played": state["played"],
                "counts": np.ones(len(state["played"]["rewards"])),
                "within": 0.0,
                "summaries": [],
            },
            "log": [],
            "epoch": None,
            "next_event": 0,
            "n_offered": state["n_offered"],
            "rewards_tell": False,
            "levels": [],
        }
    return tree | {"state": state, "open": opened}


def _note_from_format_5(tree: Tree, note: Tree | None) -> Tree | None:
    """Return the note of an open decision; epochs of LatentUcb are counted anew."""
    if note is None or tree["policy"] == "LatentUcb":
        return note and note | {"epoch": -1, "point": None}
    inner = tree["state"].get("burn_in_policy")
    return note if inner is None else note | {"inner": _note_from_format_5(inner, note["inner"])}


def _sampled(offered: Tree, settings: Tree) -> Tree:
    """Return as many of the offered arms as a policy keeps now."""
    rows, numbers = offered["rows"], offered["numbers"]
    most = arms_kept(rows.shape[1], settings.get("memory_bytes", DEFAULT_MEMORY))
    if len(rows) <= most:
        return offered
    kept = np.sort(np.random.default_rng(0).choice(len(rows), most, replace=False))
    numbers = np.arange(len(rows)) if numbers is None else numbers
    return offered | {"rows": rows[kept], "numbers": numbers[kept]}


def _from_format_6(tree: Tree) -> Tree:
    """In format 6 there were neither contexts nor items with numbers."""
    state = dict(tree["state"])
    if "burn_in_policy" in state:
        state["burn_in_policy"] = _from_format_6(state["burn_in_policy"])
    if "inners" in state:
        state["inners"] = [_from_format_6(inner) for inner in state["inners"]]
    opened = [[id, note_from_format_6(note)] for id, note in tree["open"]]
    if tree["policy"] == "LatentUcb":
        state = _latent_state_from_format_6(state) if state else {"context_levels": []}
    return tree | {"state": state, "open": opened}


def _latent_state_from_format_6(state: Tree) -> Tree:
    plays, epoch = state["plays"], state["epoch"]
    if epoch is not None:
        record = epoch["record"] | {"context_rank": None}
        side = {name: record[name] for name in ("n_arms", "n_ranked", "ranked_round", "frequency")}
        epoch = {
            "record": record,
            "arms": side | {"latent": epoch["latent"], "shares": epoch["shares"]},
            "context": None,
            "groups": [epoch["groups"], []],
            "sides": None,
            "rewards": epoch["rewards"] and epoch["rewards"] | {"item_groups": ["item"]},
        }
    return state | {
        "plays": plays | {"summaries": [each | {"items": None} for each in plays["summaries"]]},
        "log": [each | {"context_rank": None} for each in state["log"]],
        "epoch": epoch,
        "contexts": None,
        "has_items": False,
        "context_levels": [],
        "context_since": 0,
    }


def note_from_format_6(note: Tree | None) -> Tree | None:
    """Return the note of an open decision with neither context nor item."""
    if note is None:
        return None
    return note | {"inner": note_from_format_6(note["inner"]), "context": None, "item": None}


def _from_format_7(tree: Tree) -> Tree:
    """In format 7 LatentUcb did not count the rounds of a log apart."""
    state = dict(tree["state"])
    if "burn_in_policy" in state:
        state["burn_in_policy"] = _from_format_7(state["burn_in_policy"])
    if "inners" in state:
        state["inners"] = [_from_format_7(inner) for inner in state["inners"]]
    if tree["policy"] == "LatentUcb" and "n_offered" in state:
        state["n_logged"] = 0
    return tree | {"state": state}


_STEPS: Mapping[int, Callable[[Tree], Tree]] = {
    2: _from_format_2,
    3: _from_format_3,
    4: _from_format_4,
    5: _from_format_5,
    6: _from_format_6,
    7: _from_format_7,
}
