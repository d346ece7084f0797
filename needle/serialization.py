"""Saving and loading: Tensors in a file that holds numbers and text only.

Files are in the format of `safetensors <https://huggingface.co/docs/safetensors>`_: reading one runs nothing,
whoever wrote it. Tensors and arrays lie in it by name, so that other programs can read them. How they were
nested, and the numbers and words between them, is JSON text in the file's metadata.

The format: the length of the header in eight bytes, the header, which is JSON and says of each array its
type, its shape, and where its numbers begin and end, and then the numbers, with no gap between them.
"""

from __future__ import annotations

import json
import math
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np

from .autograd import Tensor, check_device
from .backend_ndarray.shapes import DTYPES

__all__ = ["as_bytes", "load", "save"]

STRUCTURE = "needle.structure"  # the entry of the metadata that holds the JSON text
# The format's names of the types that NumPy and Tensors can hold.
TYPES = {
    "BOOL": "?",
    "F16": "<f2",
    "F32": "<f4",
    "F64": "<f8",
    "I8": "i1",
    "I16": "<i2",
    "I32": "<i4",
    "I64": "<i8",
}
TYPES |= {"U8": "u1", "U16": "<u2", "U32": "<u4", "U64": "<u8"}
LONGEST = 100_000_000  # bytes of a header


def save(path: str | os.PathLike, state: Any) -> None:
    """Write `state` into a file that `load` reads back. An interrupted save leaves the old file in place.

    Parameters
    ----------
    path : str or path
        By custom ``….safetensors``.
    state : dict, list or tuple
        Nested as you like, down to Tensors, NumPy arrays, numbers, strings, bools and None: for example
        ``{"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}``.
        A dict's keys must be strings.

    Raises
    ------
    TypeError
        If there is anything else in `state`. The message says where.
    ValueError
        If `state` contains itself.
    """
    _write(Path(path), as_bytes(state))


def as_bytes(state: Any) -> bytes:
    """What `save` writes into its file, with the same errors."""
    arrays: dict[str, np.ndarray] = {}
    try:
        structure = _take_apart(state, (), arrays)
    except RecursionError:
        raise ValueError("save: the state contains itself, or is nested too deeply") from None
    names = {np.dtype(dtype): name for name, dtype in TYPES.items()}
    header: dict[str, Any] = {"__metadata__": {STRUCTURE: json.dumps(structure)}}
    pieces, end = [], 0
    for name in sorted(
        arrays, key=lambda name: (-arrays[name].itemsize, name)
    ):  # so each lies well in memory
        dtype = arrays[name].dtype.newbyteorder("<")
        pieces.append(arrays[name].astype(dtype).tobytes())
        start, end = end, end + len(pieces[-1])
        header[name] = {"dtype": names[dtype], "shape": arrays[name].shape, "data_offsets": [start, end]}
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([struct.pack("<Q", len(text)), text, *pieces])


def load(path: str | os.PathLike, device: Any = None) -> Any:
    """Read what `save`, or another program, wrote into a safetensors file.

    Parameters
    ----------
    path : str or path
    device : Device, optional
        Where the Tensors shall live. Default: `default_device()`.

    Returns
    -------
    object
        What was saved; its Tensors are leaves. From another program's file: a dict of Tensors by name, where
        float16 becomes float32, and whole numbers of a type that Tensors lack become int64.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is cut off, damaged, in another format, or holds numbers that do not fit a Tensor.
    """
    check_device(device)
    with open(path, "rb") as file:
        start = file.read(2)
        try:
            arrays, text = _read(file)
        except _Unknown as error:
            raise ValueError(f"load: {path}: {error}, which needle lacks; save it as F32") from None
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError, struct.error):
            wrong = "is not a safetensors file, or is cut off or damaged"
            if start == b"PK" or start[:1] == b"\x80":
                wrong = "looks like a pickle, which needle never reads; let its writer save safetensors"
            raise ValueError(f"load: {path} {wrong}") from None
    foreign = {"dict": {name: {"tensor": name, "requires_grad": False} for name in arrays}}
    try:
        return _put_together(foreign if text is None else json.loads(text), arrays, device)
    except OverflowError as error:
        raise ValueError(f"load: {path}: {error}") from None
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        raise ValueError(f"load: {path} was changed after it was saved: its parts do not fit") from None


class _Unknown(Exception):
    """An array is of a type that NumPy lacks."""


