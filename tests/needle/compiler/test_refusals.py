"""What is refused while a function is traced, and the errors of what it computes."""

from __future__ import annotations

import functools
import itertools
import logging
import math
import os
import random
import time
import weakref
from array import array
from collections import ChainMap, Counter, UserDict, UserList, defaultdict, deque
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from io import StringIO
from queue import Queue, SimpleQueue
from threading import Event, Lock, Thread
from time import perf_counter
from types import MappingProxyType, SimpleNamespace

import numpy as np
import pytest

import needle as ndl
from needle import data, nn, optim
from needle.autograd import Tensor
from needle.compiler import CannotTrace
from needle.compiler.trace import Surroundings

from ...training import SmallTraining
from .conftest import assert_same, jit, tensor


def test_what_cannot_be_returned_is_refused():
    class Own:
        def __init__(self, x):
            self.x = x

    for f in (
        lambda x: {x},
        lambda x: Own(x),
        lambda x: iter([x]),
        lambda x: ndl.split(x, 0),
        lambda x: (i for i in [x]),
    ):
        with pytest.raises(CannotTrace, match="return Tensors and numbers"):
            jit(f)(tensor(3))


def test_an_index_out_of_range_raises_as_eager_does():
    embedding = nn.Embedding(4, 3)
    g = jit(lambda i: embedding(i))
    for _ in range(2):
        assert g(Tensor([0, 3, 1], requires_grad=False)).shape == (3, 3)
        for wrong in ([0, 4, 1], [0, -1, 1]):
            index = Tensor(wrong, requires_grad=False)
            with pytest.raises(IndexError) as ours:
                g(index)
            with pytest.raises(IndexError) as theirs:
                embedding(index)
            assert str(ours.value) == str(theirs.value)


def test_a_wrong_label_changes_nothing():
    training = SmallTraining()
    step = jit(training.step)
    step(training.x, training.y)
    before = training.numbers()
    with pytest.raises(IndexError):
        step(training.x, Tensor([0, 1, 2, 0, 1], requires_grad=False))
    for a, b in zip(training.numbers(), before, strict=True):
        np.testing.assert_array_equal(a, b)
    step(training.x, training.y)


def test_numbers_that_are_asked_for_are_refused():
    w = tensor(3)

    for ask in (
        lambda x: x.numpy(),
        lambda x: float(x.sum()),
        lambda x: x.sum().item(),
        lambda x: x if x.sum() > 0 else -x,
        lambda x: print(x),
        lambda x: f"{x.sum():.3f}",
        lambda x: np.asarray(x),
        lambda x: int(x.sum()),
        lambda x: 2 in x,
        lambda x: (x * w).numpy(),
    ):
        value = w.numpy()
        with pytest.raises(CannotTrace, match=r"numbers were asked for.*Return the Tensor"):
            jit(ask)(tensor(3))
        np.testing.assert_array_equal(w.numpy(), value)  # all is as it was


def test_what_numpy_computes_is_refused():
    for f in (
        lambda x, a: x + a.sum(),
        lambda x, a: x + np.sum(a),
        lambda x, a: x * a[0],
        lambda x, a: x + (a + 1),
        lambda x, a: x * float(a[0]),
        lambda x, a: x * np.sqrt(a),
        lambda x, a: x if a.any() else -x,
        lambda x, a: [x + number for number in a],
        lambda x, a: x * (a @ a),
        lambda x, a: x + a.astype("float64"),
    ):
        with pytest.raises(TypeError, match="make a Tensor of it"):
            jit(f)(tensor(3), np.ones(3, "float32"))


def test_what_it_changes_outside_is_refused():
    losses, box, count = [], {"n": 0}, 0

    class Config:
        n = 0

    config = Config()
    model = nn.Linear(3, 2, rng=0)

    def append(x):
        losses.append(x.sum())

    def item(x):
        box["n"] = box["n"] + 1
        return x

    def name(x):
        nonlocal count
        count += 1
        return x

    def attribute(x):
        config.n += 1
        return x

    def module(x):
        model.seen = 3
        return model(x)

    def keep(x):
        model.last = model(x)
        return model.last

    def grow(x, values):
        values.append(x)
        return x

    for f in (append, item, name, attribute, module, keep):
        with pytest.raises(CannotTrace, match=r"changes .*(losses|box|count|config|model)"):
            jit(f)(tensor(3))
    with pytest.raises(CannotTrace):
        jit(grow)(tensor(3), [])


