"""An LSTM over a whole sequence as one operator.

Out of primitive operators, a long sequence becomes a graph of thousands of nodes. Here all steps of the
forward pass are one node. Its gradient goes step by step only where it must; the rest, such as the product
for the weights, is done for all times at once.
"""

from __future__ import annotations

import numpy as np

from ..backend_ndarray.device import common_device
from ..backend_selection import concatenate as array_concatenate
from ..backend_selection import elementwise
from ..backend_selection import unstack as array_unstack
from ..graph import Spec, TensorOp, TensorTupleOp
from .families import unbroadcast
from .ops_activations import tanh
from .ops_indexing import concatenate, split, stack
from .ops_tuple import partials_of_items, zeros_like_spec

__all__ = ["LSTMSteps", "lstm_steps"]


class LSTMSteps(TensorTupleOp):
    """The steps of an LSTM (see `lstm_steps`): (h, c, i, f, g, o) at all times.

    At each time, with s = x + h_before @ W taken apart into s_i, s_f, s_g and s_o:

    i, f, g, o = sigmoid(s_i), sigmoid(s_f), tanh(s_g), sigmoid(s_o)
    c = f * c_before + i * g
    h = o * tanh(c)

    so that ds_i = i * (1 - i) * g * dc and so on, and dc = o * (1 - tanh(c) ** 2) * dh + f_after * dc_after.
    """

    def infer(self, x, W, h, c):
        inputs = (x, W, h, c)
        shapes = [a.shape for a in inputs]
        time, batch, width = x.shape if len(x.shape) == 3 else (0, 0, 0)
        state = (batch, width // 4)
        if not time or shapes != [(time, batch, 4 * state[1]), (state[1], width), state, state]:
            raise ValueError(
                "lstm_steps: needs shapes (time, batch, 4 * hidden), (hidden, 4 * hidden), (batch, hidden) "
                f"and (batch, hidden), with at least one time; got {', '.join(map(str, shapes))}"
            )
        dtype = np.result_type(*{a.dtype for a in inputs})
        return (Spec((time, *state), dtype, common_device("lstm_steps", inputs)),) * 6

    def compute(self, x, W, h, c):
        self.infer(x, W, h, c)
        n = W.shape[0]
        steps = []
        for now in array_unstack(x, 0):
            s = elementwise("add", now, h @ W)
            i = elementwise("sigmoid", s[:, :n])
            f = elementwise("sigmoid", s[:, n : 2 * n])
            g = elementwise("tanh", s[:, 2 * n : 3 * n])
            o = elementwise("sigmoid", s[:, 3 * n :])
            c = elementwise("add", elementwise("multiply", f, c), elementwise("multiply", i, g))
            h = elementwise("multiply", o, elementwise("tanh", c))
            steps.append((h, c, i, f, g, o))
        time = (1, *h.shape)
        return tuple(
            [array_concatenate([a.reshape(time) for a in item], 0) for item in zip(*steps, strict=True)]
        )

    def gradient(self, out_grad, node):
        _, W, h0, c0 = node.inputs
        h, c, i, f, g, o = node.tuple()
        steps, batch, hidden = h.shape
        zeros = TensorOp.out.make_const(zeros_like_spec(h))
        by_h, by_c, *by_gates = partials_of_items(out_grad)

        def before(first, later):
            """The value before each step."""
            return concatenate([first.reshape((1, batch, hidden)), later[:-1]])

        # For all times at once: the derivative of h with respect to c, and of the gates with respect to s.
        tanh_c = tanh(c)
        c_by_h = split(o - o * tanh_c * tanh_c, 0).tuple()
        slopes = (i - i * i, f - f * f, 1 - g * g, o - o * o)
        s_by_c = split(stack([g * slopes[0], before(c0, c) * slopes[1], i * slopes[2], zeros], 2), 0).tuple()
        s_by_h = split(stack([zeros, zeros, zeros, tanh_c * slopes[3]], 2), 0).tuple()

        # Backwards in time: what depends on the adjoints of later steps.
        from_h = split(zeros if by_h is None else by_h, 0).tuple()
        from_c = None if by_c is None else split(by_c, 0).tuple()
        from_gates = None
        if any(partial is not None for partial in by_gates):  # in gradients of this gradient
            into_s = [zeros if p is None else p * slope for p, slope in zip(by_gates, slopes, strict=True)]
            from_gates = split(stack(into_s, 2), 0).tuple()
        f_at = split(f, 0).tuple()
        WT = W.transpose()
        by_s: list = [None] * steps
        h_adjoint = c_adjoint = None  # of the h and c that step t hands to step t + 1
        for t in reversed(range(steps)):
            h_adjoint = from_h[t] if h_adjoint is None else from_h[t] + h_adjoint
            total = h_adjoint * c_by_h[t]
            total = total if c_adjoint is None else total + c_adjoint
            total = total if from_c is None else total + from_c[t]
            row = (batch, 1, hidden)
            s = total.reshape(row) * s_by_c[t] + h_adjoint.reshape(row) * s_by_h[t]
            s = s if from_gates is None else s + from_gates[t]
            by_s[t] = s.reshape((batch, 4 * hidden))
            h_adjoint, c_adjoint = by_s[t] @ WT, total * f_at[t]

        by_x = stack(by_s, 0)
        rows = steps * batch
        by_W = before(h0, h).reshape((rows, hidden)).transpose() @ by_x.reshape((rows, 4 * hidden))
        partials = (by_x, by_W, h_adjoint, c_adjoint)
        return tuple([unbroadcast(partial, a) for partial, a in zip(partials, node.inputs, strict=True)])


def lstm_steps(x, W, h, c):
    """All steps of an LSTM, whose gates stand in the order i, f, g, o.

    Parameters
    ----------
    x : Tensor, shape (time, batch, 4 * hidden)
        The input's contribution to the four gates at each time.
    W : Tensor, shape (hidden, 4 * hidden)
        The weights for the output of the step before.
    h, c : Tensor, shape (batch, hidden)
        The output and the memory before the first step.

    Returns
    -------
    TensorTuple
        (h, c, i, f, g, o), each of shape (time, batch, hidden): output, memory and gates after each step.

    Raises
    ------
    ValueError
        If the shapes do not fit, or there is no time.
    """
    return LSTMSteps()(x, W, h, c)