def _read(file: Any) -> tuple[dict[str, np.ndarray], str | None]:
    """The arrays of a file by name, and the text on how they were nested. Nothing in the file is believed.

    Any of the usual exceptions says that it is not in this format.
    """
    whole = file.seek(0, os.SEEK_END)
    file.seek(0)
    (length,) = struct.unpack("<Q", file.read(8))
    if length > min(LONGEST, whole - 8):
        raise ValueError
    header = json.loads(file.read(length).decode())
    metadata = header.pop("__metadata__", None) or {}
    if not all(isinstance(words, str) for words in metadata.values()):
        raise TypeError
    arrays: dict[str, np.ndarray] = {}
    place = 0
    for name, about in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        start, end = about["data_offsets"]
        shape = about["shape"]
        if start != place or not start <= end <= whole - 8 - length:
            raise ValueError
        if not all(isinstance(size, int) and size >= 0 for size in (start, end, *shape)):
            raise TypeError
        if about["dtype"] not in TYPES:
            raise _Unknown(f"{name!r} holds {about['dtype']}")
        dtype = np.dtype(TYPES[about["dtype"]])
        if math.prod(shape) * dtype.itemsize != end - start:
            raise ValueError
        numbers = bytearray(end - start)
        file.readinto(numbers)
        array = np.frombuffer(numbers, dtype).reshape(shape)
        if about["dtype"] == "BOOL" and (array.view("uint8") > 1).any():
            raise ValueError
        arrays[name] = array.astype(dtype.newbyteorder("="), copy=False)
        place = end
    if place != whole - 8 - length:
        raise ValueError
    return arrays, metadata.get(STRUCTURE)


# In the JSON text lists, numbers and words stand for themselves. Everything else is a dict with an entry that
# says what it is: "tensor", "array", "dict" or "tuple".


def _take_apart(state: Any, where: tuple, arrays: dict[str, np.ndarray]) -> Any:
    """What the JSON text says of `state`, whose Tensors and arrays go into `arrays`."""
    match state:
        case None | bool() | int() | float() | str():
            return state
        case np.generic() if state.dtype.kind in "biuf":
            return state.item()
        case Tensor():
            return {"tensor": _put(state.numpy(), where, arrays), "requires_grad": state.requires_grad}
        case np.ndarray():
            if state.dtype.kind not in "biuf" or state.dtype.itemsize > 8:
                raise TypeError(f"save: {_place(where)} holds {state.dtype}; convert it to numbers first")
            return {"array": _put(state, where, arrays)}
        case dict():
            if wrong := [key for key in state if not isinstance(key, str)]:
                raise TypeError(f"save: {_place(where)} has the key {wrong[0]!r}; keys must be strings")
            return {"dict": {key: _take_apart(value, (*where, key), arrays) for key, value in state.items()}}
        case list() | tuple():
            items = [_take_apart(value, (*where, i), arrays) for i, value in enumerate(state)]
            return items if isinstance(state, list) else {"tuple": items}
    raise TypeError(
        f"save: {_place(where)} is a {type(state).__name__}; what can be saved are dicts, lists and tuples "
        "of Tensors, NumPy arrays, numbers, strings, bools and None. Of a model or an optimizer, save its "
        "state_dict(); of a random generator, its bit_generator.state"
    )


def _place(where: tuple) -> str:
    return "state" + "".join(f"[{key!r}]" for key in where)


def _put(array: np.ndarray, where: tuple, arrays: dict[str, np.ndarray]) -> str:
    """Add an array under a name that tells where it was, such as ``model.modules.0.weight``."""
    name = ".".join(map(str, where)) or "state"
    name = name.encode(errors="replace").decode()  # half of a surrogate pair, which no file can hold
    while name in arrays or name == "__metadata__":  # "a.b" may be the key "a.b", or "b" in "a"
        name += "'"
    arrays[name] = np.asarray(array, order="C")
    return name


def _put_together(structure: Any, arrays: dict[str, np.ndarray], device: Any) -> Any:
    """Build what `_take_apart` took apart."""
    match structure:
        case list():
            return [_put_together(item, arrays, device) for item in structure]
        case {"tensor": name, "requires_grad": requires_grad}:
            array = arrays[name]
            if array.dtype == "uint64" and (array > np.iinfo("int64").max).any():
                raise OverflowError(
                    f"{name!r} holds a uint64 number too large for int64, Tensors' widest type"
                )
            wider = "float32" if array.dtype == "float16" else "int64"
            dtype = array.dtype if array.dtype in DTYPES else wider
            return Tensor(array, device=device, dtype=dtype, requires_grad=bool(requires_grad))
        case {"array": name}:
            return arrays[name]
        case {"dict": items}:
            return {key: _put_together(value, arrays, device) for key, value in items.items()}
        case {"tuple": items}:
            return tuple([_put_together(item, arrays, device) for item in items])
        case dict():
            raise ValueError("no such structure")
    return structure


def _write(path: Path, content: bytes) -> None:
    """Write a file beside `path`, then let it take the place of that one, with the same permissions."""
    path = path.resolve()  # what a link points to, not the link
    unfinished = path.with_name(f".{path.name}.{os.urandom(4).hex()}.part")
    try:
        with open(unfinished, "xb") as file:
            if path.exists():
                os.chmod(unfinished, path.stat().st_mode & 0o7777)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