def test_a_global_that_is_set_is_refused():
    def f(x):
        global SEEN
        SEEN = x * 2
        return SEEN

    with pytest.raises(CannotTrace):
        jit(f)(tensor(3))


def test_after_a_refusal_everything_is_as_it_was():
    training = SmallTraining(optim.Adam)
    training.step(training.x, training.y)
    training.loss_of(training.model, training.x, training.y).backward()
    before = training.numbers()
    state = training.optimizer.state_dict()
    grads = [p.grad.numpy() for p in training.model.parameters()]

    def step():
        loss = training.step(training.x, training.y)
        return loss.item()

    with pytest.raises(CannotTrace):
        jit(step)()
    for a, b in zip(training.numbers(), before, strict=True):
        np.testing.assert_array_equal(a, b)
    for p, grad in zip(training.model.parameters(), grads, strict=True):
        np.testing.assert_array_equal(p.grad.numpy(), grad)
    now = training.optimizer.state_dict()
    assert now["options"] == state["options"]
    assert now["updates"] == state["updates"]


def test_an_error_of_the_function_is_its_own():
    w = tensor(3)
    with pytest.raises(ValueError, match="matmul"):
        jit(lambda x: x @ tensor(4, 2))(tensor(3, 3))
    with pytest.raises(ZeroDivisionError):
        jit(lambda x: 1 / 0)(w)
    assert w.cached_data is not None


def test_a_printed_line_is_not_refused(capsys):
    def f(x):
        print("tracing")
        return x * 2

    g = jit(f)
    g(tensor(3))
    g(tensor(3))
    assert capsys.readouterr().out == "tracing\n"


def test_after_an_error_before_the_function_runs():
    """A Tensor that waits is computed first, and cannot be."""
    w = tensor(2)
    with ndl.lazy():
        bad = w[Tensor([7], dtype="int32", requires_grad=False)]
    for _ in range(2):
        with pytest.raises(IndexError):
            jit(lambda x: x + w + bad)(tensor(2))
        assert w.numpy().shape == (2,)


def test_arrays_that_it_replaces_are_refused():
    arrays, name, holder = [np.ones(3), np.ones(3)], np.ones(3), SimpleNamespace(array=np.ones(3))
    before = list(arrays), name, holder.array

    def clear(x):
        arrays.clear()
        return x

    def put(x):
        arrays[0] = x
        return x

    def rebind(x):
        nonlocal name
        name = x
        return x

    def attribute(x):
        holder.array = x
        return x

    for f in (clear, put, rebind, attribute):
        with pytest.raises(CannotTrace, match=r"changes (arrays\[0\]|name|holder\.array)"):
            jit(f)(tensor(3))
        now = list(arrays), name, holder.array
        assert [*map(id, now[0]), *map(id, now[1:])] == [*map(id, before[0]), *map(id, before[1:])]


def test_what_is_new_is_taken_away_again():
    class Config:
        pass

    config, numbers = Config(), {1}

    def attribute(x):
        config.new = x
        return x

    def of_class(x):
        Config.new = x
        return x

    late = None

    def unset(x):
        nonlocal late
        late = x
        return x

    del late

    def element(x):
        numbers.add(2)
        return x

    for f in (attribute, of_class, unset, element):
        with pytest.raises(CannotTrace, match=r"changes (config|Config|late|numbers)"):
            jit(f)(tensor(3))
    assert not hasattr(config, "new")
    assert numbers == {1}
    with pytest.raises(ValueError, match="empty"):
        _ = unset.__closure__[0].cell_contents


