"""Recurrent networks and embeddings, for sequences of shape (time, batch, features).

A cell takes one step in time: it maps an input and a state to the next state. `RNN`, `LSTM` and `GRU` take
the steps of whole sequences, in one layer or in several on top of each other. One part of a step does not
need the state: the product with the input. It is a single large product for all times.
"""

from __future__ import annotations

import math
from typing import Any

from .. import init, ops
from ..autograd import Tensor, scope
from ..backend_ndarray.device import generator
from ..ops.ops_indexing import as_index
from .module import Module, Parameter, check_sizes

ACTIVATIONS = {"tanh": ops.tanh, "relu": ops.relu}

State = tuple[Tensor, ...]


class RecurrentCell(Module):
    """What all cells share: weights, uniform in ±1 / sqrt(hidden_size), and the two halves of a step.

    Attributes
    ----------
    W_ih : Parameter, shape (input_size, gates * hidden_size)
    W_hh : Parameter, shape (hidden_size, gates * hidden_size)
    bias_ih, bias_hh : Parameter, shape (gates * hidden_size,), or None
    """

    gates = 1  # how many vectors of hidden_size numbers a step computes
    states = 1  # how many Tensors go on to the next step

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device=None, dtype="float32", rng=None
    ):
        check_sizes(self, input_size=input_size, hidden_size=hidden_size)
        self.input_size = input_size
        self.hidden_size = hidden_size
        rng = generator(rng)
        bound, width = 1 / math.sqrt(hidden_size), self.gates * hidden_size

        def drawn(*shape: int) -> Parameter:
            return Parameter(init.rand(*shape, low=-bound, high=bound, device=device, dtype=dtype, rng=rng))

        self.W_ih = drawn(input_size, width)
        self.W_hh = drawn(hidden_size, width)
        self.bias_ih = drawn(width) if bias else None
        self.bias_hh = drawn(width) if bias else None

    def project(self, X: Tensor) -> Tensor:
        """The half of a step that needs only the input: from shape (rows, input_size) to (rows, gates *
        hidden_size). The rows may belong to many steps."""
        projected = X @ self.W_ih
        return projected if self.bias_ih is None else projected + (self.bias_ih + self.bias_hh)

    def step(self, projected: Tensor, state: State) -> State:
        """The half of a step that needs the state. Returns the next state; its first Tensor is the output."""
        raise NotImplementedError

    def steps(self, projected: Tensor, state: State) -> tuple[Tensor, State]:
        """The steps for all times of `projected`, shape (time, batch, gates * hidden_size). Returns the
        outputs at all times, and the state after the last."""
        outputs = []
        at_time = ops.split(projected, 0)
        for t in range(len(at_time)):
            with scope(f"t = {t + 1}"):
                state = self.step(at_time[t], state)
            outputs.append(state[0])
        return ops.stack(outputs, 0), state

    def forward(self, X: Tensor, h: Any = None) -> Any:
        if X.ndim != 2 or X.shape[1] != self.input_size:
            raise ValueError(
                f"{type(self).__name__}: needs an input of shape (batch, {self.input_size}), got {X.shape}"
            )
        before = _state(self, h, (X.shape[0], self.hidden_size), X)
        after = self.step(self.project(X), before)
        return after[0] if self.states == 1 else after


