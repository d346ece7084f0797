"""Lecture 08: what its prose claims and what proves it, and answers that somebody might well give."""

from __future__ import annotations


def rule(name: str, *lines: str) -> str:
    """The source of an answer to the exercise that asks for the rule of this operator."""
    return f"def {name}_rule(out_grad, node):\n    " + "\n    ".join(lines)


A, AB = "a = node.inputs[0]", "a, b = node.inputs"
NUDGE = (
    "def numerical(f, x, out_grad):\n    result = np.zeros_like(x)\n    for i in np.ndindex(x.shape):\n"
    "        up, down = x.copy(), x.copy()\n        up[i] += 1e-5\n        down[i] -= 1e-5\n        "
)

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
    ("exercise-matmul", "The shapes leave one way only", "shapes-code", "(2, 3)"),
    (
        "judge-all",
        "Those were all eleven",
        "judge-all-code",
        "exp_rule        True (yours)\nlog_rule        True (yours)\nrelu_rule       True (yours)\n"
        "power_rule      True (yours)\ndivide_rule     True (yours)\nreshape_rule    True (yours)\n"
        "transpose_rule  True (yours)\nsummation_rule  True (yours)\nbroadcast_rule  True (yours)\n"
        "matmul_rule     True (yours)\nlogsumexp_rule  True (yours)\n",
    ),
    (
        "every",
        "just as it does with the library's rules. To be exact: this network needs five of the eleven",
        "exchange",
        "{'summation_rule': 200, 'logsumexp_rule': 100, 'matmul_rule': 200, 'relu_rule': 100, "
        "'broadcast_rule': 100}\nthe same losses as with the library's rules: True\n"
        "<PictureFigure size 500x330 with 1 Axes>",
    ),
    ("blind", "All of them are right", "every-code", "60 functions, of which wrong: []\n"),
    (
        "exercise-batched",
        "A check sees only where it looks",
        "wrong-code",
        "at 1: True   at 1 and 1.5: False\n",
    ),
]

