"""Losses: one number of shape () for how far the outputs of a network are from their targets."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import init, ops
from ..autograd import Tensor, no_grad
from ..ops.ops_indexing import as_index
from .module import Module


class SoftmaxLoss(Module):
    """The mean cross entropy of softmax(logits): -log(softmax(logits))[label], averaged over the batch."""

    def forward(self, logits: Tensor, y: Any) -> Tensor:
        """
        Parameters
        ----------
        logits : Tensor, shape (batch, classes)
        y : Tensor or array of integers, shape (batch,)
            The labels, 0 to classes - 1.

        Returns
        -------
        Tensor, shape ()

        Raises
        ------
        TypeError
            If `logits` is no Tensor.
        ValueError
            If the shapes do not fit.
        IndexError
            When the loss is computed, if a label is not one of 0 to classes - 1.
        """
        _check_tensor("SoftmaxLoss", "logits", logits)
        if logits.ndim != 2 or np.shape(y) != logits.shape[:1]:
            raise ValueError(
                "SoftmaxLoss: needs logits of shape (batch, classes) and labels of shape (batch,), "
                f"got {logits.shape} and {np.shape(y)}"
            )
        batch, classes = logits.shape
        targets = init.one_hot(classes, y, device=logits.device, dtype=logits.dtype)
        # A mask and not a product: if the logit of another class is -inf, 0 * -inf would be NaN.
        return ops.mask(ops.logsoftmax(logits), targets).sum() / -batch


class CrossEntropyLoss(Module):
    """The cross entropy of softmax(logits), with weights of classes, smoothed labels, and labels to ignore.

    With s = label_smoothing, the target of each example is probability 1 - s + s / classes for its label and
    s / classes for every other class. The result is the mean over the examples, weighted by the weights of
    their labels. Szegedy et al. (2016), "Rethinking the Inception architecture for computer vision",
    section 7.

    Parameters
    ----------
    label_smoothing : float
        0 to 1.
    ignore_index : int
        The label of examples that do not count, such as padding.
    weight : Tensor or array, shape (classes,), optional
        How much each class counts. Default: all the same.
    """

    def __init__(self, label_smoothing: float = 0.0, ignore_index: int = -100, weight: Any = None):
        if not 0 <= label_smoothing <= 1:
            raise ValueError(f"CrossEntropyLoss: label_smoothing is 0 to 1, got {label_smoothing}")
        self.label_smoothing = label_smoothing
        self.ignore_index = ignore_index
        self.weight = None if weight is None else Tensor(weight, dtype="float64", requires_grad=False)

    def forward(self, logits: Tensor, y: Any) -> Tensor:
        """
        Parameters
        ----------
        logits : Tensor, shape (..., classes)
            The last axis holds the classes; any axes may come before it.
        y : Tensor or array of integers, shape (...)
            The labels, 0 to classes - 1 or `ignore_index`.

        Returns
        -------
        Tensor, shape ()

        Raises
        ------
        TypeError
            If `logits` is no Tensor.
        ValueError
            If the shapes do not fit; or, when the loss is computed, if no example counts.
        IndexError
            When the loss is computed, if a label is not one of 0 to classes - 1.
        """
        _check_tensor("CrossEntropyLoss", "logits", logits)
        if logits.ndim < 1 or np.shape(y) != logits.shape[:-1]:
            raise ValueError(
                "CrossEntropyLoss: needs logits of shape (..., classes) and labels of shape (...), "
                f"got {logits.shape} and {np.shape(y)}"
            )
        labels = as_index(y, logits.device).to(logits.device)
        with no_grad():
            shares = self._shares(labels, logits.shape[-1]).astype(logits.dtype)
        counting = ops.mask(ops.logsoftmax(logits), shares)  # 0 * -inf is NaN
        return -(counting * shares).sum()

    def _shares(self, labels: Tensor, classes: int) -> Tensor:
        """How much of the loss the logarithm of each probability is: in float64, since many are summed up."""
        counted = ops.compare(labels, "ne", self.ignore_index)
        shares = init.one_hot(classes, ops.mask(labels, counted), dtype="float64")
        counts = counted = counted.astype("float64")
        weight = self._weight_of(classes, labels.device)
        if weight is not None:
            counts = counted * (shares * weight).sum(-1)  # how much each example counts
        total = ops.not_zero(
            counts.sum(),
            f"CrossEntropyLoss: no example counts: all {labels.size} labels are ignored or have weight 0",
        )
        if self.label_smoothing:
            shares = shares * (1 - self.label_smoothing) + self.label_smoothing / classes
        if weight is not None:
            shares = shares * weight
        return shares * (counted / total).reshape((*labels.shape, 1))

    def _weight_of(self, classes: int, device: Any) -> Tensor | None:
        if self.weight is None:
            return None
        if self.weight.shape != (classes,):
            raise ValueError(
                f"CrossEntropyLoss: weight needs shape ({classes},), one number per class, got "
                f"{self.weight.shape}"
            )
        return self.weight.to(device)


class MSELoss(Module):
    """The mean of the squared differences."""

    def forward(self, prediction: Tensor, target: Any) -> Tensor:
        """
        Parameters
        ----------
        prediction : Tensor
        target : Tensor or array of the same shape

        Returns
        -------
        Tensor, shape ()

        Raises
        ------
        TypeError
            If `prediction` is no Tensor.
        ValueError
            If the shapes differ; broadcasting them would give a wrong loss.
        """
        _check_tensor("MSELoss", "prediction", prediction)
        difference = prediction - _target("MSELoss", target, prediction)
        return (difference * difference).mean()


class BCEWithLogitsLoss(Module):
    """The mean binary cross entropy of sigmoid(logits).

    -y * log(sigmoid(z)) - (1 - y) * log(1 - sigmoid(z)) = log(1 + exp(z)) - y * z. Here log(1 + exp(z)) is
    the logsumexp of 0 and z, which is exact for logits of any size.
    """

    def forward(self, logits: Tensor, y: Any) -> Tensor:
        """
        Parameters
        ----------
        logits : Tensor
        y : Tensor or array of the same shape
            The labels, or probabilities: 0 to 1.

        Returns
        -------
        Tensor, shape ()

        Raises
        ------
        TypeError
            If `logits` is no Tensor.
        ValueError
            If the shapes differ; broadcasting them would give a wrong loss.
        """
        _check_tensor("BCEWithLogitsLoss", "logits", logits)
        y = _target("BCEWithLogitsLoss", y, logits)
        zero_and_logits = ops.stack([init.zeros_like(logits), logits], 0)
        return (ops.logsumexp(zero_and_logits, 0) - logits * y).mean()


def _check_tensor(loss: str, name: str, value: Any) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{loss}: {name} must be a Tensor, got a {type(value).__name__}; use needle.Tensor({name})"
        )


def _target(name: str, target: Any, prediction: Tensor) -> Tensor:
    """The target as a Tensor with the dtype of the prediction, so that the loss has that dtype too."""
    if np.shape(target) != prediction.shape:
        raise ValueError(f"{name}: needs two equal shapes, got {prediction.shape} and {np.shape(target)}")
    if isinstance(target, Tensor):
        return target.astype(prediction.dtype)
    return Tensor(target, device=prediction.device, dtype=prediction.dtype, requires_grad=False)
