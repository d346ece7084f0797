"""What a Tensor keeps alive: which nodes, and the bytes of which arrays, each storage once."""

from __future__ import annotations

import numpy as np
import pytest

import needle as ndl
import viz
from needle import nn
from viz.kept import MOST_ROWS
from viz.storage import storage_of


def rows(memory) -> dict:
    return {row.name: row for row in memory.rows}


def test_a_sum_of_losses_keeps_all_that_led_to_it() -> None:
    sum_loss = ndl.Tensor([0.0])
    detached = ndl.Tensor([0.0], requires_grad=False)
    for step in range(100):
        x = ndl.Tensor([float(step)])
        loss = x * x
        sum_loss = sum_loss + loss
        detached = detached + loss.detach()
    assert viz.memory(sum_loss).nodes == 301
    assert viz.memory(sum_loss).total == 4 * 301
    assert (viz.memory(detached).nodes, viz.memory(detached).total) == (1, 4)


def test_rows_are_called_as_in_a_drawing(example) -> None:
    known = rows(viz.memory(example.v4, names=vars(example)))
    assert list(known) == ["v1", "v2", "v3", "v4"]
    assert [row.made_by for row in known.values()] == ["leaf", "exp", "+ 1", "×"]
    v1 = ndl.Tensor([1.0, 2.0])
    result = ndl.exp(v1) + v1
    assert list(rows(viz.memory(result))) == ["v1", "n2", "result"]


def test_a_storage_counts_once_and_whole() -> None:
    x = ndl.Tensor(np.ones((100, 10)))
    flat = x.reshape((1000,))
    part = flat[:10]
    alone = part.detach()
    memory = rows(viz.memory([part, alone], names={"x": x, "flat": flat, "part": part, "alone": alone}))
    assert {name: row.bytes for name, row in memory.items()} == {"x": 4000, "flat": 0, "part": 0, "alone": 0}
    assert memory["part"].note == "in the storage of x"
    only = viz.memory(alone)
    assert only.nodes == 1
    assert only.total == (4000 if ndl.backend_selection.BACKEND == "nd" else only.total)
    assert only.rows[0].note == "uses 40 B of them"


def test_parts_of_one_storage_count_once() -> None:
    with ndl.no_grad():
        parts = ndl.ops.split(ndl.Tensor(np.ones((4, 100), dtype="float32")), 0)
    memory = viz.memory(parts)
    assert (memory.total, memory.rows[0].note) == (1600, "")


def test_a_storage_counts_once_whatever_its_nodes_are_called() -> None:
    x = ndl.Tensor(np.ones(1000, dtype="float32"))
    assert viz.memory(x.reshape((10, 100)), names={"n2": x}).total == 4000


def test_gradients_count_with_what_they_keep(example) -> None:
    example.v4.backward(create_graph=False)
    constant = viz.memory(example.v4, names=vars(example))
    assert {"v1.grad", "v4.grad"} <= {row.name for row in constant.rows}
    example.v4.backward()
    assert viz.memory(example.v4, names=vars(example)).nodes > constant.nodes


def test_values_from_before_a_write_count() -> None:
    x = ndl.Tensor(np.ones(100))
    y = x * x
    before = viz.memory(y).total
    x.data = ndl.Tensor(np.zeros(100))
    memory = viz.memory(y)
    assert memory.nodes == 2
    assert memory.total == before + 400
    assert "x, before a write" in rows(memory)


def test_what_is_lazy_counts_what_it_waits_for() -> None:
    x = ndl.Tensor(np.ones(100))
    with ndl.lazy():
        y = ndl.exp(x).detach()
    assert y.cached_data is None
    memory = viz.memory(y)
    assert (memory.nodes, memory.total) == (1, 400)
    assert rows(memory)["y"].note == "not computed yet"
    assert y.cached_data is None
    y.numpy()
    assert rows(viz.memory(y))["y"].bytes == 400


