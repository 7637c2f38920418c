"""Upgrades saved policies of earlier formats to the current one, one format at a time."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from halfseen import archive
from halfseen.errors import ArchiveError

Tree = dict[str, Any]


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


_STEPS: Mapping[int, Callable[[Tree], Tree]] = {2: _from_format_2, 3: _from_format_3}
