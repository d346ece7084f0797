"""The gradient graph as data and as DOT text: what `autograd.adjoints` finds, and how it hangs together."""

from __future__ import annotations

import re

import numpy as np
import pytest

import needle as ndl
import viz
from needle import nn
from needle.ops import fused_add_scalars


def by_name(drawing: viz.Drawing) -> dict[str, object]:
    return {variable.name: variable for variable in drawing.graph.variables if variable.name}


def value(drawing: viz.Drawing, name: str) -> str:
    return by_name(drawing)[name].value[0][0]


def operands(drawing: viz.Drawing, name: str) -> list[tuple[str, str]]:
    """The names of a variable's operands, with what is written at their edges."""
    names = {variable.key: variable.name for variable in drawing.graph.variables}
    return [(names[operand.key], operand.label) for operand in by_name(drawing)[name].operator.operands]


def test_the_example_has_all_its_adjoints(example) -> None:
    example.v4.backward()
    drawing = viz.draw_gradient(example.v4, names=vars(example))
    assert value(drawing, "adjoint of v4") == "[1]"
    assert value(drawing, "adjoint of v3") == "[1]"
    assert value(drawing, "of v2 via v4") == "[2]"
    assert value(drawing, "adjoint of v2") == "[3]"
    assert value(drawing, "adjoint of v1") == "[3]"
    notes = {name: variable.note for name, variable in by_name(drawing).items()}
    assert notes["adjoint of v4"] == "seed"
    assert notes["adjoint of v2"] == "sum"
    assert notes["of v2 via v4"] == "partial"
    assert notes["adjoint of v1"] == "= v1.grad"
    # Values of the forward graph are used again, and the sum takes the adjoint of v3 as it is.
    assert operands(drawing, "adjoint of v3") == [("adjoint of v4", ""), ("v2", "")]
    assert operands(drawing, "of v2 via v4") == [("adjoint of v4", ""), ("v3", "")]
    assert sorted(operands(drawing, "adjoint of v2")) == [("adjoint of v3", "via v3"), ("of v2 via v4", "")]
    assert operands(drawing, "adjoint of v1") == [("adjoint of v2", ""), ("v2", "")]
    assert len(drawing.graph.variables) == 9


def test_boxes_with_nothing_to_say_are_empty() -> None:
    x, y = ndl.Tensor([1.0, 2.0]), ndl.Tensor([3.0, 4.0])
    drawing = viz.draw_gradient((x * y + x * 2 + x).sum(), show=[])
    assert 'label=""' in drawing.source
    assert not re.search("<table[^>]*></table>", drawing.source)  # Graphviz takes no table without rows
    assert "<svg" in drawing.svg()


def test_every_variable_shares_a_column_with_its_adjoint(example) -> None:
    drawing = viz.draw_gradient(example.v4, names=vars(example))
    keys = {name: variable.key for name, variable in by_name(drawing).items()}
    columns = {frozenset(column) for column in drawing.graph.columns}
    assert columns == {frozenset({keys[f"v{i}"], keys[f"adjoint of v{i}"]}) for i in range(1, 5)}


def test_values_used_again_are_dashed_edges_between_the_rows(example, parse) -> None:
    dot = parse(viz.draw_gradient(example.v4, names=vars(example)).source)
    between = [(dot.labels[tail], dot.labels[head]) for tail, head, look in dot.edges if "dashed" in look]
    assert between == [("v2 (1,) [1]", "×"), ("v3 (1,) [2]", "×"), ("v2 (1,) [1]", "×")]
    assert len(dot.edges) == 7 + 12  # one for each result, one for each operand


def test_a_sum_of_equal_uses_takes_the_same_adjoint_twice() -> None:
    a = ndl.Tensor([1.0])
    b = a + a
    c = b + b
    drawing = viz.draw_gradient(c)
    assert operands(drawing, "adjoint of b") == [
        ("adjoint of c", "via c, 1st"),
        ("adjoint of c", "via c, 2nd"),
    ]
    assert operands(drawing, "adjoint of a") == [
        ("adjoint of b", "via b, 1st"),
        ("adjoint of b", "via b, 2nd"),
    ]
    assert value(drawing, "adjoint of a") == "[4]"


def test_two_uses_by_one_consumer_are_told_apart() -> None:
    x = ndl.Tensor([3.0])
    y = x * x
    drawing = viz.draw_gradient(y)
    assert operands(drawing, "adjoint of x") == [("of x via y, 1st", ""), ("of x via y, 2nd", "")]