TRUE = [
    ("title", "There are eleven rules to write", "len(yours) == 11"),
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
        "elementwise-solution",
        "aᵇ · log(a), times what came back",
        "ndl.gradients(ndl.Tensor([3.0]) ** (z := ndl.Tensor([2.0])), [z])[0].item() - 9 * np.log(3) < 1e-5",
    ),
    (
        "exercise-elementwise",
        "That holds for n = −1 and 0.5 as well",
        "all(agree(lambda a, n=n: a**n, [0.5, 1.5, 3.0], rule=power_rule) for n in (-1, 0.5))",
    ),
    (
        "exercise-movement",
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
    ("every", "The other six were there", "len(calls) == 5 and len(yours) - len(calls) == 6"),
    ("every", "It learns", "with_yours[-1] < 0.3 < with_yours[0]"),
    (
        "exchange-intro",
        "for as long as the block lasts",
        "ndl.ops.ReLU.gradient.__name__ == 'gradient' and "
        "ndl.ops.ReLU.gradient.__qualname__ == 'ReLU.gradient'",
    ),
    (
        "blind",
        "convolutions and an LSTM included",
        "{'conv', 'lstm_steps'} <= set(samples)",
    ),
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

NEAR_MISSES = {
    "numerical": [
        (
            NUDGE + "result[i] = (f(up) - f(down)).sum() / 2e-5\n    return result",
            "counts as much as its entry",
        ),
        (NUDGE + "result[i] = ((f(up) - f(down)) * out_grad).sum() / 1e-5\n    return result", "2e wide"),
        (
            NUDGE + "result[i] = ((f(up) - f(down)) * out_grad).sum()\n    return result",
            "by the width of the nudge",
        ),
        (
            "def numerical(f, x, out_grad):\n    x, slopes = x.copy(), np.zeros_like(x)\n"
            "    for i in np.ndindex(x.shape):\n        x[i] += 1e-5\n        up = f(x)\n"
            "        x[i] -= 1e-5\n        slopes[i] = ((up - f(x)) * out_grad).sum() / 2e-5\n"
            "    return slopes",
            "half of it",
        ),
        (
            "def numerical(f, x, out_grad):\n    slopes = np.zeros_like(x)\n    x = x.copy()\n"
            "    for i in np.ndindex(x.shape):\n        up = down = x\n        up[i] += 1e-5\n"
            "        down[i] -= 1e-5\n"
            "        slopes[i] = ((f(up) - f(down)) * out_grad).sum() / 2e-5\n    return slopes",
            "another name for the same array",
        ),
        (
            NUDGE + "result[i] = ((f(up) - f(down)) * out_grad[i]).sum() / 2e-5\n    return result",
            "`index` has no place in it",
        ),
        (
            NUDGE + "result[i] = ((f(up) - f(down)) * out_grad).sum() / 2e-5\n    return result.reshape(-1)",
            "Return the shape of `x`",
        ),
        (
            NUDGE + "result[i] = ((f(x[i] + 1e-5) - f(x[i] - 1e-5)) * out_grad).sum() / 2e-5\n"
            "    return result",
            "`f` wants the whole array",
        ),
        (
            "def numerical(f, x, out_grad):\n    return (f(x + 1e-5) - f(x - 1e-5)) / 2e-5 * out_grad",
            "one after the other",
        ),
        (
            "def numerical(f, x, out_grad):\n    for i in np.ndindex(x.shape):\n        x[i] += 1e-5\n"
            "        up = f(x)\n        x[i] -= 2e-5\n"
            "        slope = ((up - f(x)) * out_grad).sum() / 2e-5\n    return x * 0 + slope",
            "Leave the inputs as they are",
        ),
    ],
    "exp_rule": [
        (rule("exp", A, "return out_grad * np.exp(a)"), "not NumPy"),
        (rule("exp", "return out_grad * ndl.exp(node.inputs)"), "is a tuple"),
        (rule("exp", "return ndl.exp(node.inputs[0])"), "Multiply it by what came back"),
        (rule("exp", "return out_grad * ndl.exp(node)"), "once more"),
        (rule("exp", A, "return out_grad * (a * ndl.exp(a + -1))"), "the rule of a power"),
        (rule("exp", "return node.op.gradient(out_grad, node)"), "the library's own rule"),
    ],
    "log_rule": [
        (rule("log", "return out_grad * (1 / node.inputs)"), "is a tuple"),
        (rule("log", "return out_grad * node ** -1"), "`node` is the result"),
        (rule("log", A, "return a ** -1"), "Multiply it by what came back"),
        (rule("log", A, "return -out_grad * a ** -2"), "you differentiated twice"),
    ],
    "relu_rule": [
        (rule("relu", A, "if a > 0:", "    return out_grad", "return 0 * out_grad"), "Not an `if`"),
        (rule("relu", "return out_grad"), "You pass on everything"),
        (rule("relu", "return out_grad * (out_grad > 0)"), "You apply relu to what came back"),
        (rule("relu", "return ndl.relu(node.inputs[0]) * out_grad"), "the value of relu"),
    ],
    "power_rule": [
        (rule("power", A, "return node.op.scalar * out_grad * (node / a)"), "divides 0 by 0"),
        (rule("power", A, "n = node.op.scalar", "return n * a ** n * out_grad"), "goes down by one"),
        (
            rule("power", A, "n = node.op.scalar", "return a ** (n - 1) * out_grad"),
            "as a factor, and it is missing",
        ),
        (rule("power", A, "n = node.op.scalar", "return n * a ** (n - 1)"), "Multiply it by what came back"),
    ],
    "divide_rule": [
        (rule("divide", AB, "return out_grad / b, out_grad * a * b ** -2"), "lacks its minus sign"),
        (rule("divide", AB, "return out_grad / b, -out_grad * node"), "`b` is squared"),
        (rule("divide", AB, "return out_grad * b, a * out_grad"), "the rule of a product"),
    ],
    "reshape_rule": [
        (rule("reshape", "return out_grad.reshape(node.op.shape)"), "the shape of its *operand*"),
        (rule("reshape", "return out_grad.reshape((-1,))"), "a flat list"),
        (rule("reshape", "return node.inputs[0]"), "the numbers come from"),
    ],
    "transpose_rule": [
        (rule("transpose", "return out_grad"), "swap back"),
        (rule("transpose", "return out_grad.T"), "You swap the last two axes"),
        (rule("transpose", A, "return ndl.reshape(out_grad, a.shape)"), "leaves the numbers in their order"),
    ],
    "summation_rule": [
        (
            rule("summation", A, "s = list(a.shape)", "for ax in node.op.axes: s[ax] = 1", "return s"),
            "Take `range(a.ndim)` then",
        ),
        (rule("summation", "return out_grad"), "needs its own partial adjoint"),
        (rule("summation", A, "return ndl.ones_like(a)"), "These are ones"),
        (rule("summation", A, "return ndl.broadcast_to(out_grad, a.shape)"), "along the *last* axes"),
        (rule("summation", A, "return ndl.ones_like(a) * out_grad"), "along the *last* axes"),
    ],
    "broadcast_rule": [
        (rule("broadcast", "return out_grad.sum()"), "Sum only over the axes"),
        (rule("broadcast", A, "return out_grad.sum((0,)).reshape(a.shape)"), "whatever was repeated"),
        (rule("broadcast", "return ndl.summation(out_grad, 0)"), "whatever was repeated"),
        (rule("broadcast", A, "return ndl.ones_like(a) * ndl.summation(out_grad)"), "one sum"),
        (rule("broadcast", "return out_grad[0]"), "the first copy"),
    ],
    "matmul_rule": [
        (rule("matmul", AB, "return out_grad @ b.T, out_grad @ a.T"), "The second needs the shape of `b`"),
        (rule("matmul", AB, "return out_grad @ b, a @ out_grad"), "must be transposed"),
        (rule("matmul", AB, "return b.T @ out_grad, out_grad @ a.T"), "in the wrong order: `b` stood"),
        (rule("matmul", AB, "return a.T @ out_grad, out_grad @ b.T"), "first that of `a`"),
    ],
    "logsumexp_rule": [
        (rule("logsumexp", A, "return out_grad * ndl.exp(a)"), "You forgot the log"),
        (rule("logsumexp", A, "return ndl.softmax(a, node.op.axes)"), "what came back is missing"),
        (rule("logsumexp", A, "return out_grad * ndl.exp(a - node)"), "lack the axis"),
    ],
    "batched_matmul_rule": [
        (rule("batched_matmul", AB, "return out_grad @ b.T, a.T @ out_grad"), "used for every matrix"),
        (
            rule(
                "batched_matmul",
                AB,
                "ga, gb = out_grad @ b.transpose(), a.transpose() @ out_grad",
                "while ga.ndim > a.ndim: ga = ga.sum(0)",
                "while gb.ndim > b.ndim: gb = gb.sum(0)",
                "return ga, gb",
            ),
            "of length 1 was repeated as well",
        ),
        (rule("batched_matmul", AB, "return out_grad @ b, a @ out_grad"), "Nobody is transposed here"),
        (rule("batched_matmul", AB, "return a.T @ out_grad, out_grad @ b.T"), "first that of `a`"),
        (rule("batched_matmul", AB, "return out_grad @ b.T"), "return a list of both"),
        (rule("batched_matmul", AB, "return b.T @ out_grad, out_grad @ a.T"), "it stays on the right"),
        (
            rule(
                "batched_matmul",
                AB,
                "ga, gb = out_grad @ b.transpose(), a.transpose() @ out_grad",
                "return ga.reshape(a.shape), gb.reshape(b.shape)",
            ),
            "Sum over the copies first",
        ),
    ],
}
