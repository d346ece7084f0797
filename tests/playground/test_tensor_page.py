"""The page about memory: its strides against NumPy's, and what it says of other shapes and views."""

from __future__ import annotations

import numpy as np
import pytest

from playground.language.expression import ExpressionError
from playground.pages import tensor

from .apps import address_of, refused, run, said, shown, start, takes_any_text

IN_NUMPY = {
    "broadcast_to(a[0:1], 3, 4)": lambda a: np.broadcast_to(a[0:1], (3, 4)),
    "a.permute(1, 0)[1:3]": lambda a: a.transpose(1, 0)[1:3],
}


@pytest.mark.parametrize("view", tensor.VIEWS.values())
def test_every_view_reads_what_numpy_reads(view):
    a = np.arange(10, 22, dtype="float32").reshape(3, 4)
    expected = IN_NUMPY[view](a) if view in IN_NUMPY else eval(view, {"a": a})
    layout = tensor.layout_of((3, 4), view)
    assert layout.shape == expected.shape
    for index in np.ndindex(*layout.shape):
        position = layout.offset + sum(i * stride for i, stride in zip(index, layout.strides, strict=True))
        assert layout.storage[position] == expected[index]
    assert layout.uses.sum() == expected.size
    if layout.is_view:
        assert layout.strides == tuple(stride // 4 for stride in expected.strides)
        assert layout.uses.size == 12
    assert layout.is_view == (view not in ("a + 100", "a.T.reshape(2, 6)"))


@pytest.mark.parametrize(
    "given", ["", "a", "3,,4", "0", "-1, 4", "61", "1,1,1,1,1", "3.5", "9" * 6000, "(3; 4)"]
)
def test_a_shape_that_is_not_possible_is_refused(given):
    with pytest.raises(ValueError, match="1 to 4 lengths with at most 60 elements"):
        tensor.read_shape(given)


def test_a_shape_may_be_written_like_one():
    assert tensor.read_shape("(3, 4)") == tensor.read_shape("3,4") == (3, 4)
    assert tensor.read_shape("[60]") == (60,)


def test_what_is_too_much_to_show_is_refused():
    with pytest.raises(ExpressionError, match="at most 240"):
        tensor.layout_of((60,), "broadcast_to(a, 5, 60)")


def test_no_text_breaks_the_page():
    app = start("tensor")
    takes_any_text(app, "tensor_view")
    app.text_input(key="tensor_shape").set_value("<b>")
    assert refused(run(app)) == ["The shape needs 1 to 4 lengths with at most 60 elements, such as 3, 4."]


def test_a_view_is_chosen_and_told():
    app = start("tensor")
    assert any("Nothing is copied" in line for line in said(app))
    app.pills(key="tensor_example").select("Compute")
    run(app)
    assert any("memory of its own" in line for line in said(app))
    assert shown(app)["storage"][0] == 110
    assert address_of(app) == {"view": "a + 100"}


def test_an_index_that_the_view_does_not_have_gives_the_first_element():
    assert shown(start("tensor", index="9,9"))["start"] == [
        9,
        9,
    ]  # the element of the page then shows the first
    assert refused(start("tensor", view="sum(a)")) == []