def test_options_that_it_sets_are_refused():
    training = SmallTraining()
    lr = training.optimizer.lr
    schedule = optim.StepLR(training.optimizer, 2, 0.5)

    def halve(x, y):
        loss = training.step(x, y)
        training.optimizer.lr = training.optimizer.lr * 0.5
        return loss

    def scheduled(x, y):
        loss = training.step(x, y)
        schedule.step()
        return loss

    for f in (halve, scheduled):
        with pytest.raises(CannotTrace, match="changes lr"):
            jit(f)(training.x, training.y)
    assert (training.optimizer.lr, schedule.t) == (lr, 0)


@functools.cache
def remembered(n):
    return OFFSET * n


OFFSET = 2.0


def test_functions_that_remember_results_are_refused(monkeypatch):
    class Own:
        @functools.lru_cache  # noqa: B019
        def method(self, n):
            return n

    own = Own()
    with pytest.raises(CannotTrace, match=r"call remembered\.__wrapped__"):
        jit(lambda x: x * remembered(2))(tensor(3))
    with pytest.raises(CannotTrace, match="lru_cache"):
        jit(lambda x: x * own.method(2))(tensor(3))
    assert remembered.cache_info().currsize == 0
    g = jit(lambda x: x * remembered.__wrapped__(2))  # the way out
    for offset in (2.0, 3.0):
        monkeypatch.setitem(globals(), "OFFSET", offset)
        assert g(ndl.ones(1)).numpy() == 2 * offset


def test_iterators_are_refused():
    loader = data.DataLoader(data.NDArrayDataset(np.ones((2, 3), "float32")))
    count, box = itertools.count(), [iter([1.0, 2.0])]

    for f in (
        lambda x: x * next(count),
        lambda x: x * next(box[0]),
        lambda x: sum((x * y for (y,) in loader), x),
    ):
        with pytest.raises(CannotTrace, match="does not ask it again"):
            jit(f)(tensor(3))
    assert [next(count), next(box[0]), len(list(loader))] == [0, 1.0, 2]


def test_random_numbers_of_python_are_refused():
    rng = random.Random(0)
    for f in (lambda x: x * rng.random(), lambda x: x * random.random()):
        with pytest.raises(CannotTrace, match="draws random numbers"):
            jit(f)(tensor(3))


def test_random_numbers_of_another_thread_are_no_reason_to_refuse(monkeypatch):
    looks, real = [], Surroundings.random_states

    def states(around):
        looks.append(around)
        if len(looks) == 2:  # while the function was traced
            other = Thread(target=random.random)
            other.start()
            other.join()
        return real(around)

    monkeypatch.setattr(Surroundings, "random_states", states)
    f = jit(lambda x: x * 2)
    assert f(ndl.Tensor([1.0, 2.0])).numpy().tolist() == [2, 4]
    assert len(looks) == 4
    assert f(ndl.Tensor([3.0, 4.0])).numpy().tolist() == [6, 8]
    assert len(looks) == 4  # it is compiled


def test_an_array_in_a_partial_is_refused():
    f = functools.partial(lambda a, x: x * Tensor(a), np.ones(3, "float32"))
    with pytest.raises(CannotTrace, match="give the array as an argument"):
        jit(f)(tensor(3))


@pytest.mark.parametrize(
    ("holder", "write"),
    [
        (bytearray(b"ab"), lambda holder: holder.append(1)),
        (array("d", [1.0, math.nan]), lambda holder: holder.append(1.0)),
        (deque([1.0]), lambda holder: holder.append(1.0)),
        (UserList([1.0]), lambda holder: holder.append(1.0)),
        (UserDict(k=1.0), lambda holder: holder.update(k=2.0)),
        (Counter(k=1), lambda holder: holder.update("k")),
        (defaultdict(int), lambda holder: holder["k"]),
        (ChainMap({"k": 1.0}), lambda holder: holder.update(k=2.0)),
    ],
    ids=lambda holder: type(holder).__name__,
)
def test_a_container_that_it_writes_to_is_refused(holder, write):
    def f(x):
        write(holder)
        return x

    before = repr(holder)
    with pytest.raises(CannotTrace, match="changes holder"):
        jit(f)(tensor(3))
    assert repr(holder) == before