class RNNCell(RecurrentCell):
    """One step of an Elman network: h' = tanh(x @ W_ih + bias_ih + h @ W_hh + bias_hh).

    ``cell(X, h=None)`` takes X of shape (batch, input_size) and h of shape (batch, hidden_size), by default
    zeros, and returns h'.

    Parameters
    ----------
    input_size, hidden_size : int
    bias : bool
        Whether biases are added.
    nonlinearity : "tanh" or "relu"
    device, dtype
        Of the parameters.
    rng : numpy.random.Generator or int, optional
        Where the initial weights come from; an int is the seed of a generator. Default: NumPy's global state.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device=None,
        dtype="float32",
        rng=None,
    ):
        if nonlinearity not in ACTIVATIONS:
            raise ValueError(f"RNNCell: nonlinearity is 'tanh' or 'relu', got {nonlinearity!r}")
        self.nonlinearity = nonlinearity
        super().__init__(input_size, hidden_size, bias, device, dtype, rng)

    def step(self, projected: Tensor, state: State) -> State:
        (h,) = state
        return (ACTIVATIONS[self.nonlinearity](projected + h @ self.W_hh),)


class LSTMCell(RecurrentCell):
    """One step of a network with long short-term memory; the gates stand in the order i, f, g, o.

    i, f, g, o = x @ W_ih + bias_ih + h @ W_hh + bias_hh,
    c' = sigmoid(f) * c + sigmoid(i) * tanh(g) and h' = sigmoid(o) * tanh(c').

    ``cell(X, h=None)`` takes X of shape (batch, input_size) and a pair (h, c), each of shape (batch,
    hidden_size), by default zeros, and returns (h', c'). Hochreiter and Schmidhuber (1997), "Long short-term
    memory"; Gers et al. (2000), "Learning to forget".

    Parameters
    ----------
    input_size, hidden_size : int
    bias : bool
        Whether biases are added.
    device, dtype
        Of the parameters.
    rng : numpy.random.Generator or int, optional
        Where the initial weights come from; an int is the seed of a generator. Default: NumPy's global state.
    """

    gates = 4
    states = 2

    def step(self, projected: Tensor, state: State) -> State:
        h, c = state
        i, f, g, o = _gates(projected + h @ self.W_hh, 4)
        c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g)
        return ops.sigmoid(o) * ops.tanh(c), c

    def steps(self, projected: Tensor, state: State) -> tuple[Tensor, State]:
        h, c, *_ = ops.lstm_steps(projected, self.W_hh, *state)  # the same steps in one operator
        return h, (h[-1], c[-1])


class GRUCell(RecurrentCell):
    """One step of a network of gated recurrent units; the gates stand in the order r, z, n.

    With a = x @ W_ih + bias_ih and b = h @ W_hh + bias_hh, both in three parts:
    r = sigmoid(a_r + b_r), z = sigmoid(a_z + b_z), n = tanh(a_n + r * b_n) and h' = (1 - z) * n + z * h.

    ``cell(X, h=None)`` takes X of shape (batch, input_size) and h of shape (batch, hidden_size), by default
    zeros, and returns h'. Cho et al. (2014), "Learning phrase representations using RNN encoder-decoder", in
    the variant of cuDNN.

    Parameters
    ----------
    input_size, hidden_size : int
    bias : bool
        Whether biases are added.
    device, dtype
        Of the parameters.
    rng : numpy.random.Generator or int, optional
        Where the initial weights come from; an int is the seed of a generator. Default: NumPy's global state.
    """

    gates = 3

    def project(self, X: Tensor) -> Tensor:
        projected = X @ self.W_ih
        return projected if self.bias_ih is None else projected + self.bias_ih

    def step(self, projected: Tensor, state: State) -> State:
        (h,) = state
        product = h @ self.W_hh
        a_r, a_z, a_n = _gates(projected, 3)
        b_r, b_z, b_n = _gates(product if self.bias_hh is None else product + self.bias_hh, 3)
        n = ops.tanh(a_n + ops.sigmoid(a_r + b_r) * b_n)
        return (n + ops.sigmoid(a_z + b_z) * (h - n),)


class Recurrent(Module):
    """What all networks of cells share: steps through time, layer by layer."""

    states = 1

    def __init__(self, input_size: int, hidden_size: int, num_layers: int):
        check_sizes(self, input_size=input_size, hidden_size=hidden_size, num_layers=num_layers)
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers

    def _layers(self, cell: type, *options: Any) -> list[Any]:
        """A new cell for each layer."""
        sizes = [self.input_size] + [self.hidden_size] * (self.num_layers - 1)
        return [cell(size, self.hidden_size, *options) for size in sizes]

    def cells(self) -> list[Any]:
        """One cell per layer, the lowest first."""
        raise NotImplementedError

    def forward(self, X: Tensor, h0: Any = None) -> tuple[Tensor, Any]:
        if X.ndim != 3 or X.shape[0] == 0 or X.shape[2] != self.input_size:
            raise ValueError(
                f"{type(self).__name__}: needs an input of shape (time, batch, {self.input_size}) with at "
                f"least one time, got {X.shape}"
            )
        before = _state(self, h0, (self.num_layers, X.shape[1], self.hidden_size), X)
        layers = zip(*[ops.split(x, 0).tuple() for x in before], strict=True)
        last = []
        for cell, states in zip(self.cells(), layers, strict=True):
            time, batch, features = X.shape
            with scope(cell):
                projected = cell.project(X.reshape((time * batch, features)))
                X, after = cell.steps(projected.reshape((time, batch, projected.shape[1])), states)
            last.append(after)
        final = tuple([ops.stack(x, 0) for x in zip(*last, strict=True)])
        return X, final[0] if self.states == 1 else final


class RNN(Recurrent):
    """Elman networks (`RNNCell`), one on top of the other.

    ``rnn(X, h0=None)`` takes X of shape (time, batch, input_size) and h0 of shape (num_layers, batch,
    hidden_size), by default zeros. It returns the outputs of the highest layer at all times, shape (time,
    batch, hidden_size), and the state of all layers after the last time, of the shape of h0.

    Parameters
    ----------
    input_size, hidden_size, num_layers : int
    bias, nonlinearity, device, dtype, rng
        As of `RNNCell`.

    Attributes
    ----------
    rnn_cells : list of RNNCell
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device=None,
        dtype="float32",
        rng=None,
    ):
        super().__init__(input_size, hidden_size, num_layers)
        self.rnn_cells = self._layers(RNNCell, bias, nonlinearity, device, dtype, generator(rng))

    def cells(self) -> list[RNNCell]:
        return self.rnn_cells


