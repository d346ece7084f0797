"""What `jit` takes: functions, methods, what is compiled already, and options."""

from __future__ import annotations

import warnings
from functools import partial

import pytest

import needle as ndl
from needle import jit, nn

from .conftest import count_of
from .conftest import jit as plain_jit


def test_options_of_a_decorator():
    @jit(debug=True)
    def double(x):
        return x * 2

    assert double.debug
    assert not double.background
    assert double.__name__ == "double"
    assert double(ndl.ones(2)).numpy().tolist() == [2, 2]
    assert jit(background=True)(lambda x: x).background


@pytest.mark.parametrize("wrong", [3, None, "f"])
def test_what_is_no_function(wrong):
    for take in (jit, jit(debug=True), partial(jit, background=True)):
        with pytest.raises(TypeError, match=rf"jit: needs a function, got {wrong!r}; write ndl.jit\(f\)"):
            take(wrong)


def test_what_is_compiled_already():
    f = jit(lambda x: x * 2)
    assert jit(f) is f
    assert jit(f, debug=False) is f
    slow = jit(f, debug=True)
    assert slow.debug
    assert slow is not f
    assert slow.function is f.function
    assert jit(slow) is slow
    assert not jit(slow, debug=False).debug
    both = jit(slow, background=True)
    assert both.debug
    assert both.background


class Scale:
    def __init__(self, factor):
        self.factor = factor

    @jit(debug=True)
    def of(self, x):
        return x * self.factor


def test_a_method_is_all_that_a_compiled_function_is():
    two, three = Scale(2.0), Scale(3.0)
    x = ndl.ones(2)
    assert [scale.of(x).numpy()[0] for scale in (two, three, two)] == [2, 3, 2]
    assert two.of.source == Scale.of.source != ""
    assert two.of.program is Scale.of.program
    two.of.wait()
    assert two.of == two.of != three.of


def test_a_scan_of_a_method():
    two = Scale(2.0)
    assert ndl.scan(two.of, ndl.ones(3, 1)).numpy().tolist() == [[2]] * 3


# Many programs


def test_many_programs_are_told_once():
    layer = nn.LeakyReLU(0.5)
    compiled, x = plain_jit(lambda x: layer(x)), ndl.ones(2)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for number in range(7):
            assert len(told) == (number > 4)
            compiled.program_for(x)
            layer.slope = 0.01 + number / 10
    (message,) = [str(warning.message) for warning in told]
    assert message.startswith("jit: the function is compiled for time number 5, ")
    assert "ndl.jit(f, debug=True)" in message
    assert count_of(compiled) == 7


def test_a_number_that_is_an_argument_needs_one_program():
    compiled = plain_jit(lambda x, n: x * n)
    for n in range(7):
        compiled.program_for(ndl.ones(2), n)
    assert count_of(compiled) == 1