def test_tuples_count_each_of_their_arrays() -> None:
    x = ndl.Tensor(np.ones((2, 3), np.float32))
    parts = ndl.ops.make_tuple(x, x * 2)
    memory = rows(viz.memory(parts, names={"x": x, "parts": parts}))
    assert sum(row.bytes for row in memory.values()) == 48
    assert memory["parts"].shape is None


def test_a_bare_number_of_numpy_has_a_storage_of_its_own() -> None:
    total = np.ones(3, np.float32).sum()
    assert not isinstance(total, np.ndarray)
    assert storage_of(total) == (total, 4)


def test_it_shows_itself_largest_first_and_in_short() -> None:
    total = ndl.Tensor([0.0])
    for _ in range(40):
        total = total + 1.0
    large = total * ndl.Tensor(np.ones(1000))
    memory = viz.memory(large)
    text = repr(memory).splitlines()
    assert text[0] == "large keeps alive: 43 nodes, 8.16 kB of arrays"
    assert text[1].split() == ["bytes", "name", "made", "by", "shape", "dtype"]
    assert text[2].split()[:2] == ["4", "kB"]
    assert len(text) == MOST_ROWS + 3
    assert text[-1].split() == ["92", "B", "…", "23", "more"]
    page = memory._repr_html_()
    assert page.count("<tr") == MOST_ROWS + 2
    assert "… 23 more" in page


def test_several_tensors_keep_alive_and_one_keeps() -> None:
    a, b = ndl.Tensor([1.0]), ndl.Tensor([2.0])
    assert repr(viz.memory([a, b])).startswith("a, b keep alive: 2 nodes, ")
    assert repr(viz.memory([a, a])).startswith("a keeps alive: 1 node, ")


def test_names_cannot_write_html() -> None:
    x = ndl.Tensor([1.0])
    assert "<script>" not in viz.memory(x, names={"<script>": x})._repr_html_()


def growth(memory):
    """Of the picture: the height of each group, bar by bar, and where the backward pass begins."""
    (ax,) = memory._figure.axes
    heights = {bars.get_label(): [bar.get_height() for bar in bars] for bars in ax.containers}
    return heights, [line.get_xdata()[0] for line in ax.lines]


def test_the_picture_grows_node_by_node_forward_and_back(example) -> None:
    example.v4.backward(create_graph=False)
    heights, begins = growth(viz.memory(example.v4, names=vars(example)))
    assert begins == [4]
    assert heights["leaves: 4 B"] == [4.0] * 8
    assert heights["exp: 4 B"] == [0.0] + [4.0] * 7
    assert heights["gradients: 16 B"] == [0.0] * 4 + [4.0, 8.0, 12.0, 16.0]


def test_the_picture_groups_what_modules_compute() -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    memory = viz.memory(model(ndl.Tensor(np.ones((16, 4)), requires_grad=False)))
    heights, begins = growth(memory)
    assert [label.partition(":")[0] for label in heights] == ["parameters", "leaves", "Linear", "ReLU"]
    assert begins == []
    unit = 1000 if memory.total >= 1000 else 1
    assert sum(bars[-1] for bars in heights.values()) == pytest.approx(memory.total / unit)


def test_many_nodes_share_a_bar() -> None:
    total = ndl.Tensor([0.0])
    for _ in range(500):
        total = total + 1.0
    (ax,) = viz.memory(total)._figure.axes
    (most,) = [stairs.get_data() for stairs in ax.patches if stairs.get_label() == "+ 1: 2 kB"]
    assert len(most.values) == 100
    assert most.values[-1] - most.baseline[-1] == pytest.approx(2.0)


@pytest.mark.slow
def test_a_hundred_thousand_nodes() -> None:
    x = ndl.Tensor([1.0])
    for _ in range(50_000):
        x = x * 1.0
    x.backward(create_graph=False)
    memory = viz.memory(x, names={})
    assert memory.nodes > 100_000


def test_only_tensors_keep_tensors() -> None:
    with pytest.raises(TypeError, match="memory: needs a Tensor or a list of Tensors, got ndarray"):
        viz.memory(np.ones(3))
