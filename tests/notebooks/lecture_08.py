"""Lecture 08: what its prose claims, and what proves it."""

from __future__ import annotations

SHOWN = [
    (
        "duality",
        "the two questions of the beginning",
        "hook-sum",
        "needle.Tensor([[1. 1. 1.]\n               [1. 1. 1.]])",
    ),
    ("duality", "the two questions of the beginning", "hook-copies", "needle.Tensor([4. 4. 4.])"),
    (
        "exercise-elementwise",
        "The first agrees with nudging, and the second does not",
        "agree-code",
        "(True, False)",
    ),
    ("exercise-matmul", "Only one way fits the shapes", "shapes-code", "(2, 3)"),
    (
        "judge-all",
        "Those are your seven rules",
        "judge-all-code",
        "exp_rule            True (yours)\nlog_rule            True (yours)\n"
        "relu_rule           True (yours)\nsummation_rule      True (yours)\n"
        "broadcast_rule      True (yours)\nmatmul_rule         True (yours)\n"
        "logsumexp_rule      True (yours)\n",
    ),
    (
        "practice-judge",
        "these five as well",
        "practice-judge-code",
        "power_rule          True (yours)\ndivide_rule         True (yours)\n"
        "reshape_rule        True (yours)\ntranspose_rule      True (yours)\n"
        "batched_matmul_rule True (yours)\n",
    ),
    (
        "every",
        "just as it does with the library's rules. It needs five of your seven",
        "exchange",
        "{'summation_rule': 200, 'logsumexp_rule': 100, 'matmul_rule': 200, 'relu_rule': 100, "
        "'broadcast_rule': 100}\nthe same losses as with the library's rules: True\n"
        "<PictureFigure size 500x330 with 1 Axes>",
    ),
    ("blind", "All of them are right", "every-code", "60 functions, of which wrong: []\n"),
    (
        "exercise-divide",
        "A check sees only where it looks",
        "wrong-code",
        "at 1: True   at 1 and 1.5: False\n",
    ),
]

TRUE = [
    ("title", "There are seven rules to write", "len(yours) == 7"),
    ("agree", "in float32, rounding would drown the nudge", "np.float32(1) + np.float32(1e-8) == 1"),
    ("exercise-numerical", "0.2 · 1 + 0.3 · 10 = 3.2", "np.isclose(np.dot([1, 10], [0.2, 0.3]), 3.2)"),
    (
        "exercise-elementwise",
        "so the rule is `-out_grad`",
        "agree(ndl.negate, [0.5, -1.5], rule=lambda out_grad, node: -out_grad)",
    ),
    (
        "elementwise-solution",
        "The library takes 0",
        "ndl.gradients(ndl.relu(z := ndl.Tensor([0.0])), [z])[0].item() == 0",
    ),
    (
        "divide-solution",
        "aᵇ · log(a), times what came back",
        "ndl.gradients(ndl.Tensor([3.0]) ** (z := ndl.Tensor([2.0])), [z])[0].item() - 9 * np.log(3) < 1e-5",
    ),
    (
        "exercise-divide",
        "That holds for n = −1 and 0.5 as well",
        "all(agree(lambda a, n=n: a**n, [0.5, 1.5, 3.0], rule=power_rule) for n in (-1, 0.5))",
    ),
    (
        "duality",
        "**the shape of its operand**, always",
        "[g.shape for g in ndl.gradients(a @ b, [a, b])] == [(2, 3), (3, 4)]",
    ),
    (
        "duality",
        "Below the sum you find a broadcast, and below the broadcast a sum (and a `reshape`",
        "[re.findall('Σ|broadcast to|reshape', viz.draw_gradient(total(ndl.Tensor([2]), 2)).source)"
        ".count(sign) for sign in ('broadcast to', 'Σ', 'reshape')] == [2, 2, 1]",
    ),
    (
        "duality",
        "The gradient of `b` moves with `a`",
        "(lambda p, q: [g.item() for g in ndl.gradients(product(p, q), [p, q])])"
        "(ndl.Tensor([1.5]), ndl.Tensor([0.5])) == [0.5, 1.5]",
    ),
    (
        "exercise-sum",
        "a tuple, one number (`ndl.summation(a, 1)`), or `None` for all of them",
        "[ndl.summation(a, axes).op.axes for axes in ((0,), -1, None)] == [(0,), -1, None] and "
        "(np.atleast_1d((0, -1)) % 3).tolist() == [0, 2]",
    ),
    (
        "exercise-sum",
        "The adjoint of `a` is the number of copies, whatever `a` is",
        "[ndl.gradients(total(x, n), [x])[0].item() for n in (2, 5) for x in [ndl.Tensor([n - 4.0])]] == "
        "[2, 5]",
    ),
    (
        "sum-solution",
        "the sums of rows end up in the columns",
        "not agree(lambda a: ndl.summation(a, (1,)), np.arange(9.0).reshape(3, 3),"
        " rule=lambda out_grad, node: out_grad.broadcast_to((3, 3)))",
    ),
    (
        "broadcast-solution",
        "its gradient is a sum over the batch",
        "ndl.gradients(x + row, [row])[0].numpy().tolist() == [2, 2, 2]",
    ),
    ("logsumexp-solution", "inf / inf is no number", "np.isnan(np.exp(1000.0) / np.exp(1000.0))"),
    (
        "logsumexp-solution",
        "**softmax**",
        "np.allclose(ndl.gradients(ndl.logsumexp(row), [row])[0].numpy(), ndl.softmax(row).numpy())",
    ),
    (
        "every",
        "It has no use for exp and log",
        "{*map(str, calls)} == {r.__name__ for r in yours.values()} - {'exp_rule', 'log_rule'}",
    ),
    ("every", "It learns", "with_yours[-1] < 0.3 < with_yours[0]"),
    (
        "exchange-intro",
        "for as long as the block lasts",
        "ndl.ops.ReLU.gradient.__name__ == 'gradient' and "
        "ndl.ops.ReLU.gradient.__qualname__ == 'ReLU.gradient'",
    ),
    ("blind", "convolutions and an LSTM included", "{'conv', 'lstm_steps'} <= set(samples)"),
    (
        "blind",
        "`argmax`, `compare` and `sign`",
        "{name for name in ndl.ops.__all__ if name.islower()} - set(samples) == {'argmax', 'compare', "
        "'sign'}",
    ),
    (
        "batched-solution",
        "by `unbroadcast` in `needle/ops/families.py`",
        "'unbroadcast' in ndl.ops.MatMul.gradient.__code__.co_names",
    ),
    (
        "exercise-batched",
        "`x.transpose()` swaps the last two axes",
        "ndl.ones(2, 3, 4).transpose().shape == (2, 4, 3)",
    ),
]