def test_an_adjoint_passed_on_unchanged_is_shown_as_such() -> None:
    a, b = ndl.Tensor([1.0]), ndl.Tensor([2.0])
    s = a + b
    y = ndl.exp(s)
    drawing = viz.draw_gradient(y)
    for name in ("adjoint of a", "adjoint of b"):
        assert by_name(drawing)[name].operator.symbol == "="
        assert operands(drawing, name) == [("adjoint of s", "")]
    assert "passed on unchanged" in drawing.source
    compared = viz.draw_gradient(ndl.ops.max(ndl.Tensor([1.0, 2.0]), axes=0))
    assert "==" in [x.operator.symbol for x in compared.graph.variables if x.operator]
    assert "passed on unchanged" not in compared.source


def test_broadcasting_shows_its_summation() -> None:
    x = ndl.Tensor(np.ones((4, 3)))
    bias = ndl.Tensor(np.zeros((1, 3)))
    y = (x + bias) * 2
    symbols = [v.operator.symbol for v in viz.draw_gradient(y, bias).graph.variables if v.operator]
    assert "Σ axes=(0,)" in symbols


def test_wrt_keeps_what_leads_to_it() -> None:
    a, b = ndl.Tensor([2.0]), ndl.Tensor([3.0])
    c = ndl.exp(a)
    y = c * ndl.log(b)
    everything = set(by_name(viz.draw_gradient(y)))
    only_b = set(by_name(viz.draw_gradient(y, wrt=b)))
    assert {"adjoint of a", "adjoint of b", "adjoint of c"} <= everything
    assert "adjoint of b" in only_b
    assert not {"adjoint of a", "adjoint of c"} & only_b
    assert {"a", "b", "c", "y"} <= only_b
    assert "adjoint of c" in set(by_name(viz.draw_gradient(y, wrt=[b, c])))


def test_wrt_that_does_not_lead_there_is_refused() -> None:
    a, stranger = ndl.Tensor([2.0]), ndl.Tensor([3.0])
    constant = ndl.Tensor([3.0], requires_grad=False)
    with pytest.raises(ValueError, match="stranger does not lead to the output"):
        viz.draw_gradient(a * constant, wrt=stranger)
    with pytest.raises(ValueError, match="constant does not require a gradient"):
        viz.draw_gradient(a * constant, wrt=[a, constant])


def test_another_seed() -> None:
    x = ndl.Tensor([1.0, 2.0])
    y = x * 3
    drawing = viz.draw_gradient(y, out_grad=ndl.Tensor([10.0, 100.0]))
    assert value(drawing, "adjoint of y") == "[10 100]"
    assert value(drawing, "adjoint of x") == "[30 300]"


def test_gradients_stay_as_they_were(example) -> None:
    viz.draw_gradient(example.v4)
    assert [tensor.grad for tensor in vars(example).values()] == [None] * 4
    example.v4.backward()
    before = [tensor.grad for tensor in vars(example).values()]
    viz.draw_gradient(example.v1.grad)
    assert [tensor.grad for tensor in vars(example).values()] == before
    assert [tensor.grad for tensor in before] == [None] * 4


def test_the_gradient_of_a_gradient(example) -> None:
    example.v4.backward()
    drawing = viz.draw_gradient(example.v1.grad, names=vars(example))
    assert value(drawing, "v1.grad") == "[3]"
    assert value(drawing, "adjoint of v1") == "[5]"
    rows = {name: variable.row for name, variable in by_name(drawing).items()}
    assert [rows[name] for name in ("v1", "v1.grad", "adjoint of v1.grad", "adjoint of v1")] == [0, 1, 2, 3]
    assert [rows[name] for name in ("v2", "v2.grad", "adjoint of v2.grad", "adjoint of v2")] == [0, 1, 2, 3]
    assert by_name(drawing)["v4.grad"].kind == "seed"
    keys = {name: variable.key for name, variable in by_name(drawing).items()}
    column = {keys[name] for name in ("v2", "v2.grad", "adjoint of v2.grad", "adjoint of v2")}
    assert column in [set(column) for column in drawing.graph.columns]


