"""`Dataset`, numbered items to learn from, and `DataLoader`, which goes through them in batches."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from ..autograd import Tensor, check_device
from ..backend_ndarray.device import generator

__all__ = ["DataLoader", "Dataset"]


class Dataset:
    """Items to learn from, numbered from 0.

    Write a subclass with two methods: ``__len__``, and ``__getitem__``, which takes a number and returns that
    item: an array (or number), or a tuple of them, such as an image and its label. All items have the same
    shapes.

    Parameters
    ----------
    transforms : list of Transform, optional
        `apply_transforms` applies them, one after the other.
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
        """Change `x` by each transform in turn."""
        for transform in self.transforms or ():
            x = transform(x)
        return x

    def __init_subclass__(cls, **kwargs: Any):
        super().__init_subclass__(**kwargs)
        if "__getitem__" in vars(cls) and "take" not in vars(cls):
            # The parent's `take` would go past the new items, so take them one by one again.
            cls.take = Dataset.take  # type: ignore[method-assign]

    def take(self, indices: np.ndarray) -> Sequence[np.ndarray]:
        """Take several items: one array for each part of an item, with the items along its first axis.

        This takes one item after the other. Override it where many can be taken at once.
        """
        return stacked([self[int(i)] for i in indices])


class DataLoader:
    """Goes through a dataset in batches: ``for images, labels in DataLoader(dataset, batch_size=32): …``.

    A batch is a tuple of Tensors, one for each part of an item; their first axis counts the items. Each
    ``for`` goes through the whole dataset and shuffles it anew. ``next(loader)`` gives the next batch of the
    pass that ``iter(loader)`` began last.

    Parameters
    ----------
    dataset : Dataset
        Anything with ``len(dataset)`` and ``dataset[i]`` will do.
    batch_size : int
        How many items make a batch. The last batch gets what is left.
    shuffle : bool
        Whether the items come in a random order, one ``permutation(len(dataset))`` each time.
    drop_last : bool
        Whether to leave out a last batch that has fewer items.
    rng : numpy.random.Generator or int, optional
        Decides the order; an int is the seed of a generator. Default: NumPy's global state.
    prefetch : int
        How many batches a thread prepares while you use the one before; 0 means no thread. The batches are
        the same. But transforms that draw from NumPy's global state draw earlier then, in between your own
        draws: give them an ``rng`` of their own if results should be repeatable.
    device : Device, optional
        Where the batches live. Default: `default_device()`.
    dtype : dtype or str, optional
        Default: float32 (under ``NEEDLE_BACKEND=np``: that of the dataset's arrays).
    workers : needle.parallel.Workers, optional
        The processes that share each batch: each of them gets its part. They go through the data in the same
        order, which worker 0 draws.

    Raises
    ------
    ValueError
        If the dataset is empty, if `drop_last` leaves no batch, or if a size makes no sense.
    """

    _batches: Iterator[tuple[Tensor, ...]] | None = None  # of the pass that began last

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
        workers: Any = None,
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
        self.workers = workers
        if not len(dataset):
            raise ValueError("DataLoader: the dataset is empty; it needs at least one item")
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

    @property
    def sizes(self) -> list[int]:
        """How many items each batch has, of all workers together."""
        starts = range(0, len(self) * self.batch_size, self.batch_size)
        return [min(self.batch_size, len(self.dataset) - start) for start in starts]

    def __iter__(self) -> Iterator[tuple[Tensor, ...]]:
        # The whole order is drawn here, before anybody asks for the first batch.
        n = len(self.dataset)
        order = np.arange(n)
        if self.shuffle and (self.workers is None or self.workers.rank == 0):
            order = (self.rng or np.random).permutation(n)
        if self.shuffle and self.workers is not None:
            order = self.workers.same(order)
        starts = range(0, len(self) * self.batch_size, self.batch_size)
        parts = [order[start : start + self.batch_size] for start in starts]
        if self.workers is not None:
            parts = [self.workers.share(part) for part in parts]
        take = partial(_take, self.dataset)
        arrays = _ahead(take, parts, self.prefetch) if self.prefetch else map(take, parts)
        # It knows nothing of this loader: a pass that is given up ends at once, with its thread.
        self._batches = map(partial(_tensors, device=self.device, dtype=self.dtype), arrays)
        return self._batches

    def __next__(self) -> tuple[Tensor, ...]:
        if self._batches is None:
            raise TypeError("DataLoader: next(loader) goes on with a pass; begin one with iter(loader) first")
        return next(self._batches)


def _take(dataset: Any, indices: np.ndarray) -> Sequence[np.ndarray]:
    if isinstance(dataset, Dataset):
        return dataset.take(indices)
    return stacked([dataset[int(i)] for i in indices])


def _tensors(arrays: Sequence[np.ndarray], device: Any, dtype: Any) -> tuple[Tensor, ...]:
    return tuple([Tensor(array, device=device, dtype=dtype, requires_grad=False) for array in arrays])


def owned(part: Any) -> Any:
    """Copy a part of an item if it shares memory with its dataset, so that it can be changed."""
    return part.copy() if isinstance(part, np.ndarray) and not part.flags.owndata else part


def stacked(items: Sequence[Any]) -> tuple[np.ndarray, ...]:
    """Stack items: one array for each of their parts, with the items along its first axis.

    Raises
    ------
    ValueError
        If the items have different numbers of parts, or parts of different shapes.
    """
    if not isinstance(items[0], (tuple, list)):
        items = [(item,) for item in items]
    if len({len(item) for item in items}) > 1:
        raise ValueError(
            f"DataLoader: items have {sorted({len(item) for item in items})} parts; all need the same number"
        )
    return tuple([_stack(i, part) for i, part in enumerate(zip(*items, strict=True))])


def _stack(position: int, parts: Sequence[Any]) -> np.ndarray:
    arrays = [part.numpy() if isinstance(part, Tensor) else np.asarray(part) for part in parts]
    shapes = {array.shape for array in arrays}
    if len(shapes) > 1:
        raise ValueError(
            f"DataLoader: part {position} of the items has the shapes {', '.join(map(str, sorted(shapes)))}; "
            "a batch needs equal shapes (crop or pad them in the dataset, or use batch_size=1)"
        )
    return np.stack(arrays)


def _ahead(function: Callable, arguments: Sequence, count: int) -> Iterator:
    """``map(function, arguments)`` in a thread, which computes up to `count` results ahead.

    An error of `function` is raised when you ask for its result. The thread ends when the iterator does, even
    if you give it up halfway.
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
