"""Data-parallel training: several processes, the workers, share each batch and learn as one.

``mpiexec -n 4 python train.py`` starts four workers. Each has the whole model, computes the gradients of its
part of a batch, and averages them with the others: then all make the same step, that of the whole batch. They
talk through MPI; install it with the extra ``mpi``. A training is shared by these lines::

    workers = ndl.parallel.Workers()
    workers.same_values(model)                       # all begin with the parameters of worker 0
    ndl.parallel.synchronise(model, workers)         # batch normalization sees the whole batch
    loader = ndl.data.DataLoader(dataset, 64, shuffle=True, workers=workers)
    for X, y in loader:                              # this worker's part of a batch
        loss = loss_fn(model(X), y)
        loss.backward(create_graph=False)
        workers.average_gradients(optimizer.params, weight=len(y))
        optimizer.step()
    if workers.rank == 0:                            # all have the same model; one of them saves it
        ndl.save("model.safetensors", model.state_dict())

If an error ends one worker, the others wait for it forever. ``mpiexec -n 4 python -m mpi4py train.py`` ends
all of them then.

In a notebook, start four engines, and begin each cell that they all shall run with ``%%px``::

    import ipyparallel
    engines = ipyparallel.Cluster(engines="mpi", n=4).start_and_connect_sync(activate=True)

    %%px
    import needle as ndl
    workers = ndl.parallel.Workers()
"""

from __future__ import annotations

import functools
import os
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import nn, ops
from .autograd import Tensor
from .backend_ndarray.blas import one_thread
from .backend_selection import array_from_numpy, device_of, to_numpy
from .graph import Spec, TensorOp
from .modes import tracing

__all__ = ["Average", "Workers", "average", "standardize", "synchronise"]