def test_a_gradient_by_itself_is_drawn_below_what_it_is_the_gradient_of(example) -> None:
    example.v4.backward()
    drawing = viz.draw(example.v1.grad, names=vars(example))
    rows = {name: variable.row for name, variable in by_name(drawing).items()}
    assert (rows["v1"], rows["v2.grad"], rows["v1.grad"], rows["v4.grad"]) == (0, 1, 1, 1)


def test_a_constant_gradient_is_a_constant() -> None:
    w = ndl.Tensor([2.0])
    (w * w).sum().backward(create_graph=False)
    step = w * w.grad
    kinds = {name: (variable.kind, variable.row) for name, variable in by_name(viz.draw(step)).items()}
    assert kinds["w.grad"] == ("constant", 0)
    assert kinds["step"] == ("output", 0)


def test_values_agree_with_backward_in_a_network() -> None:
    rng = np.random.default_rng(0)
    model = nn.Sequential(nn.Linear(2, 3, rng=rng), nn.Tanh(), nn.Linear(3, 2, rng=rng))
    x = ndl.Tensor(rng.normal(size=(4, 2)), requires_grad=False)
    y = ndl.Tensor([0, 1, 1, 0], requires_grad=False)
    loss = nn.SoftmaxLoss()(model(x), y)
    loss.backward()
    names = dict(model.named_parameters())
    drawing = viz.draw_gradient(loss, names={**names, "loss": loss})
    for name, parameter in names.items():
        [adjoint] = [v for v in drawing.graph.variables if v.name == f"adjoint of {name}"]
        assert adjoint.value == viz.text.rows_of(parameter.grad.numpy())
        assert adjoint.note.endswith(f"= {name}.grad")


def test_a_grad_is_named_only_where_it_is_this_adjoint() -> None:
    x = ndl.Tensor([3.0])
    square, cube = x * x, x**3
    names = {"x": x}

    def note():
        return by_name(viz.draw_gradient(square, names=names))["adjoint of x"].note

    assert note() == "sum"
    cube.backward()
    assert note() == "sum"
    square.backward()
    assert note() == "sum = x.grad"


def test_nothing_hangs_in_the_air() -> None:
    rng = np.random.default_rng(0)
    model = nn.Sequential(nn.Linear(2, 3, rng=rng), nn.ReLU(), nn.Linear(3, 2, rng=rng))
    x = ndl.Tensor(rng.normal(size=(4, 2)), requires_grad=False)
    loss = nn.SoftmaxLoss()(model(x), ndl.Tensor([0, 1, 1, 0], requires_grad=False))
    drawing = viz.draw_gradient(loss)
    used = {operand.key for v in drawing.graph.variables for operand in v.operands}
    ends = {v.name for v in drawing.graph.variables if v.row and v.key not in used}
    parameters = [name for name, _ in model.named_parameters()]
    assert ends == {f"adjoint of {name}" for name in parameters}
    beginnings = [v.kind for v in drawing.graph.variables if v.row and v.operator is None]
    assert beginnings == ["seed"]


def test_a_lazy_output_stays_lazy() -> None:
    with ndl.lazy():
        x = ndl.Tensor([1.0, 2.0])
        y = ndl.exp(x) * x
    drawing = viz.draw_gradient(y)
    assert y.cached_data is None
    adjoint = by_name(drawing)["adjoint of x"]
    assert not adjoint.computed
    assert adjoint.value == ()
    assert adjoint.facts == "(2,)"


def test_it_is_drawn_under_no_grad_too(example) -> None:
    with ndl.no_grad():
        drawing = viz.draw_gradient(example.v4, names=vars(example))
    assert drawing.source == viz.draw_gradient(example.v4, names=vars(example)).source


def test_adjoints_of_a_tuple() -> None:
    x = ndl.Tensor([1.0])
    pair = fused_add_scalars(x, 1, 2)
    first, second = pair
    drawing = viz.draw_gradient(first * second)
    assert by_name(drawing)["adjoint of pair"].facts == "tuple of 2"
    assert value(drawing, "adjoint of x") == "[5]"


def test_a_large_gradient_graph_keeps_the_limit() -> None:
    x = ndl.Tensor([1.0])
    total = ndl.Tensor([0.0])
    for _ in range(100):
        total = total + x * x
    drawing = viz.draw_gradient(total, limit=100)
    assert len(drawing.graph.variables) <= 101
    assert drawing.graph.variables[0].name == f"… {drawing.graph.left_out:,} more nodes"