def test_a_method_that_writes_to_a_list_is_refused():
    losses = []
    append = losses.append

    def f(x):
        append(1)
        return x

    with pytest.raises(CannotTrace, match="changes"):
        jit(f)(tensor(3))
    assert losses == []


class Own:
    k = 2.0


def test_what_gives_something_else_each_time_is_refused():
    lines, queue, simple, event = StringIO("2\n3\n"), Queue(), SimpleQueue(), Event()
    put, number, own = simple.put, ContextVar("number", default=2.0), Own()
    reference = weakref.ref(own)

    for f in (
        lambda x: x * float(lines.readline()),
        lambda x: [x * float(line) for line in lines],
        lambda x: queue.put(1) or x,
        lambda x: simple.put(1) or x,
        lambda x: put(1) or x,
        lambda x: x if event.is_set() else -x,
        lambda x: x * number.get(),
        lambda x: x * reference().k,
        lambda x: x * (time.perf_counter() % 1),
        lambda x: x * (perf_counter() % 1),
        lambda x: x * len(os.getenv("HOME", "")),
    ):
        with pytest.raises(CannotTrace, match=r"does not ask it again.*give it as an argument"):
            jit(f)(tensor(3))
    assert (lines.readline(), queue.qsize(), simple.qsize()) == ("2\n", 0, 0)
    assert isinstance(time.time(), float)  # all is as it was


def test_containers_that_cannot_be_watched_are_refused():
    own = Own()
    weak, memory = weakref.WeakValueDictionary(k=own), memoryview(bytearray(b"ab"))
    environ = os.environ

    for f in (
        lambda x: x * weak["k"].k,
        lambda x: x * memory[0],
        lambda x: x * len(memory),
        lambda x: x if "HOME" in environ else -x,
        lambda x: x * len(os.environ["HOME"]),
    ):
        with pytest.raises(CannotTrace, match=r"cannot watch what is in it.*give it as an argument"):
            jit(f)(tensor(3))
    assert weak["k"] is own


def test_an_array_in_a_mapping_proxy_is_refused():
    settings = MappingProxyType({"array": np.ones(3, "float32")})
    with pytest.raises(CannotTrace, match=r"settings\.array holds an array of NumPy's.*as an argument"):
        jit(lambda x: x * Tensor(settings["array"]))(tensor(3))


def test_what_it_names_and_does_not_use_is_not_refused(tmp_path):
    """Only the use is refused: clocks where nothing is measured, and a lock or a file that is written to."""
    lock, measured, log = Lock(), False, logging.getLogger("test")
    count = itertools.count()
    with open(tmp_path / "log.txt", "w") as file:

        def f(x):
            start = time.perf_counter() if measured else 0.0
            path = os.path.join("a", "b")
            time.sleep(0)
            with lock:
                print("traced", path, file=file)
                log.debug("traced")
            return x * (2 + start) if isinstance(count, itertools.count) else x

        g = jit(f)
        for _ in range(2):
            assert_same(g(tensor(3)), tensor(3) * 2)
    assert (tmp_path / "log.txt").read_text().count("traced") == 1


def test_other_threads_go_on_meanwhile():
    """They may ask what the function is refused."""
    event, queue, reference, lines = Event(), Queue(), weakref.ref(Own), StringIO("2\n")

    def asks():
        event.set()
        queue.put(3)
        here = isinstance(time.perf_counter(), float), reference() is Own, bool(event)
        return here, list(lines), str(event), event.is_set()

    def f(x):
        with ThreadPoolExecutor() as others:
            here, read, text, is_set = others.submit(asks).result()
        assert (here, read, is_set) == ((True, True, True), ["2\n"], True)
        assert "Event" in text
        return x

    assert_same(jit(f)(tensor(3)), tensor(3))
    assert queue.qsize() == 1


def test_an_iterator_among_the_arguments_is_refused():
    for given in (iter([2.0]), SimpleQueue(), [iter([2.0])]):
        with pytest.raises(CannotTrace, match="does not ask it again"):
            jit(lambda x, it: x * next(it[0] if isinstance(it, list) else it))(tensor(3), given)