class Workers:
    """The processes that train one model together, seen from one of them.

    Methods in which workers exchange numbers must be called by all of them, in the same order: each waits
    there for the others. The workers of one machine share its processors, so each uses a part of the threads.

    If a cell of a notebook fails on one engine, the others wait: interrupt them, with the notebook's button
    or ``engines.cluster.signal_engines_sync(signal.SIGINT)``. Then make new Workers on all engines, since the
    old ones would wait for messages that never come.

    Parameters
    ----------
    communicator : mpi4py.MPI.Comm, optional
        Default: that of all processes that ``mpiexec`` started. Without ``mpiexec`` that is one.

    Attributes
    ----------
    rank : int
        The number of this worker, from 0 on. Worker 0 leads: it prints and writes files.
    size : int
        How many workers there are.
    steps : int
        How many steps of training this worker has made: calls of `average_gradients` or `average_values`.
    bytes : int
        The size of all arrays that this worker has handed over to be averaged or added up.
    seconds : float
        How long communication took so far, with the time in which this worker waited for the others.

    Raises
    ------
    ImportError
        If mpi4py, or an MPI, is missing.
    """

    def __init__(self, communicator: Any = None):
        mpi = _mpi()
        # One of our own: messages of others, or of a loop that was interrupted, do not mix with ours.
        self._communicator = (mpi.COMM_WORLD if communicator is None else communicator).Dup()
        self._here = mpi.IN_PLACE
        self.rank: int = self._communicator.Get_rank()
        self.size: int = self._communicator.Get_size()
        self.steps = 0
        self.bytes = 0
        self.seconds = 0.0
        self._buffers: dict[tuple[int, Any], np.ndarray] = {}
        on_this_machine = self._communicator.Split_type(mpi.COMM_TYPE_SHARED)
        if on_this_machine.Get_size() > 1:
            own = _processors()
            _limit_threads(_fair_share(own, on_this_machine.allgather(own)))
        on_this_machine.Free()

    def __repr__(self) -> str:
        return f"Workers(rank={self.rank}, size={self.size})"

    def __deepcopy__(self, memo: dict) -> Workers:
        """The same: a copy of a synchronised model belongs to the same workers."""
        return self

    def __reduce__(self) -> Any:
        raise TypeError(
            "Workers cannot be pickled; save the model's state_dict(), and make new Workers later"
        )

    def share(self, items: Any) -> Any:
        """This worker's part of a batch: every `size`-th item, from item `rank` on.

        If there are fewer items than workers, every worker gets all of them. So no part is ever empty, and
        the mean over all parts is still that of the batch.

        Parameters
        ----------
        items : array, list or anything else that can be sliced
        """
        return items[self.rank :: self.size] if len(items) >= self.size else items

    def same(self, value: Any) -> Any:
        """The `value` of worker 0, on every worker. It may be anything that can be pickled."""
        if self.size == 1:
            return value
        began = time.perf_counter()
        self._meet()
        value = self._communicator.bcast(value)
        self.seconds += time.perf_counter() - began
        return value

    def gather(self, value: Any) -> list:
        """The values of all workers, in order, on every worker. They may be anything that can be pickled."""
        if self.size == 1:
            return [value]
        began = time.perf_counter()
        self._meet()
        values = self._communicator.allgather(value)
        self.seconds += time.perf_counter() - began
        return values

    def sum(self, array: Any) -> np.ndarray:
        """The sum of all workers' arrays, which have the same shape and dtype, on every worker."""
        total = np.array(array)
        if self.size > 1:
            self._add_up(total)
        return total

    def average_gradients(self, params: Sequence[Tensor], weight: float) -> None:
        """Replace the gradients of parameters by their weighted means over all workers.

        A worker's gradients are those of the mean loss of its part of a batch. Weighted by the sizes of the
        parts, their mean is the gradient of the mean loss of the whole batch.

        All gradients travel in one message, after the backward pass. To send some of them during the pass
        gains little between processes of one machine, where the processors that compute the pass also copy
        and add up what is sent. Where a worker has no gradient for a parameter, it counts as 0; a parameter
        for which no worker has one keeps None.

        Parameters
        ----------
        params : list of Tensor
            The same on every worker, in the same order.
        weight : float
            How much this worker counts: the number of targets in its part.

        Raises
        ------
        ValueError
            If all weights are 0, or if a function is being compiled.
        """
        self.steps += 1
        if self.size == 1:
            return
        _not_compiled("average_gradients")
        means = self._means([None if p.grad is None else p.grad.numpy() for p in params], params, weight)
        for p, mean in zip(params, means, strict=True):
            p.grad = None if mean is None else _constant(mean, p)

    def average_values(self, tensors: Sequence[Tensor], weight: float = 1.0) -> None:
        """Replace the values of Tensors by their weighted means over all workers; see `average_gradients`."""
        self.steps += 1
        if self.size > 1:
            _not_compiled("average_values")
            self._average(tensors, weight)

    def same_values(self, model: nn.Module) -> None:
        """Give the parameters and buffers of a model the values that worker 0 has."""
        if self.size > 1:
            model.load_state_dict(self.same({name: x.numpy() for name, x in model.state_dict().items()}))

    def average_buffers(self, model: nn.Module) -> None:
        """Replace the buffers of a model, such as running means, by their means over all workers.

        Each worker has seen other items. After this call all have the same model again.
        """
        buffers = [x for _, x in model.named_buffers() if x.dtype.kind == "f"]
        if buffers and self.size > 1:
            self._average(buffers, 1.0)

    def counters(self) -> np.ndarray:
        """`steps`, `bytes` and `seconds` so far. The difference of two says what happened in between."""
        return np.array([self.steps, self.bytes, self.seconds])

    def all_end(self, seconds: float) -> bool | None:
        """Whether all workers end, each by itself.

        Returns
        -------
        bool or None
            True if all call this within some seconds. False if an exchange of theirs was interrupted, so that
            MPI could not end: then somebody has to `abort`. None if not all have called it.
        """
        unfinished = np.array(len(_unfinished))
        request = self._communicator.Iallreduce(self._here, unfinished)
        end = time.monotonic() + seconds
        while not request.Test():
            if time.monotonic() > end:
                _unfinished.append((request, unfinished))
                return None
            time.sleep(0.01)
        return not unfinished

    def abort(self, code: int = 1) -> None:
        """End all workers at once, wherever they are."""
        sys.stdout.flush()
        sys.stderr.flush()
        self._communicator.Abort(code)

    def _average(self, tensors: Sequence[Tensor], weight: float) -> None:
        means = self._means([x.numpy() for x in tensors], tensors, weight)
        for x, mean in zip(tensors, means, strict=True):
            x.data = _constant(mean, x)

    def _means(self, arrays: list[Any], like: Sequence[Tensor], weight: float) -> list[Any]:
        """Weighted means of arrays; None stands for zeros, and comes back if every worker has None.

        The message is one flat array that is kept from step to step: the arrays one after the other, times
        the weight; then for each of them a 1 if it is there; then the weight.
        """
        sizes = [x.size for x in like]
        flat = self._buffer(sum(sizes) + len(sizes) + 1, np.result_type(*[x.dtype for x in like], np.float32))
        ends = np.cumsum(sizes)
        parts = [flat[end - size : end] for end, size in zip(ends, sizes, strict=True)]
        there = flat[sum(sizes) : -1]
        for i, (part, array) in enumerate(zip(parts, arrays, strict=True)):
            there[i] = array is not None
            np.multiply(0 if array is None else array.reshape(-1), weight, out=part)
        flat[-1] = weight
        self._add_up(flat)
        if flat[-1] == 0:
            raise ValueError(
                "the workers' weights add up to 0, so there is no mean; weigh by numbers of items"
            )
        return [
            part.reshape(x.shape) / flat[-1] if anywhere else None
            for part, x, anywhere in zip(parts, like, there, strict=True)
        ]

    def _buffer(self, size: int, dtype: Any) -> np.ndarray:
        key = size, np.dtype(dtype)
        if key not in self._buffers:
            self._buffers[key] = np.empty(size, dtype)
        return self._buffers[key]

    def _add_up(self, array: np.ndarray) -> None:
        """Replace an array by the sum over all workers."""
        began = time.perf_counter()
        _wait(self._communicator.Iallreduce(self._here, array), array)
        self.bytes += array.nbytes
        self.seconds += time.perf_counter() - began

    def _meet(self) -> None:
        """Wait until all workers are here: what MPI does next cannot be interrupted, but ends at once."""
        _wait(self._communicator.Ibarrier())


