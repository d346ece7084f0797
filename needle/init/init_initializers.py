"""Initial weights that keep the size of activations or gradients the same from layer to layer.

`fan_in` and `fan_out` are the number of inputs and outputs of a layer; `shape` gives weights another
shape than (fan_in, fan_out); the other keywords are those of `rand` and `randn`.

References
----------
Glorot and Bengio (2010), "Understanding the difficulty of training deep feedforward neural networks",
equation 16. He et al. (2015), "Delving deep into rectifiers", equation 10.
"""

from __future__ import annotations

import math

from ..autograd import Tensor
from .init_basic import rand, randn

_GAIN = {"relu": math.sqrt(2), "linear": 1.0, "sigmoid": 1.0, "tanh": 5 / 3}


def xavier_uniform(fan_in, fan_out, gain=1.0, shape=None, **kwargs) -> Tensor:
    """Uniform in ±gain * sqrt(6 / (fan_in + fan_out))."""
    bound = gain * math.sqrt(6 / (fan_in + fan_out))
    return rand(*(shape or (fan_in, fan_out)), low=-bound, high=bound, **kwargs)


def xavier_normal(fan_in, fan_out, gain=1.0, shape=None, **kwargs) -> Tensor:
    """Normal with standard deviation gain * sqrt(2 / (fan_in + fan_out))."""
    return randn(*(shape or (fan_in, fan_out)), std=gain * math.sqrt(2 / (fan_in + fan_out)), **kwargs)


def kaiming_uniform(fan_in, fan_out, nonlinearity="relu", shape=None, **kwargs) -> Tensor:
    """Uniform in ±gain * sqrt(3 / fan_in). The gain makes up for the size that `nonlinearity` takes away."""
    bound = _gain(nonlinearity) * math.sqrt(3 / fan_in)
    return rand(*(shape or (fan_in, fan_out)), low=-bound, high=bound, **kwargs)


def kaiming_normal(fan_in, fan_out, nonlinearity="relu", shape=None, **kwargs) -> Tensor:
    """Normal with standard deviation gain / sqrt(fan_in)."""
    return randn(*(shape or (fan_in, fan_out)), std=_gain(nonlinearity) / math.sqrt(fan_in), **kwargs)


def _gain(nonlinearity: str) -> float:
    if nonlinearity not in _GAIN:
        raise ValueError(f"kaiming: no gain known for {nonlinearity!r}; use one of {', '.join(_GAIN)}")
    return _GAIN[nonlinearity]
