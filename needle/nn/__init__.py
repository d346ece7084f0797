"""Modules: the parts that networks are put together from."""

from .nn_basic import Identity, Linear, Module, Parameter, ReLU, Sequential, Sigmoid, SoftmaxLoss, Tanh

__all__ = [
    "Identity",
    "Linear",
    "Module",
    "Parameter",
    "ReLU",
    "Sequential",
    "Sigmoid",
    "SoftmaxLoss",
    "Tanh",
]
