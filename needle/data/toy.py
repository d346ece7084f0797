"""Toy problems in the plane, small enough to watch a network learn them.

Every dataset is a function ``(n, noise, rng) -> (points, labels)``:

- ``points`` has shape (n, 2) and dtype float64; pictures show the plane from -6 to 6 in both directions
  (`DOMAIN`);
- ``labels`` has shape (n,) and dtype float64; in `DATASETS` (two classes of points) each is +1 or -1, in
  `REGRESSION` a number of about that size;
- ``noise`` lies between 0 and 0.5;
- ``rng`` is a `numpy.random.Generator` or the seed of a new one; the same seed gives the same data. By
  default it is NumPy's global state, which ``numpy.random.seed`` sets.

`circle`, `xor`, `gaussian` and `spiral` are the classification problems of TensorFlow Playground
(https://playground.tensorflow.org), `plane` and `multi_gaussian` its regression problems. `simple`, `diag`
and `split` are MiniTorch's (https://minitorch.github.io), which live on the unit square: here u in [0, 1]
becomes 12 u - 6. `moons` is known from scikit-learn (https://scikit-learn.org).

Where noise *moves labels*, a point p gets the label of the place p + e, with both coordinates of e uniform in
``noise * [-reach, reach]``: points near a border may get the other class's label.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..backend_ndarray.device import generator

__all__ = [
    "DATASETS",
    "DOMAIN",
    "MAX_NOISE",
    "REGRESSION",
    "circle",
    "diag",
    "gaussian",
    "moons",
    "multi_gaussian",
    "plane",
    "simple",
    "spiral",
    "split",
    "train_test_split",
    "xor",
]

Dataset = Callable[..., tuple[np.ndarray, np.ndarray]]

#: The lowest and highest coordinate that pictures show.
DOMAIN = (-6.0, 6.0)
MAX_NOISE = 0.5


def circle(n: int, noise: float = 0.0, rng: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """A disc (+1) inside a ring (-1).

    The disc's radii are uniform in [0, 2.5], the ring's in [3.5, 5]; a label is +1 where the distance
    from the centre is below 2.5. Noise moves labels, with a reach of 5. Source: TensorFlow Playground.
    """
    rng = _checked(n, noise, rng)
    inside = n // 2
    radius = np.concatenate([rng.uniform(0, 2.5, inside), rng.uniform(3.5, 5, n - inside)])
    angle = rng.uniform(0, 2 * math.pi, n)
    points = np.stack([radius * np.sin(angle), radius * np.cos(angle)], axis=1)
    return points, _sign(np.hypot(*_moved(points, noise, 5, rng).T) < 2.5)


def xor(n: int, noise: float = 0.0, rng: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Four quadrants, +1 where the coordinates' signs agree.

    Points are uniform in [-5, 5]², then pushed 0.3 away from both axes. Noise moves labels, with a
    reach of 5. Source: TensorFlow Playground.
    """
    rng = _checked(n, noise, rng)
    points = rng.uniform(-5, 5, (n, 2))
    points += np.where(points > 0, 0.3, -0.3)
    return points, _sign(_moved(points, noise, 5, rng).prod(axis=1) >= 0)


