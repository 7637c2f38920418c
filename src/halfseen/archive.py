"""Saved state: one zip file of plain arrays and one JSON text, never pickle.

A state is a tree of dicts and lists with numbers, strings, None and arrays as leaves. Each array is
an entry of its own; the JSON text refers to it by position. The same state gives the same bytes.
The last entry is a digest of all others, so that any change to the file is detected.
"""

import hashlib
import io
import json
import math
import os
import secrets
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from halfseen.errors import ArchiveError

FORMAT = 8
_TEXT = "halfseen.json"
_DIGEST = "sha256"
_FIRST_WITH_DIGEST = 4
# Of other methods zipfile unpacks more than it is asked for.
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ARRAY = "$array"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # no clock in the bytes

# A file may expand to `_SMALL` bytes, or to `_LARGEST_RATIO` times its size. Files that we write
# compress by a factor of at most 230 (all zeros); a zip bomb by 1000 or more.
_SMALL = 2**24
_LARGEST_RATIO = 300

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


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], int]:
    """Return the state in a file, and the file's format.

    Raises
    ------
    ArchiveError
        The file is damaged, truncated, not an archive, or from a newer version.
    """
    return from_bytes(Path(path).read_bytes(), str(path))


def to_bytes(tree: dict[str, Any]) -> bytes:
    """Return a state as the bytes of an archive."""
    entries = to_entries(tree)
    entries[_DIGEST] = _digest(entries).encode()
    content = _zipped(entries, zipfile.ZIP_DEFLATED)
    if _is_too_large(sum(map(len, entries.values())), len(content)):
        content = _zipped(entries, zipfile.ZIP_STORED)
    return content


def to_entries(tree: dict[str, Any]) -> dict[str, bytes | memoryview]:
    """Return the entries of an archive by name, without the digest: equal for equal states."""
    arrays: _Arrays = []
    text = json.dumps({"format": FORMAT, "state": _pack(tree, arrays)}, allow_nan=False)
    entries: dict[str, bytes | memoryview] = {_TEXT: text.encode()}
    for index, array in enumerate(arrays):
        entry = io.BytesIO()
        np.lib.format.write_array(entry, array, allow_pickle=False)
        entries[f"{index}.npy"] = entry.getbuffer()
    return entries


def from_bytes(content: bytes, name: str = "the archive") -> tuple[dict[str, Any], int]:
    """Return the state in the bytes of an archive, and its format; `name` is for the message."""
    try:
        entries = _entries(content)
        digest = entries.pop(_DIGEST, None)
        if digest is not None and digest != _digest(entries).encode():
            raise ValueError("its content does not fit its digest")
        head = json.loads(entries.pop(_TEXT), parse_constant=_refuse_constant)
        version = head["format"]
        if not isinstance(version, int) or version > FORMAT:
            raise ArchiveError(
                f"{name} has format {version}, newer than {FORMAT}: upgrade halfseen to read it"
            )
        if digest is None and version >= _FIRST_WITH_DIGEST:
            raise ValueError("it has no digest")
        tree = _unpack(head["state"], entries)
    except ArchiveError:
        raise
    except Exception as error:  # a damaged file makes the libraries raise anything
        raise ArchiveError(
            f"{name} is not a complete halfseen archive ({type(error).__name__}: {error}): "
            "restore it from a copy or save again"
        ) from None
    if not isinstance(tree, dict):
        raise ArchiveError(f"{name} is not a halfseen archive: its state is not a mapping")
    return tree, version


def array(
    state: dict[str, Any],
    name: str,
    shape: tuple[int | None, ...],
    dtype: type = np.float64,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    hidden: bool = False,
) -> np.ndarray[Any, Any]:
    """Return a copy of an array of a state after checking its shape (None: any), type and range.

    Compiled loops do not check bounds, so arrays must be checked here. Entries must be finite;
    with `hidden`, NaN is allowed as well.
    """
    value = state[name]
    fits = (
        isinstance(value, np.ndarray)
        and value.dtype == dtype
        and value.ndim == len(shape)
        and all(want in (None, got) for want, got in zip(shape, value.shape, strict=True))
    )
    if not fits:
        raise ArchiveError(f"array {name!r} must have shape {shape} and type {dtype.__name__}")
    inside = np.isfinite(value) & (value >= low) & (value <= high)
    if hidden:
        inside |= np.isnan(value)
    if not inside.all():
        wrong = value[~inside][0]
        raise ArchiveError(f"array {name!r} must be finite, from {low:g} to {high:g}, got {wrong}")
    return np.array(value, order="C")


def orthonormal(
    state: dict[str, Any], name: str, shape: tuple[int | None, int | None]
) -> np.ndarray[Any, Any]:
    """Return a copy of an array of a state after checking that its columns are orthonormal."""
    columns = array(state, name, shape, low=-2.0, high=2.0)
    probe = np.random.default_rng(0).standard_normal((columns.shape[1], 1))
    if not np.allclose(columns.T @ (columns @ probe), probe, atol=1e-6):
        raise ArchiveError(f"array {name!r} must have orthonormal columns")
    return columns


def _digest(entries: Mapping[str, bytes | memoryview]) -> str:
    """Return a digest of entries and their names, in their order."""
    digest = hashlib.sha256()
    for name, entry in entries.items():
        digest.update(f"{name} {len(entry)}\n".encode())
        digest.update(entry)
    return digest.hexdigest()


def _zipped(entries: Mapping[str, bytes | memoryview], method: int) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method, compresslevel=1) as archive:
        for name, entry in entries.items():
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), entry, method)
    return buffer.getvalue()


def _is_too_large(expanded: int, size: int) -> bool:
    return expanded > max(_SMALL, _LARGEST_RATIO * size)


def _entries(content: bytes) -> dict[str, bytes]:
    """Return all entries by name."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        listed = archive.infolist()
        expanded = sum(entry.file_size for entry in listed)
        if _is_too_large(expanded, len(content)):
            raise ArchiveError(
                f"an archive of {len(content)} bytes must not expand to {expanded}: it was not "
                "written by halfseen"
            )
        if any(entry.compress_type not in _METHODS for entry in listed):
            raise ValueError("an entry is compressed in another way than halfseen does")
        entries = {entry.filename: _content(archive, entry) for entry in listed}
    if len(entries) != len(listed):
        raise ValueError("two entries have one name")
    return entries


def _content(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """Return an entry; never unpack more bytes than its listed size."""
    with archive.open(entry) as file:
        content = file.read(entry.file_size)
    if len(content) != entry.file_size:
        raise ValueError(f"{entry.filename} is cut off")
    return content


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number")


def _pack(node: Any, arrays: _Arrays) -> Any:
    if isinstance(node, np.ndarray):
        arrays.append(node)
        return {_ARRAY: len(arrays) - 1}
    if isinstance(node, dict):
        return {str(key): _pack(child, arrays) for key, child in node.items()}
    if isinstance(node, list | tuple):
        return [_pack(child, arrays) for child in node]
    return node


def _unpack(state: Any, entries: dict[str, bytes]) -> Any:
    """Return a state with its arrays put in; each entry is used exactly once."""

    def unpacked(node: Any) -> Any:
        if isinstance(node, dict):
            if _ARRAY in node:
                return _array_from(entries.pop(f"{node[_ARRAY]}.npy"))
            return {key: unpacked(child) for key, child in node.items()}
        if isinstance(node, list):
            return [unpacked(child) for child in node]
        return node

    tree = unpacked(state)
    if entries:
        raise ValueError(f"no part of the state is called {next(iter(entries))}")
    return tree


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