class LSTM(Recurrent):
    """Networks with long short-term memory (`LSTMCell`), one on top of the other.

    ``lstm(X, h=None)`` takes X of shape (time, batch, input_size) and a pair (h0, c0), each of shape
    (num_layers, batch, hidden_size), by default zeros. It returns the outputs of the highest layer at all
    times, shape (time, batch, hidden_size), and the state (h, c) of all layers after the last time.

    Parameters
    ----------
    input_size, hidden_size, num_layers : int
    bias, device, dtype, rng
        As of `LSTMCell`.

    Attributes
    ----------
    lstm_cells : list of LSTMCell
    """

    states = 2

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        device=None,
        dtype="float32",
        rng=None,
    ):
        super().__init__(input_size, hidden_size, num_layers)
        self.lstm_cells = self._layers(LSTMCell, bias, device, dtype, generator(rng))

    def cells(self) -> list[LSTMCell]:
        return self.lstm_cells

    def forward(self, X: Tensor, h: Any = None) -> tuple[Tensor, Any]:
        return super().forward(X, h)


class GRU(Recurrent):
    """Networks of gated recurrent units (`GRUCell`), one on top of the other.

    ``gru(X, h0=None)`` takes and returns what `RNN` does.

    Parameters
    ----------
    input_size, hidden_size, num_layers : int
    bias, device, dtype, rng
        As of `GRUCell`.

    Attributes
    ----------
    gru_cells : list of GRUCell
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        device=None,
        dtype="float32",
        rng=None,
    ):
        super().__init__(input_size, hidden_size, num_layers)
        self.gru_cells = self._layers(GRUCell, bias, device, dtype, generator(rng))

    def cells(self) -> list[GRUCell]:
        return self.gru_cells


def _gates(values: Tensor, count: int) -> State:
    """Split (batch, count * hidden) into `count` Tensors of shape (batch, hidden)."""
    batch, width = values.shape
    return ops.split(values.reshape((batch, count, width // count)), 1).tuple()


def _state(module: RecurrentCell | Recurrent, state: Any, shape: tuple[int, ...], like: Tensor) -> State:
    """The first state as a tuple of Tensors, each of `shape`; zeros if `state` is None."""
    if state is None:
        zeros = init.zeros(*shape, device=like.device, dtype=like.dtype)
        return (zeros,) * module.states
    state = (state,) if isinstance(state, Tensor) else tuple(state)
    shapes = [x.shape for x in state]
    if shapes != [shape] * module.states:
        needed = f"a state of shape {shape}" if module.states == 1 else f"a state (h, c), each {shape}"
        raise ValueError(f"{type(module).__name__}: needs {needed}, got {', '.join(map(str, shapes))}")
    return state


class Embedding(Module):
    """A learned vector for each of n things, such as words or letters: a table whose rows we look up.

    Parameters
    ----------
    num_embeddings : int
        How many things there are.
    embedding_dim : int
        The length of each vector.
    device, dtype
        Of the parameters.
    rng : numpy.random.Generator or int, optional
        Where the initial weights come from; an int is the seed of a generator. Default: NumPy's global state.

    Attributes
    ----------
    weight : Parameter, shape (num_embeddings, embedding_dim)
        Begins normal with mean 0 and standard deviation 1.
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, device=None, dtype="float32", rng=None):
        check_sizes(self, num_embeddings=num_embeddings, embedding_dim=embedding_dim)
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.weight = Parameter(
            init.randn(num_embeddings, embedding_dim, device=device, dtype=dtype, rng=rng)
        )

    def forward(self, x: Any) -> Tensor:
        """
        Parameters
        ----------
        x : Tensor or array of whole numbers, shape (...), most often (time, batch)
            0 to num_embeddings - 1, of any dtype.

        Returns
        -------
        Tensor, shape (..., embedding_dim)

        Raises
        ------
        IndexError
            If a number is not whole, or not from 0 to num_embeddings - 1.
        """
        return ops.LookUp(self.num_embeddings)(self.weight, as_index(x, self.weight.device))