def gaussian(n: int, noise: float = 0.0, rng: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Two round clouds, +1 around (2, 2) and -1 around (-2, -2).

    Noise is the clouds' width: the variance of each coordinate is 0.5 + 7 noise, 0.5 to 4. A few points
    may lie outside `DOMAIN`. Source: TensorFlow Playground.
    """
    rng = _checked(n, noise, rng)
    labels = _sign(np.arange(n) < n // 2)
    points = 2 * labels[:, None] + math.sqrt(0.5 + 7 * noise) * rng.standard_normal((n, 2))
    return points, labels


def spiral(n: int, noise: float = 0.0, rng: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Two arms that wind around each other, +1 on the one that starts upwards.

    Point i of the m in an arm lies at radius 5 i/m and angle 3.5 pi i/m (plus pi in the -1 arm), clockwise
    from the vertical axis. Noise moves the *points*, uniformly in ``noise * [-1, 1]``.
    Source: TensorFlow Playground.
    """
    rng = _checked(n, noise, rng)
    positive = n // 2
    along = np.concatenate([np.arange(m) / m for m in (positive, n - positive) if m])
    labels = _sign(np.arange(n) < positive)
    angle = 3.5 * math.pi * along + np.where(labels > 0, 0.0, math.pi)
    points = 5 * along[:, None] * np.stack([np.sin(angle), np.cos(angle)], axis=1)
    return _moved(points, noise, 1, rng), labels


def simple(n: int, noise: float = 0.0, rng: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """One upright line: +1 on its left, x1 < 0 (u1 < 0.5 on MiniTorch's unit square).

    Points are uniform in `DOMAIN`. Noise moves labels, with a reach of 6.
    """
    return _unit_square(n, noise, rng, lambda u1, u2: u1 < 0.5)


def diag(n: int, noise: float = 0.0, rng: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """One sloping line: +1 below it, x1 + x2 < -6 (u1 + u2 < 0.5 on MiniTorch's unit square).

    Points are uniform in `DOMAIN`, so one in eight is +1. Noise moves labels, with a reach of 6.
    """
    return _unit_square(n, noise, rng, lambda u1, u2: u1 + u2 < 0.5)


def split(n: int, noise: float = 0.0, rng: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Two upright lines: +1 outside them, ``|x1| > 3.6`` (u1 < 0.2 or u1 > 0.8 on MiniTorch's unit square).

    Points are uniform in `DOMAIN`. Noise moves labels, with a reach of 6.
    """
    return _unit_square(n, noise, rng, lambda u1, u2: (u1 < 0.2) | (u1 > 0.8))


def moons(n: int, noise: float = 0.0, rng: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Two half circles of radius 3 that reach into each other, +1 on the upper one.

    The upper one's centre is (-1.5, -0.75), the lower one's is (1.5, 0.75); points are uniform along them.
    Noise moves the *points*, with a reach of 3. Source: scikit-learn's ``make_moons``, three times as large
    and centred on the origin.
    """
    rng = _checked(n, noise, rng)
    labels = _sign(np.arange(n) < n // 2)
    angle = rng.uniform(0, math.pi, n)
    arc = 3 * np.stack([np.cos(angle), np.sin(angle)], axis=1) - (1.5, 0.75)
    return _moved(labels[:, None] * arc, noise, 3, rng), labels


def plane(n: int, noise: float = 0.0, rng: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Regression: a label is (x1 + x2) / 10, so it lies between -1.2 and 1.2.

    Points are uniform in `DOMAIN`. Noise moves labels, with a reach of 6. Source: TensorFlow Playground.
    """
    rng = _checked(n, noise, rng)
    points = rng.uniform(*DOMAIN, (n, 2))
    return points, _moved(points, noise, 6, rng).sum(axis=1) / 10


def multi_gaussian(n: int, noise: float = 0.0, rng: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Regression: three hills and three hollows in two rows, zero between them.

    At a distance d from its centre, a hill is max(0, 1 - d/2) high and a hollow is as deep; the largest of
    these counts. The hills are at (-4, 2.5), (4, 2.5) and (0, -2.5), the hollows at (-4, -2.5), (4, -2.5) and
    (0, 2.5). Points are uniform in `DOMAIN`. Noise moves labels, with a reach of 6. Source: TensorFlow
    Playground.
    """
    rng = _checked(n, noise, rng)
    centres = np.array([(x, y) for x in (-4, 0, 4) for y in (-2.5, 2.5)])
    signs = np.array([-1, 1, 1, -1, -1, 1])
    points = rng.uniform(*DOMAIN, (n, 2))
    apart = _moved(points, noise, 6, rng)[:, None] - centres
    heights = signs * np.maximum(0, 1 - np.hypot(apart[..., 0], apart[..., 1]) / 2)
    return points, heights[np.arange(n), np.abs(heights).argmax(axis=1)]


#: Every problem with two classes by its name, in the order in which a menu should list them.
DATASETS: dict[str, Dataset] = {
    "circle": circle,
    "xor": xor,
    "gaussian": gaussian,
    "spiral": spiral,
    "simple": simple,
    "diag": diag,
    "split": split,
    "moons": moons,
}

#: Every regression problem by its name.
REGRESSION: dict[str, Dataset] = {
    "plane": plane,
    "multi-gaussian": multi_gaussian,
}


def train_test_split(
    points: np.ndarray, labels: np.ndarray, train_share: float = 0.5, rng: Any = None
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Shuffle the data and cut it into a part to learn from and a part to test with.

    Parameters
    ----------
    points, labels : numpy.ndarray
        Arrays of the same length, at least 2. They stay as they are.
    train_share : float
        The share to learn from, above 0 and below 1. Each part gets at least one point.
    rng : numpy.random.Generator or int, optional
        Decides the order; an int is the seed of a generator. Default: NumPy's global state.

    Returns
    -------
    tuple
        ``(train_points, train_labels), (test_points, test_labels)``.

    Raises
    ------
    ValueError
        If the lengths differ or are below 2, or if the share is not between 0 and 1.
    """
    n = len(points)
    if n != len(labels):
        raise ValueError(f"train_test_split: {n} points but {len(labels)} labels; each point needs one label")
    if n < 2:
        raise ValueError(f"train_test_split: {n} points cannot be split; at least 2 are needed")
    if not 0 < train_share < 1:
        raise ValueError(f"train_test_split: train_share must be above 0 and below 1, got {train_share!r}")
    order = (generator(rng) or np.random).permutation(n)
    cut = min(max(round(n * train_share), 1), n - 1)
    train, test = order[:cut], order[cut:]
    return (points[train], labels[train]), (points[test], labels[test])


def _unit_square(
    n: int,
    noise: float,
    rng: Any,
    is_positive: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> tuple[np.ndarray, np.ndarray]:
    """Stretch a dataset on [0, 1]² over `DOMAIN`. The noise's reach is half the square's side."""
    rng = _checked(n, noise, rng)
    low, high = DOMAIN
    unit = rng.uniform(0, 1, (n, 2))
    return low + (high - low) * unit, _sign(is_positive(*_moved(unit, noise, 0.5, rng).T))


def _moved(points: np.ndarray, noise: float, reach: float, rng: Any) -> np.ndarray:
    return points + noise * rng.uniform(-reach, reach, points.shape)


def _sign(positive: np.ndarray) -> np.ndarray:
    return np.where(positive, 1.0, -1.0)


def _checked(n: int, noise: float, rng: Any) -> Any:
    """Check the arguments, and return what draws random numbers."""
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
        raise ValueError(f"the number of points must be a whole number of at least 1, got {n!r}")
    if not 0 <= noise <= MAX_NOISE:
        raise ValueError(f"noise must lie between 0 and {MAX_NOISE}, got {noise!r}")
    return generator(rng) or np.random
