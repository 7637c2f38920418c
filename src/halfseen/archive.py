"""Saved state: one zip file of plain arrays and one JSON text, never pickle.

A state is a tree of dicts and lists with numbers, strings, None and arrays as leaves. Arrays go to
entries of their own and are named in the JSON text by position. The same state gives the same
bytes.
"""

import io
import json
import os
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from halfseen.errors import ArchiveError

FORMAT = 4
_TEXT = "halfseen.json"
_ARRAY = "$array"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # no clock in the bytes


def write(path: str | os.PathLike[str], tree: dict[str, Any]) -> None:
    """Write a state so that the file is either the new one or, after a failure, the old one."""
    target = Path(path)
    content = to_bytes(tree)
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=".saving-", delete=False) as file:
        try:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            os.chmod(file.name, _mode_of(target))
            os.replace(file.name, target)
        except BaseException:
            os.unlink(file.name)
            raise


def _mode_of(target: Path) -> int:
    """Return the mode of the file that is replaced, or what a new file would have."""
    if target.exists():
        return target.stat().st_mode & 0o777
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], int]:
    """Return the state in a file, and the format in which it is.

    Raises
    ------
    ArchiveError
        The file is damaged, truncated, something else, or from a newer version.
    """
    return from_bytes(Path(path).read_bytes(), str(path))


def to_bytes(tree: dict[str, Any]) -> bytes:
    """Return a state as the bytes of an archive."""
    arrays: list[np.ndarray[Any, Any]] = []
    text = json.dumps({"format": FORMAT, "state": _pack(tree, arrays)}, allow_nan=False)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr(zipfile.ZipInfo(_TEXT, _EPOCH), text)
        for index, array in enumerate(arrays):
            entry = io.BytesIO()
            np.lib.format.write_array(entry, array, allow_pickle=False)
            archive.writestr(
                zipfile.ZipInfo(f"{index}.npy", _EPOCH), entry.getvalue(), zipfile.ZIP_DEFLATED
            )
    return buffer.getvalue()


def from_bytes(content: bytes, name: str = "the archive") -> tuple[dict[str, Any], int]:
    """Return the state in the bytes of an archive, and its format; `name` is for the message."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            head = json.loads(archive.read(_TEXT))
            version = head["format"]
            if not isinstance(version, int) or version > FORMAT:
                raise ArchiveError(
                    f"{name} has format {version}, newer than {FORMAT}: upgrade halfseen to read it"
                )
            tree = _unpack(head["state"], archive)
    except ArchiveError:
        raise
    except Exception as error:  # whatever a damaged file makes the libraries raise
        raise ArchiveError(
            f"{name} is not a complete halfseen archive ({type(error).__name__}: {error}): "
            "restore it from a copy or save again"
        ) from None
    if not isinstance(tree, dict):
        raise ArchiveError(f"{name} is not a halfseen archive: its state is not a mapping")
    return tree, version


def array(
    state: dict[str, Any], name: str, shape: tuple[int | None, ...], dtype: type = np.float64
) -> np.ndarray[Any, Any]:
    """Return a copy of an array of a state, whose shape (None: any) and type must fit.

    Compiled loops do not check bounds, so that what does not fit must not come in.
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
    return np.array(value, order="C")


def _pack(node: Any, arrays: list[np.ndarray[Any, Any]]) -> Any:
    if isinstance(node, np.ndarray):
        arrays.append(node)
        return {_ARRAY: len(arrays) - 1}
    if isinstance(node, dict):
        return {str(key): _pack(child, arrays) for key, child in node.items()}
    if isinstance(node, list | tuple):
        return [_pack(child, arrays) for child in node]
    return node


def _unpack(node: Any, archive: zipfile.ZipFile) -> Any:
    if isinstance(node, dict):
        if _ARRAY in node:
            entry = io.BytesIO(archive.read(f"{node[_ARRAY]}.npy"))
            return np.lib.format.read_array(entry, allow_pickle=False)
        return {key: _unpack(child, archive) for key, child in node.items()}
    if isinstance(node, list):
        return [_unpack(child, archive) for child in node]
    return node
