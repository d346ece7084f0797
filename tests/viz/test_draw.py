"""The computational graph as DOT text: every node, every edge, and no value computed for it."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import needle as ndl
import viz
from needle import nn
from needle.autograd import TensorOp
from needle.ops import fused_add_scalars


def test_the_example_is_drawn_node_by_node(example, parse) -> None:
    example.v4.backward()
    dot = parse(viz.draw(example.v4, names=vars(example)).source)
    v1, v2, v3, v4 = (
        "v1 (1,) leaf [0] grad [3]",
        "v2 (1,) [1] grad [3]",
        "v3 (1,) [2] grad [1]",
        "v4 (1,) output [2] grad [1]",
    )
    assert sorted(dot.labels.values()) == sorted([v1, v2, v3, v4, "exp", "+ 1", "×"])
    assert dot.pairs == sorted(
        [(v1, "exp"), ("exp", v2), (v2, "+ 1"), ("+ 1", v3), (v2, "×"), (v3, "×"), ("×", v4)]
    )


def test_there_is_an_edge_for_each_operand(parse) -> None:
    x = ndl.Tensor([2.0])
    dot = parse(viz.draw(x * x).source)
    assert [(tail, head) for tail, head, _ in dot.edges].count(("n1", "n2_op")) == 2


def test_the_order_of_operands_is_said_where_it_matters(parse) -> None:
    a, b = ndl.Tensor([[1.0]]), ndl.Tensor([[2.0]])
    ordered = parse(viz.draw(b @ a).source)
    names = {key: label.split()[0] for key, label in ordered.labels.items()}
    places = {names[tail]: look for tail, head, look in ordered.edges if names[head] == "@"}
    assert "1st" in places["b"]
    assert "2nd" in places["a"]
    assert "1st" not in viz.draw(a + b).source
    assert "1st" in viz.draw(a / b).source


@pytest.mark.parametrize(
    ("build", "sign"),
    [
        (lambda x: x + 2, "+ 2"),
        (lambda x: x - 0.5, "− 0.5"),
        (lambda x: x * 3, "× 3"),
        (lambda x: x / 4, "÷ 4"),
        (lambda x: x**2, "x²"),
        (lambda x: x**-3, "x⁻³"),
        (lambda x: x**0.5, "x^0.5"),
        (lambda x: x**x, "xʸ"),
        (lambda x: -x, "−"),
        (lambda x: ndl.relu(x), "relu"),
        (lambda x: x.sum((1,)), "Σ axes=(1,)"),
        (lambda x: x.sum(), "Σ"),
        (lambda x: x.reshape((3, 2)), "reshape (3, 2)"),
        (lambda x: x.broadcast_to((4, 2, 3)), "broadcast to (4, 2, 3)"),
        (lambda x: x.permute((1, 0)), "permute axes=(1, 0)"),
        (lambda x: ndl.logsumexp(x, (0,)), "logsumexp axes=(0,)"),
    ],
)
def test_operators_are_shown_with_their_attributes(build, sign: str, parse) -> None:
    x = ndl.Tensor(np.ones((2, 3)))
    assert parse(viz.draw(build(x)).source).labels["n2_op"] == sign


def test_an_operator_that_nobody_knows_is_drawn_from_its_class(parse) -> None:
    class Cube(TensorOp):
        def __init__(self, scale, table):
            self.scale, self.table, self._secret = scale, table, 1

        def compute(self, a):
            return a * a * a

    x = ndl.Tensor([2.0])
    assert parse(viz.draw(Cube(1.5, {"not": "shown"})(x)).source).labels["n2_op"] == "cube scale=1.5"


def test_kinds_are_told_apart_and_explained(parse) -> None:
    x = ndl.Tensor([1.0], requires_grad=False)
    w = ndl.nn.Parameter(ndl.Tensor([2.0]))
    b = ndl.Tensor([3.0])
    h = w * x + b
    source = viz.draw(h * h).source
    words = {"parameter", "constant", "leaf", "output"}
    labels = parse(source).labels.values()
    said = {
        next(iter(words & set(label.split()))): label.split()[0]
        for label in labels
        if words & set(label.split())
    }
    assert said == {"parameter": "w", "constant": "x", "leaf": "b", "output": "n6"}
    for explained in (
        "parameter: trained",
        "constant: no gradient",
        "leaf: gradients flow to it",
        "intermediate",
    ):
        assert explained in source
    assert "adjoint" not in source
    assert "parameter: trained" not in viz.draw(h, legend=False).source


def test_small_matrices_are_written_out_and_large_arrays_are_not(parse) -> None:
    small = ndl.Tensor([[1.0, 2.0], [3.0, 4.5]])
    large = ndl.Tensor(np.arange(100.0))
    dot = parse(viz.draw([small + 1, large + 1]).source)
    assert dot.labels["n1"] == "small (2, 2) leaf 1 2 3 4.5"
    assert dot.labels["n3"] == "large (100,) leaf min 0, max 99"


def test_tensors_that_a_tuple_holds(parse) -> None:
    x = ndl.Tensor([1.0])
    pair = fused_add_scalars(x, 1, 2)
    dot = parse(viz.draw(pair[0] * pair[1]).source)
    assert dot.labels["n2"] == "pair tuple of 2"
    assert {dot.labels[tail] for tail, head, _ in dot.edges if head in ("n3", "n4")} == {"[0]", "[1]"}


def test_several_outputs_share_what_they_have_in_common(parse) -> None:
    x = ndl.Tensor([1.0])
    dot = parse(viz.draw([x + 1, x * 2]).source)
    assert len([label for label in dot.labels.values() if "output" in label]) == 2
    assert len([label for label in dot.labels.values() if "leaf" in label]) == 1


def test_drawing_computes_nothing(parse) -> None:
    with ndl.lazy():
        x = ndl.Tensor([[1.0, 2.0]])
        y = ndl.exp(x)
        z = y * 2
    drawing = viz.draw(z)
    assert y.cached_data is None
    assert z.cached_data is None
    dot = parse(drawing.source)
    assert dot.labels["n2"] == "y (1, 2)"
    assert "dashed" in dot.nodes["n2"]
    assert "dashed" not in dot.nodes["n1"]
    assert "not computed yet" in drawing.source
    z.numpy()
    assert "not computed yet" not in viz.draw(z).source


def test_a_lazy_gradient_is_not_computed_either(parse) -> None:
    x = ndl.Tensor([1.0])
    y = x * x
    with ndl.lazy():
        x.grad = y * 3
    assert parse(viz.draw(y).source).labels["n1"] == "x (1,) leaf [1] grad not computed"
    assert x.grad.cached_data is None


@pytest.mark.parametrize("name", ['<b>&"', "back\\Nslash \\G \\", "変数", "é {a|b} [c] &amp;", "-->", "]]>"])
def test_any_name_is_shown_as_it_is(name: str, boxes) -> None:
    x = ndl.Tensor([1.0])
    for drawing in (viz.draw(x + 1, names={name: x}), viz.draw_gradient(x * x, names={name: x})):
        assert name in [box.name for box in boxes(drawing.svg())]


def test_a_long_name_loses_its_middle(boxes) -> None:
    x = ndl.Tensor([1.0])
    svg = viz.draw(x + 1, names={"the first of a hundred long names, number 1": x}).svg()
    assert "the first of a hund…, number 1" in [box.name for box in boxes(svg)]


@pytest.mark.slow
def test_the_same_graph_gives_the_same_text_in_any_process() -> None:
    program = (
        "import needle as ndl, viz\n"
        "x, w = ndl.Tensor([[1., 2.]]), ndl.Tensor([[3.], [4.]])\n"
        "h = ndl.tanh(x @ w); y = (h * h + h / w.sum()).sum()\n"
        "y.backward()\n"
        "print(viz.draw(y).source, viz.draw_gradient(y).source, viz.draw_gradient(x.grad).source)\n"
    )
    texts = set()
    for seed in ("0", "1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, check=True
        )
        texts.add(done.stdout)
    assert len(texts) == 1


def test_a_graph_that_is_too_large_says_what_was_left_out(parse) -> None:
    y = ndl.Tensor([1.0])
    for _ in range(20):
        y = y + 1
    drawing = viz.draw(y, limit=5)
    dot = parse(drawing.source)
    assert drawing.graph.left_out == 16
    assert dot.labels["more"].startswith("… 16 more nodes")
    assert dot.labels["more"].endswith("raise limit=5")
    assert [key for key in dot.nodes if not key.endswith("_op")] == [
        "more",
        "n17",
        "n18",
        "n19",
        "n20",
        "n21",
    ]
    assert ("more", "n17_op") in [(tail, head) for tail, head, _ in dot.edges]
    assert viz.draw(y).graph.left_out == 0


def test_the_nearest_nodes_are_kept(parse) -> None:
    near = ndl.Tensor([5.0])
    far = ndl.Tensor([1.0])
    for _ in range(10):
        far = far + 1
    shown = parse(viz.draw(far * near, limit=4).source).labels.values()
    assert any(label.startswith("near") for label in shown)
    assert any(label.startswith("far") for label in shown)


@pytest.mark.slow
def test_a_very_deep_graph() -> None:
    y = ndl.Tensor([1.0])
    for _ in range(100_000):
        y = y + 1
    assert viz.draw(y, limit=10).graph.left_out == 100_001 - 10
    drawing = viz.draw_gradient(y, limit=30)
    assert len(drawing.graph.variables) <= 31
    assert drawing.graph.left_out >= 99_980


def test_in_a_large_graph_a_value_far_away_is_named_where_it_is_used(parse) -> None:
    x = ndl.Tensor([1.0])
    total = ndl.Tensor([0.0])
    for _ in range(100):
        total = total + x * x
    dot = parse(viz.draw(total, limit=1000).source)
    mentions = [key for key in dot.nodes if "_for_" in key]
    assert mentions
    assert {dot.labels[key] for key in mentions} == {"x"}
    uses = [tail for tail, head, _ in dot.edges if dot.labels[head] == "×"]
    assert len(uses) == 200
    assert set(uses) - set(mentions) == {
        next(key for key, label in dot.labels.items() if label.startswith("x (1,)"))
    }


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: viz.draw(3), TypeError, "needs a Tensor or a list of Tensors, got int"),
        (lambda x: viz.draw([]), ValueError, "the list is empty"),
        (lambda x: viz.draw([x, None]), TypeError, "got NoneType"),
        (lambda x: viz.draw(x, limit=0), ValueError, "limit: needs a whole number of at least 1, got 0"),
        (lambda x: viz.draw(x, rankdir="UP"), ValueError, "rankdir: needs 'LR'"),
        (lambda x: viz.draw(x, rankdir=["LR"]), ValueError, r"rankdir: needs .LR.*got \[.LR.\]"),
        (lambda x: viz.draw(x, names=[x]), TypeError, "names: needs a dict"),
        (lambda x: viz.draw(x, names={"x": 1}), TypeError, "names: 'x' stands for a int, not for a Tensor"),
        (lambda x: viz.draw_gradient([x]), TypeError, "draw_gradient: needs a Tensor, got list"),
        (lambda x: viz.draw_gradient(x.detach()), RuntimeError, "does not require a gradient"),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_the_reason(call, error, words: str) -> None:
    with pytest.raises(error, match=words):
        call(ndl.Tensor([1.0]))


def test_of_a_model_its_modules_are_drawn(tmp_path) -> None:
    import matplotlib.pyplot as plt

    model = nn.Sequential(nn.Linear(2, 8), nn.Sequential(nn.ReLU(), nn.Linear(8, 1)))
    before = plt.get_fignums()
    picture = viz.draw(model)
    assert isinstance(picture, viz.Picture)
    assert picture.title == "Sequential: 33 parameters"
    assert picture.get_size_inches()[1] > viz.draw(model, depth=1).get_size_inches()[1]
    assert plt.get_fignums() == before
    assert picture.save(tmp_path / "model.svg").read_text().count("<svg") == 1


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (
            lambda model, x: viz.draw([model]),
            "draw: needs a Tensor or a list of Tensors, got Linear at place 0 of the list; draw its modules "
            "with viz.draw(model), or call it: viz.draw(model(x))",
        ),
        (
            lambda model, x: viz.draw_gradient(model),
            "draw_gradient: needs a Tensor, got Linear; draw its modules with viz.draw(model), or "
            "call it: viz.draw_gradient(model(x))",
        ),
        (
            lambda model, x: viz.draw([x, 3.0]),
            "draw: needs a Tensor or a list of Tensors, got float at place 1 of the list",
        ),
        (
            lambda model, x: viz.draw(x.realize_cached_data()),
            "draw: needs a Tensor or a list of Tensors, got NDArray; make a Tensor of it, "
            "x = ndl.Tensor(array), and give what you compute from x",
        ),
        (
            lambda model, x: viz.memory(np.ones(3)),
            "memory: needs a Tensor or a list of Tensors, got ndarray; make a Tensor of it, "
            "x = ndl.Tensor(array), and give what you compute from x",
        ),
        (
            lambda model, x: viz.draw(ndl.exp),
            "draw: needs a Tensor or a list of Tensors, got function; call it, and give the Tensor that it "
            "returns",
        ),
        (
            lambda model, x: viz.steps([x, x]),
            "steps: needs a Tensor, got list; give a single Tensor, such as the sum of these",
        ),
    ],
)
def test_what_is_no_tensor_is_told_the_way_out(draw, message) -> None:
    with pytest.raises(TypeError) as caught:
        draw(nn.Linear(2, 1), ndl.Tensor([1.0, 2.0]))
    assert str(caught.value) == message
