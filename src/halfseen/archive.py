"""Saved state: an `.npz` file of plain arrays with one JSON entry, never pickle.

A state is a tree of dicts and lists with numbers, strings, None and arrays as leaves. Each array is
an entry; the JSON entry refers to it by position. The same state gives the same bytes. Entries are
stored as they are, so that a file cannot expand, and zip has a check sum for each.
"""

import io
import json
import math
import os
import secrets
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from halfseen.errors import ArchiveError

FORMAT = 1
_TEXT = "halfseen.json"
_ARRAY = "$array"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # no clock in the bytes

_Arrays = list[np.ndarray[Any, Any]]


def write(path: str | os.PathLike[str], tree: dict[str, Any]) -> None:
    """Write a state atomically: after a failure the old file is unchanged.

    A symbolic link is followed: its target is written and the link stays.
    """
    target = Path(os.path.realpath(path))
    content = to_bytes(tree)
    mode = target.stat().st_mode & 0o777 if target.exists() else None
    draft = target.with_name(f".saving-{secrets.token_hex(8)}")
    try:
        # The draft of an existing file is private; a new file gets the usual permissions.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        with open(os.open(draft, flags, 0o666 if mode is None else 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            os.chmod(draft, mode)
        os.replace(draft, target)
    except BaseException:
        with suppress(FileNotFoundError):  # it may already be renamed
            os.unlink(draft)
        raise


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the state in a file.

    Raises
    ------
    ArchiveError
        The file is damaged, truncated, not an archive, or from a newer version.
    """
    return from_bytes(Path(path).read_bytes(), str(path))


def to_bytes(tree: dict[str, Any]) -> bytes:
    """Return a state as the bytes of an archive."""
    arrays: _Arrays = []
    text = json.dumps({"format": FORMAT, "state": _pack(tree, arrays)}, allow_nan=False)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(zipfile.ZipInfo(_TEXT, _EPOCH), text)
        for index, array in enumerate(arrays):
            entry = io.BytesIO()
            np.lib.format.write_array(entry, array, (1, 0), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{index}.npy", _EPOCH), entry.getbuffer())
    return buffer.getvalue()


def from_bytes(content: bytes, name: str = "the archive") -> dict[str, Any]:
    """Return the state in the bytes of an archive; `name` is for the message."""
    try:
        entries = _entries(content)
        head = json.loads(entries.pop(_TEXT), parse_constant=_refuse_constant)
        version = head["format"]
        if not isinstance(version, int) or version > FORMAT:
            raise ArchiveError(
                f"{name} has format {version}, newer than {FORMAT}: upgrade halfseen to read it"
            )
        tree = _unpack(head["state"], entries)
        if entries:
            raise ValueError(f"no part of the state is called {next(iter(entries))}")
    except ArchiveError:
        raise
    except Exception as error:  # a damaged file makes the libraries raise anything
        raise ArchiveError(
            f"{name} is not a complete halfseen archive ({type(error).__name__}: {error}): "
            "restore it from a copy or save again"
        ) from None
    if not isinstance(tree, dict):
        raise ArchiveError(f"{name} is not a halfseen archive: its state is not a mapping")
    return tree


def _entries(content: bytes) -> dict[str, bytes]:
    """Return all entries by name; reading one to its end compares its check sum."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        listed = archive.infolist()
        if any(each.compress_type or each.file_size != each.compress_size for each in listed):
            raise ValueError("an entry is compressed, which halfseen does not do")
        if sum(each.file_size for each in listed) > len(content):
            raise ValueError("entries overlap")
        entries = {entry.filename: archive.read(entry) for entry in listed}
    if len(entries) != len(listed):
        raise ValueError("two entries have one name")
    return entries


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number")


def _pack(node: Any, arrays: _Arrays) -> Any:
    if isinstance(node, np.ndarray):
        arrays.append(node)
        return {_ARRAY: len(arrays) - 1}
    if isinstance(node, dict):
        return {str(key): _pack(child, arrays) for key, child in node.items()}
    if isinstance(node, list | tuple):
        return [_pack(child, arrays) for child in node]
    return node


def _unpack(node: Any, entries: dict[str, bytes]) -> Any:
    """Return a state with its arrays put in; each entry is used exactly once."""
    if isinstance(node, dict):
        if _ARRAY in node:
            return _array_from(entries.pop(f"{node[_ARRAY]}.npy"))
        return {key: _unpack(child, entries) for key, child in node.items()}
    if isinstance(node, list):
        return [_unpack(child, entries) for child in node]
    return node


def _array_from(entry: bytes) -> np.ndarray[Any, Any]:
    """Return the array of numbers in an npy file, which must have exactly the size it states."""
    stream = io.BytesIO(entry)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ValueError("an array is in another format")
    shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    size = math.prod(shape) * dtype.itemsize
    if dtype.kind not in "biuf" or min(shape, default=0) < 0 or size != len(entry) - stream.tell():
        raise ValueError("an array has another type or size than its header says")
    values = np.frombuffer(entry, dtype, offset=stream.tell())
    return values.reshape(shape, order="F" if is_fortran else "C").copy("A")
