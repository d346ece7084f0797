"""Check gradients against central differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from .autograd import Tensor, gradients, no_grad


def gradcheck(
    f: Callable[..., Tensor], *tensors: Tensor, order: int = 2, eps: float = 1e-5, tol: float = 1e-6
) -> bool:
    """Compare the gradients of `f` with central differences, in float64.

    The derivative of a random weighted sum of ``f(*tensors)`` with respect to each element x is compared with
    (f(x + eps) - f(x - eps)) / (2 eps), whose error is of order eps², plus rounding of order 1e-16 / eps.
    For order 2 the same is then done for the gradients themselves.

    Parameters
    ----------
    f : callable
        Takes Tensors, returns a Tensor; the same result for the same values (no fresh randomness).
    *tensors : Tensor
        Where to check; taken as float64, never changed. Stay away from kinks such as relu at 0.
    order : int
        How many derivatives are checked.
    eps : float
        The step of the differences.
    tol : float
        The allowed difference where derivatives are below 1, the allowed relative difference where they
        are above.

    Returns
    -------
    bool
        True.

    Raises
    ------
    AssertionError
        At the first element that differs: which argument, which index, expected, got.
    """
    with no_grad(False):
        _check(f, tensors, order, eps, tol)
    return True


def _check(f: Callable[..., Tensor], tensors: Sequence[Tensor], order: int, eps: float, tol: float) -> None:
    values = [t.numpy().astype(np.float64) for t in tensors]
    devices = [t.device for t in tensors]
    rng = np.random.default_rng(0)

    def leaves(arrays: Sequence[np.ndarray]) -> list[Tensor]:
        return [Tensor(a, device=d, dtype="float64") for a, d in zip(arrays, devices, strict=True)]

    def weighted_sum(*args: Tensor) -> Tensor:
        out = f(*args)
        return (out * weights).sum()

    out = f(*leaves(values))
    random = rng.uniform(0.5, 1.5, size=out.shape) * rng.choice([-1.0, 1.0], size=out.shape)
    weights = Tensor(random, device=out.device, dtype="float64", requires_grad=False)
    _compare(weighted_sum, values, leaves, eps, tol)
    if order > 1:
        for i in range(len(tensors)):

            def gradient_of_argument(*args: Tensor, i: int = i) -> Tensor:
                return _gradients(weighted_sum(*args), args)[i]

            try:
                _check(gradient_of_argument, leaves(values), order - 1, eps, tol)
            except AssertionError as error:
                raise AssertionError(f"in the gradient with respect to argument {i}: {error}") from None


def _gradients(output: Tensor, inputs: Sequence[Tensor]) -> list[Tensor]:
    """The gradients of `output`; zeros if it is a constant, as the gradient of a linear function is."""
    return gradients(output, inputs) if output.requires_grad else [x.detach() * 0 for x in inputs]


def _compare(f, values, leaves, eps, tol):
    """Raise AssertionError where the gradients of the scalar function `f` at `values` differ from central
    differences."""
    arguments = leaves(values)
    output = f(*arguments)
    try:
        found = [g.numpy() for g in _gradients(output, arguments)]
    except (TypeError, ValueError) as error:  # a gradient that does not fit its operand
        raise AssertionError(str(error)) from None
    for number, value in enumerate(values):
        for index in np.ndindex(value.shape):
            results = []
            for step in (eps, -eps):
                moved = [v.copy() for v in values]
                moved[number][index] += step
                results.append(float(f(*leaves(moved)).numpy()))
            expected = (results[0] - results[1]) / (2 * eps)
            got = float(found[number][index])
            rounding = 1e-15 * max(map(abs, results)) / eps
            if not abs(got - expected) <= tol * max(1.0, abs(expected)) + rounding:
                raise AssertionError(
                    f"argument {number}, index {index}: expected {expected:.10g} (central difference), "
                    f"got {got:.10g} (backward)"
                )
