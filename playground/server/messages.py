"""What the server says to the page: bytes that the browser reads without copying.

A message is the length of its header (uint32, little endian), the header (JSON, padded with spaces to a
multiple of 4 bytes), and arrays one after the other, each padded to a multiple of 4 bytes. The header's
`arrays` lists their names, types and shapes: "f4" is float32, "f2" float16, "i1" a shade from -127 (-1) to
127 (1), "u1" a byte. ``stage/connection.js`` reads them.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Collection, Mapping
from functools import cache, lru_cache
from typing import Any
from urllib.parse import quote

import numpy as np

from needle.data import toy

from ..results import take_home
from ..training import features
from ..training.lessons import LESSONS
from ..training.network import constant
from ..training.points import MAKERS
from ..training.points import MOST_BYTES as LARGEST_POINTS
from ..training.settings import FIELDS, HIDEABLE, Settings
from ..training.trainer import Trainer

__all__ = ["RESOLUTION", "SHOWN_NEURONS", "THUMBNAIL", "backup", "pack", "picture", "scene", "welcome"]

#: Places in each direction, from edge to edge, at which the output is computed; and those of a small map.
RESOLUTION = features.RESOLUTION
THUMBNAIL = 24
_SMALL = np.s_[1::3, 1::3]  # the middles of 24 x 24 squares of the lattice
#: So many neurons of a layer are drawn; the page gives the number of the others.
SHOWN_NEURONS = 8
_BINS = 24
_STEEP = (
    0.25  # the product of two answers of different sign: from there on a straight line between them misleads
)
_MOST_IN_ADDRESS = 150  # points of the user's


def pack(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray] | None = None) -> bytes:
    """A message from a header and arrays of float32, float16, int8 or uint8."""
    arrays = {name: np.ascontiguousarray(array) for name, array in (arrays or {}).items()}
    shapes = [(name, array.dtype.str[1:], array.shape) for name, array in arrays.items()]
    text = json.dumps({**header, "arrays": shapes}, separators=(",", ":"), allow_nan=False).encode()
    parts = [struct.pack("<I", len(text) + -len(text) % 4), text, b" " * (-len(text) % 4)]
    for array in arrays.values():
        parts += [array.tobytes(), b"\0" * (-array.nbytes % 4)]
    return b"".join(parts)


def welcome(run: str, token: str, is_lost: bool = False) -> bytes:
    """The first message: what the page needs to build its controls, and to come back to its run.

    Parameters
    ----------
    run, token : str
    is_lost : bool
        Whether this process does not know the run that the page had before. Then the page hands over its
        `backup`.
    """
    header = {
        "kind": "welcome",
        "run": run,
        "token": token,
        "is_lost": is_lost,
        "fields": {name: field.for_page() for name, field in FIELDS.items()},
        "hideable": HIDEABLE,
        "regression": list(toy.REGRESSION),
        "lessons": [
            {
                "name": name,
                "title": lesson.title,
                "question": lesson.question,
                "prediction": lesson.predictions,
                "epochs": lesson.epochs,
                "address": _query({**lesson.settings, "lesson": name}),
            }
            for name, lesson in LESSONS.items()
        ],
        "largest": {"points": LARGEST_POINTS, "run": take_home.MOST_BYTES},
        "domain": toy.DOMAIN,
        "resolution": RESOLUTION,
        "thumbnail": THUMBNAIL,
        "shown": SHOWN_NEURONS,
    }
    return pack(header, {"samples": _samples(), "known_maps": _input_maps(tuple(features.FEATURES))})


@cache
def _samples() -> np.ndarray:
    """A few points of each data set, for small pictures: shape (sets, 110, 3)."""
    sets = []
    for make in MAKERS.values():
        points, labels = make(110, 0.0, 0)
        sets.append(np.column_stack([points, labels]))
    return np.array(sets, "f4")


def scene(trainer: Trainer, problems: Collection[str] = ()) -> bytes:
    """What changes only when a setting does: the controls, the points, the layers."""
    settings = trainer.settings
    points, labels = (np.concatenate(pair) for pair in zip(trainer.train, trainer.test, strict=True))
    shown = {name: getattr(settings, name) for name in FIELDS}
    remark = None
    if len(settings.own) > _MOST_IN_ADDRESS:
        shown["own"] = ()
        remark = "The address can't hold so many points: take the run home to keep them."
    texts = {name: FIELDS[name].write(value) for name, value in shown.items()}
    address = {
        name: texts[name] for name in settings.different_from(Settings()) if name != "own" or shown[name]
    }
    header = {
        "kind": "scene",
        "settings": texts,
        "address": _query(address),
        "problems": list(problems),
        "remark": remark,
        "layers": [
            {"neurons": len(settings.inputs), "title": "Inputs"},
            *[
                {
                    "neurons": layer.neurons,
                    "title": title,
                    "activation": settings.activation_of(layer),
                    "own_activation": layer.activation,
                    "dropout": layer.dropout,
                    "normalisation": layer.normalisation,
                }
                for layer, title in zip(settings.hidden, trainer.layer_names, strict=False)
            ],
            {"neurons": 1, "title": trainer.layer_names[-1]},
        ],
        "inputs": [{"text": text, "label": features.FEATURES.get(text, text)} for text in settings.inputs],
        "is_regression": settings.is_regression,
        "most_moments": trainer.moments.capacity,
        "train": len(trainer.train[0]),
        "test": len(trainer.test[0]),
        "own": len(settings.own),
        "own_test": trainer.own_test,
    }
    columns = {"x1": points[:, 0], "x2": points[:, 1], "labels": labels}
    arrays = {name: column.astype("f4") for name, column in columns.items()}
    return pack(header, {**arrays, "inputs_maps": _input_maps(settings.inputs)})


def _query(address: Mapping[str, str]) -> str:
    """The address as text; characters that are clear in it stay as they are."""
    parts = [f"{name}={quote(text, safe='*,:()/')}" for name, text in address.items()]
    return "?" + "&".join(parts) if parts else ""


def _input_maps(texts: tuple[str, ...]) -> np.ndarray:
    maps = features.on_grid(texts, RESOLUTION).reshape(RESOLUTION, RESOLUTION, -1)[_SMALL]
    return _shades(maps.transpose(2, 0, 1) / np.maximum(np.abs(maps).max(axis=(0, 1)), 1e-30)[:, None, None])


def picture(
    trainer: Trainer,
    playing: bool,
    hint: str | None = None,
    look: tuple[int, int] | None = None,
    watch: Collection[str] = (),
) -> bytes:
    """The network as it is now.

    Parameters
    ----------
    trainer : Trainer
    playing : bool
        Whether more pictures follow by themselves.
    hint : str, optional
        What the network says about itself: see `hints`.
    look : tuple of int, optional
        The layer and the number of a neuron whose map is wanted in full resolution.
    watch : collection of str
        What else is wanted: "histograms".
    """
    settings = trainer.settings
    layers = trainer.learner.outputs(_plane(settings.inputs))
    output = layers[-1][:, 0]
    arrays = {"output": _halves(output)}
    with np.errstate(all="ignore"):
        if _is_steep(output):
            before = layers[-2] if len(layers) > 1 else features.on_grid(settings.inputs, RESOLUTION)
            last = trainer.learner.linears[-1]
            arrays["sums"] = (before @ last.weight.numpy() + last.bias.numpy())[:, 0].astype("f4")
    shown = [layer[:, :SHOWN_NEURONS].reshape(RESOLUTION, RESOLUTION, -1)[_SMALL] for layer in layers[:-1]]
    maps = np.concatenate(shown, axis=-1) if shown else np.empty((THUMBNAIL, THUMBNAIL, 0), np.float32)
    arrays["maps"] = _shades(maps.transpose(2, 0, 1))
    for number, linear in enumerate(trainer.learner.linears, start=1):
        arrays |= {f"weights_{number}": linear.weight.numpy(), f"biases_{number}": linear.bias.numpy()[0]}
    losses = trainer.losses.items()
    arrays["epochs"] = np.array([epoch for epoch, _ in losses], "f4")
    arrays["train"], arrays["test"] = np.array([pair for _, pair in losses], "f4").reshape(-1, 2).T
    if look is not None:
        level, neuron = look
        values = features.on_grid(settings.inputs, RESOLUTION) if level == 0 else layers[level - 1]
        arrays["focus"] = _halves(values[:, neuron])
    header: dict[str, Any] = {
        "kind": "picture",
        "steps": trainer.steps,
        "epochs": trainer.epochs,
        "figures": {name: _finite(value) for name, value in trainer.figures._asdict().items()},
        "playing": playing,
        "trouble": trainer.trouble,
        "hint": hint,
        "mode": "compiled" if trainer.is_compiled else "compiling" if settings.compiled else "eager",
        "rate": trainer.learner.optimizer.lr,
        "at": trainer.epochs if trainer.looks_back else None,
        "gone_after": trainer.gone_after,
        "share": trainer.epoch_share,
        "look": look,
    }
    if "histograms" in watch:
        header |= _histograms(trainer, arrays)
    return pack(header, arrays)


def backup(trainer: Trainer | None, playing: bool) -> bytes:
    """The run as a file, for the page to keep: any process goes on from it, should this one end.

    Parameters
    ----------
    trainer : Trainer or None
        None if there is nothing that the address does not bring back. Then the page forgets what it kept.
    playing : bool

    Raises
    ------
    TooManyChanges
        If the file would be too large.
    """
    data = take_home.to_file(trainer) if trainer else b""
    return pack({"kind": "backup", "playing": playing}, {"file": np.frombuffer(data, np.uint8)})


def _is_steep(output: np.ndarray) -> bool:
    """Whether an answer jumps from one class to the other between two neighbours of the lattice.

    Then -1 and +1 don't tell where it is 0: what the neuron sums up before its activation does.
    """
    lattice = output.reshape(RESOLUTION, RESOLUTION)
    return bool(
        np.any(lattice[1:] * lattice[:-1] < -_STEEP) or np.any(lattice[:, 1:] * lattice[:, :-1] < -_STEEP)
    )


def _histograms(trainer: Trainer, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """Add counts of the activations and of the gradients of each layer, and return their ranges."""
    ranges: dict[str, list[list[float]]] = {"hist_range": [], "grad_range": []}
    gradients = trainer.gradients()
    for number, activations in enumerate(trainer.learner.outputs(trainer.train_inputs), start=1):
        for name, values in (("hist", activations), ("grad", gradients[number - 1])):
            values = values[np.isfinite(values)].astype(float)  # float32 has no room for bins next to 1
            counts, edges = np.histogram(values, bins=_BINS)
            arrays[f"{name}_{number}"] = counts.astype("f4")
            ranges[f"{name}_range"].append([float(edges[0]), float(edges[-1])])
    return ranges


@lru_cache(maxsize=64)
def _plane(inputs: tuple[str, ...]) -> Any:
    return constant(features.on_grid(inputs, RESOLUTION))


def _shades(values: np.ndarray) -> np.ndarray:
    """Numbers from -1 to 1 as int8. Others are clipped, and NaN becomes 0."""
    shades = np.rint(np.clip(values, -1, 1) * 127)
    shades[np.isnan(shades)] = 0
    return shades.astype(np.int8)


def _halves(values: np.ndarray) -> np.ndarray:
    """Numbers as float16: shades are coarser, and a browser takes in half the bytes in half the time.

    What is too large becomes the largest.
    """
    largest = np.finfo(np.float16).max
    return np.clip(values, -largest, largest).astype(np.float16)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
