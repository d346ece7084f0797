"""Modules: the parts that networks are put together from."""

from ..autograd import Tensor as Tensor
from .losses import BCEWithLogitsLoss, CrossEntropyLoss, MSELoss, SoftmaxLoss
from .module import Module, Parameter
from .nn_basic import (
    GELU,
    BatchNorm1d,
    BatchNorm2d,
    Dropout,
    Flatten,
    GroupNorm,
    Identity,
    LayerNorm1d,
    LeakyReLU,
    Linear,
    ReLU,
    Residual,
    Sequential,
    Sigmoid,
    Softmax,
    Tanh,
)
from .nn_conv import AvgPool2d, Conv, MaxPool2d
from .nn_encoder_decoder import (
    LearnedEncoding,
    SinusoidalEncoding,
    TransformerDecoderLayer,
    TransformerEncoderLayer,
)
from .nn_sequence import GRU, LSTM, RNN, Embedding, GRUCell, LSTMCell, RNNCell
from .nn_transformer import (
    AttentionLayer,
    MultiHeadAttention,
    Transformer,
    TransformerLayer,
    causal_mask,
)

__all__ = [
    "GELU", "GRU", "LSTM", "RNN", "AttentionLayer", "AvgPool2d", "BCEWithLogitsLoss", "BatchNorm1d",
    "BatchNorm2d", "Conv", "CrossEntropyLoss", "Dropout", "Embedding", "Flatten", "GRUCell", "GroupNorm",
    "Identity", "LSTMCell", "LayerNorm1d", "LeakyReLU", "LearnedEncoding", "Linear", "MSELoss", "MaxPool2d",
    "Module", "MultiHeadAttention", "Parameter", "RNNCell", "ReLU", "Residual", "Sequential", "Sigmoid",
    "SinusoidalEncoding", "Softmax", "SoftmaxLoss", "Tanh", "Transformer", "TransformerDecoderLayer",
    "TransformerEncoderLayer", "TransformerLayer", "causal_mask",
]  # fmt: skip
