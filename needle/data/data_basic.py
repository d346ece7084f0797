"""`Dataset`, a collection of items by number, and `DataLoader`, which goes through one in batches."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any

import numpy as np

from ..autograd import Tensor, check_device
from ..backend_ndarray.device import generator

__all__ = ["DataLoader", "Dataset"]


class Dataset:
    """What there is to learn from: items, numbered from 0.

    A subclass gives ``__len__`` and ``__getitem__``, which takes a number and returns the item: an array (or
    number), or a tuple of them, such as an image and its label. Item i + 1 must have the shapes of item i.

    Parameters
    ----------
    transforms : list of Transform, optional
        What `apply_transforms` does, one after the other.
    """

    transforms: Sequence[Callable] | None = None

    def __init__(self, transforms: Sequence[Callable] | None = None):
        self.transforms = transforms

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} needs a method __getitem__(self, index)")

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} needs a method __len__(self)")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self):,} items)"

    def apply_transforms(self, x: Any) -> Any:
        """`x`, changed by each transform in turn."""
        for transform in self.transforms or ():
            x = transform(x)
        return x

    def __init_subclass__(cls, **kwargs: Any):
        super().__init_subclass__(**kwargs)
        if "__getitem__" in vars(cls) and "take" not in vars(cls):
            # Its parent's short cut does not know of its items.
            cls.take = Dataset.take  # type: ignore[method-assign]

    def take(self, indices: np.ndarray) -> Sequence[np.ndarray]:
        """The items with these numbers, as one array for each part of an item, items along the first axis.

        This goes item by item. A dataset that can look many up at once may do so here.
        """
        return stacked([self[int(i)] for i in indices])


class DataLoader:
    """Goes through a dataset in batches: ``for images, labels in DataLoader(dataset, batch_size=32): …``.

    A batch is a tuple of Tensors, one for each part of an item; their first axis counts the items. Each
    ``for`` goes through the whole dataset, shuffled anew.

    Parameters
    ----------
    dataset : Dataset
        Anything with ``len(dataset)`` and ``dataset[i]`` will do.
    batch_size : int
        Items in a batch. The last batch has what is left.
    shuffle : bool
        Whether the items come in a random order, one ``permutation(len(dataset))`` each time.
    drop_last : bool
        Whether a last batch of fewer items is left out.
    rng : numpy.random.Generator or int, optional
        Decides the order; an int is the seed of a generator. Default: NumPy's global state.
    prefetch : int
        How many batches a thread prepares while the one before is being used; 0: no thread. The batches are
        the same. A transform that draws from NumPy's global state does so earlier then, between the draws of
        others: give it an ``rng`` of its own for results that can be repeated.
    device : Device, optional
        Where the batches live. Default: `default_device()`.
    dtype : dtype or str, optional
        Default: float32 (under ``NEEDLE_BACKEND=np``: that of the dataset's arrays).

    Raises
    ------
    ValueError
        If the dataset is empty, if no whole batch is left by `drop_last`, or for sizes that make no sense.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool = False,
        drop_last: bool = False,
        rng: np.random.Generator | int | None = None,
        prefetch: int = 0,
        device: Any = None,
        dtype: Any = None,
    ):
        self.dataset = dataset
        self.batch_size = _count("batch_size", 1 if batch_size is None else batch_size, at_least=1)
        self.shuffle = shuffle
        self.drop_last = drop_last
        self.rng = generator(rng)
        self.prefetch = _count("prefetch", prefetch, at_least=0)
        check_device(device)
        self.device = device
        self.dtype = dtype
        if not len(dataset):
            raise ValueError("DataLoader: the dataset is empty; there is nothing to go through")
        if not len(self):
            raise ValueError(
                f"DataLoader: drop_last leaves nothing of {len(dataset)} items in batches of "
                f"{self.batch_size}; use a smaller batch_size, or keep the last batch"
            )

    def __repr__(self) -> str:
        shuffled = ", shuffled" if self.shuffle else ""
        return f"DataLoader({self.dataset!r}{shuffled}): {len(self):,} batches of {self.batch_size}"

    def __len__(self) -> int:
        """How many batches there are."""
        n = len(self.dataset)
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)

    def __iter__(self) -> Iterator[tuple[Tensor, ...]]:
        # Everything that is random about the order is drawn here, before the first batch is asked for.
        n = len(self.dataset)
        order = (self.rng or np.random).permutation(n) if self.shuffle else np.arange(n)
        starts = range(0, len(self) * self.batch_size, self.batch_size)
        parts = [order[start : start + self.batch_size] for start in starts]
        if self.prefetch:
            return map(self._tensors, _ahead(self._arrays, parts, self.prefetch))
        return map(self._tensors, map(self._arrays, parts))

    def _arrays(self, indices: np.ndarray) -> Sequence[np.ndarray]:
        if isinstance(self.dataset, Dataset):
            return self.dataset.take(indices)
        return stacked([self.dataset[int(i)] for i in indices])

    def _tensors(self, arrays: Sequence[np.ndarray]) -> tuple[Tensor, ...]:
        return tuple(
            [Tensor(array, device=self.device, dtype=self.dtype, requires_grad=False) for array in arrays]
        )


def owned(part: Any) -> Any:
    """A part of an item that shares no memory with its dataset, so that it can be changed."""
    return part.copy() if isinstance(part, np.ndarray) and not part.flags.owndata else part


def stacked(items: Sequence[Any]) -> tuple[np.ndarray, ...]:
    """Items as one array for each of their parts, items along the first axis.

    Raises
    ------
    ValueError
        If the items' parts differ in number or shape.
    """
    if not isinstance(items[0], (tuple, list)):
        items = [(item,) for item in items]
    if len({len(item) for item in items}) > 1:
        raise ValueError(
            f"DataLoader: items have {sorted({len(item) for item in items})} parts; all need the same"
        )
    return tuple([_stack(i, part) for i, part in enumerate(zip(*items, strict=True))])


def _stack(position: int, parts: Sequence[Any]) -> np.ndarray:
    arrays = [part.numpy() if isinstance(part, Tensor) else np.asarray(part) for part in parts]
    shapes = {array.shape for array in arrays}
    if len(shapes) > 1:
        raise ValueError(
            f"DataLoader: part {position} of the items has the shapes {', '.join(map(str, sorted(shapes)))}; "
            "a batch needs equal ones (crop or pad them in the dataset, or use batch_size=1)"
        )
    return np.stack(arrays)


def _ahead(function: Callable, arguments: Sequence, count: int) -> Iterator:
    """``map(function, arguments)``, computed in a thread, up to `count` results before they are asked for.

    An error of `function` is raised where its result is asked for. The thread ends with the iterator, also
    when that is given up before its end.
    """
    waiting = iter(arguments)
    thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="DataLoader")
    try:
        results = deque(thread.submit(function, x) for x in islice(waiting, count))
        while results:
            result = results.popleft().result()
            results.extend(thread.submit(function, x) for x in islice(waiting, 1))
            yield result
    finally:
        thread.shutdown(cancel_futures=True)


def _count(name: str, value: Any, at_least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < at_least:
        raise ValueError(f"DataLoader: {name} must be a whole number of at least {at_least}, got {value!r}")
    return int(value)
