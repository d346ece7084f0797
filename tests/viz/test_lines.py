"""Which line of a program made a node."""

from __future__ import annotations

import inspect
import linecache
import pickle

import numpy as np
import pytest

import needle as ndl
import viz
from needle import modes, nn
from viz.lines import line_of
from viz.text import table_of


def text_of(node: ndl.Tensor) -> str:
    line = line_of(node)
    assert line is not None
    assert line.file == "test_lines.py"
    assert line.text == inspect.getsource(inspect.getmodule(text_of)).splitlines()[line.number - 1].strip()
    return line.text


class Double(ndl.autograd.TensorOp):
    def compute(self, a):
        return a * 2

    def gradient(self, out_grad, node):
        return out_grad * 2


@pytest.mark.parametrize("lazy", [False, True])
def test_the_line_that_calls_an_operator(lazy) -> None:
    a = ndl.Tensor([[1.0, 2.0]])
    with ndl.lazy(lazy):
        nodes = [
            a + 1,
            a.exp(),
            ndl.logsumexp(a, axes=(1,)),
            Double()(a),
            a[0],
        ]
    lines = ["a + 1,", "a.exp(),", "ndl.logsumexp(a, axes=(1,)),", "Double()(a),", "a[0],"]
    assert [text_of(node) for node in nodes] == lines
    assert text_of(a) == "a = ndl.Tensor([[1.0, 2.0]])"


def test_of_a_module_it_is_the_line_outside_of_the_package() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    y = model(ndl.Tensor([[1.0, 2.0]]))
    assert text_of(y) == text_of(y.inputs[0]) == "y = model(ndl.Tensor([[1.0, 2.0]]))"
    assert text_of(model[0].weight) == "model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())"


def test_a_gradient_has_the_line_whose_gradient_it_is() -> None:
    x = ndl.Tensor([1.0])
    y = x + 1
    z = y.exp()
    graph = viz.draw_gradient(z).graph
    lines = {x.name: x.line.text for x in graph.variables if x.line}
    assert lines["adjoint of y"] == "z = y.exp()"
    assert lines["adjoint of x"] == "y = x + 1"
    assert "adjoint of z" not in lines  # nobody wrote the seed


def test_a_cell_and_a_program_without_source() -> None:
    cell = "x = ndl.Tensor([1.0])\ny = x + 1\n"
    linecache.cache["<cell 7>"] = (len(cell), None, cell.splitlines(True), "<cell 7>")
    space = {"ndl": ndl}
    exec(compile(cell, "<cell 7>", "exec"), space)
    assert line_of(space["y"]) == ("<cell 7>", 2, "y = x + 1")
    exec("y = x + 1", space)
    assert line_of(space["y"]) == ("<string>", 1, "")


def test_a_node_that_no_program_made_has_no_line() -> None:
    a = ndl.Tensor([1.0])
    a.line = modes.line_of_user(10_000)  # there are not so many frames
    assert line_of(a) is None


def test_a_node_with_a_line_can_be_copied() -> None:
    x = ndl.Tensor([1.0])
    assert pickle.loads(pickle.dumps(x)).numpy() == 1
    assert pickle.loads(pickle.dumps(nn.Linear(2, 2).weight)).shape == (2, 2)


def test_a_table_of_numbers() -> None:
    assert table_of(np.array(-1.5)) == (("−1.5",),)
    assert table_of(np.array([1.0, 1e-8], "float32")) == (("1", "10⁻⁸"),)
    assert table_of(np.array([[True, False]])) == (("True", "False"),)
    assert table_of(np.zeros((2, 0, 3))) == ()
    assert table_of(np.arange(8.0).reshape(2, 2, 2)) == (("0", "1"), ("2", "3"))
    large = table_of(np.zeros((13, 13)))
    assert len(large) == len(large[0]) == 13
    assert set(large[-1]) == {"…"} == {row[-1] for row in large}