def _wait(request: Any, array: np.ndarray | None = None) -> None:
    """Wait until the workers have done together what was begun, such as the sum of an array.

    MPI would wait here without giving Python a chance. We ask again and again instead, and let others use
    the processor in between: so Ctrl-C works, and more workers than processors do not block one another.
    """
    try:
        while not request.Test():
            _yield()
    except BaseException:
        _unfinished.append((request, array))
        raise


_yield = getattr(os, "sched_yield", lambda: time.sleep(0))  # Windows has only the latter

# What was interrupted. MPI may still write into these arrays, so they are kept.
_unfinished: list[tuple[Any, np.ndarray | None]] = []


def _mpi() -> Any:
    """The module mpi4py.MPI. Importing it starts MPI."""
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise ImportError(
            f"Workers: needs mpi4py and an MPI, but {error}; install both with "
            "pip install 'needle-notebooks[mpi]' (in a checkout: pip install -e '.[mpi]')"
        ) from None
    return MPI


def _processors() -> set[int]:
    """The processors of this machine on which this process may run."""
    if hasattr(os, "sched_getaffinity"):
        return set(os.sched_getaffinity(0))
    return set(range(os.cpu_count() or 1))


def _fair_share(own: set[int], everybody: list[set[int]]) -> int:
    """How many threads a worker may use, where its processors are its own, and where all have the same."""
    return max(min(len(own), len(set().union(*everybody)) // len(everybody)), 1)


def _limit_threads(threads: int) -> None:
    """Let Numba and BLAS use so many threads, or fewer if they use fewer already."""
    if "numba" in sys.modules:
        numba = sys.modules["numba"]
        numba.set_num_threads(min(threads, numba.get_num_threads()))
    else:
        wanted = int(os.environ.get("NUMBA_NUM_THREADS") or threads)
        os.environ["NUMBA_NUM_THREADS"] = str(min(threads, wanted))
    if one_thread.limit is not None:
        one_thread.limit(min(threads, one_thread.count()))


def _not_compiled(name: str) -> None:
    if tracing():
        raise ValueError(f"{name}: a compiled function cannot wait for other workers; run it without jit")


def _constant(array: np.ndarray, like: Tensor) -> Tensor:
    return Tensor(array, device=like.device, dtype=like.dtype, requires_grad=False)


# An operator over workers, and what batch normalization makes of it.


class Average(TensorOp):
    """The weighted mean of a Tensor over all workers; each worker gets it, and gives its own weight.

    With weights w_k that sum to 1, y = Σ_k w_k x_k on every worker. The gradient is the same weighted mean of
    the gradients. To see why, mind what a worker's backward pass computes. The loss of the batch is
    L = Σ_j w_j L_j, where L_j is the mean loss of part j. Worker j begins its pass with 1 at L_j, though the
    derivative of L with respect to L_j is w_j. So each adjoint g that it finds is 1 / w_j of the derivative
    of L: `Workers.average_gradients` multiplies by w_j and adds. Now x_k reaches all L_j, through y:

        dL/dx_k = Σ_j (dL/dy_j) w_k = Σ_j w_j g_j w_k

    What worker k needs is 1 / w_k of that: Σ_j w_j g_j.

    Parameters
    ----------
    workers : Workers
    weight : float
        How much this worker counts. It is in proportion to the weight of its loss.
    """

    def __init__(self, workers: Workers, weight: float):
        self.workers = workers
        self.weight = weight

    def infer(self, a):
        _not_compiled("average")
        return Spec(a.shape, a.dtype, a.device)

    def compute(self, a):
        if self.workers.size == 1:
            return a
        flat = self.workers._buffer(int(np.prod(a.shape)) + 1, a.dtype)
        np.multiply(to_numpy(a).reshape(-1), self.weight, out=flat[:-1])
        flat[-1] = self.weight
        self.workers._add_up(flat)
        mean = (flat[:-1] / flat[-1]).reshape(a.shape)
        return array_from_numpy(mean, dtype=a.dtype, device=device_of(a))

    def gradient(self, out_grad, node):
        return average(out_grad, self.workers, self.weight)


def average(a: Tensor, workers: Workers, weight: float) -> Tensor:
    """The weighted mean of `a` over all workers, as an operator with a gradient; see `Average`.

    It is computed at once, in lazy mode, too: the workers meet where the program says so, even if only one
    of them looks at the result.

    Raises
    ------
    ValueError
        If `a` does not hold floats, or if a function is being compiled.
    """
    if a.dtype.kind != "f":
        raise ValueError(f"average: needs floats, got {a.dtype}; use .astype('float32')")
    mean = Average(workers, weight)(a)
    mean.realize_cached_data()
    return mean


def standardize(a: Tensor, axes: tuple[int, ...], eps: float, workers: Workers):
    """`needle.ops.standardize` with the mean and the variance of all workers' numbers.

    The mean is an average over workers, and so is the variance, the mean of squared distances from it.
    """
    shape = [1 if axis in axes else n for axis, n in enumerate(a.shape)]
    count = int(np.prod([a.shape[axis] for axis in axes]))
    mean = average(a.mean(axes).reshape(shape), workers, count)
    centred = a - mean
    variance = average((centred * centred).mean(axes).reshape(shape), workers, count)
    return ops.make_tuple(centred / (variance + eps) ** 0.5, mean, variance)


def synchronise(model: nn.Module, workers: Workers) -> nn.Module:
    """Let batch normalization use the mean and the variance of the whole batch, not of a worker's part.

    Then the workers learn what one would learn from the whole batch. It costs four small messages a layer.

    Returns
    -------
    Module
        The same model. With one worker nothing changes.
    """
    for _, module in model.named_modules():
        if isinstance(module, nn.BatchNorm1d) and workers.size > 1:
            module._standardize = functools.partial(standardize, workers=workers)
    return model
