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
        "hook-second",
        "One number came back to the sum, and it was *repeated*",
        "hook-sum",
        "needle.Tensor([[1. 1. 1.]\n               [1. 1. 1.]])",
    ),
    (
        "hook-second",
        "a row is repeated, and then all is summed up",
        "hook-copies",
        "needle.Tensor([4. 4. 4.])",
    ),
    ("negate", "The first agrees with nudging, and the second does not", "agree-code", "(True, False)"),
    ("exercise-relu", "is stopped elsewhere", "relu-minus-one", "[needle.Tensor([0. 5.])]"),
    ("judge-one", "your four rules", "judge-one-code", "[True, True, True, True]"),
    ("judge-two", "these three", "judge-two-code", "[True, True, True]"),
    ("matmul-why", "The shapes leave one way only", "shapes-code", "((2, 3), (3, 4))"),
    ("lse-intro", "divided by the sum", "shares-code", "needle.Tensor([0.5 0.5])"),
    ("judge-three", "the rules that change shapes", "judge-three-code", "[True, True, True, True]"),
    ("every", "The losses are the same", "same-losses", "(True, True)"),
    (
        "blind",
        "All of them",
        "every-code",
        "add, add_scalar, multiply, mul_scalar, divide, divide_scalar, power, power_scalar, negate,\n"
        "exp, log, sqrt, abs, sin, cos, erf, relu, leaky_relu, gelu, sigmoid, tanh, maximum,\n"
        "minimum, clip, mask, where, cast, to_device, matmul, summation, mean, max, min, logsumexp,\n"
        "softmax, logsoftmax, standardize, broadcast_to, reshape, transpose, permute, flip, dilate,\n"
        "undilate, pad, getitem, stack, concatenate, split, make_tuple, tuple_get_item, sum_tuples,\n"
        "fused_add_scalars, windows, conv, avg_pool2d, max_pool2d, lstm_steps\n(58, 58)",
    ),
    ("exercise-batched", "A check sees only where it looks", "wrong-code", "(True, False)"),
]

TRUE = [
    ("agree", "in float32, rounding would drown the nudge", "np.float32(1) + np.float32(1e-8) == 1"),
    (
        "negate",
        "so the rule is `-out_grad`",
        "agree(ndl.negate, some, rule=lambda out_grad, node: -out_grad)",
    ),
    ("relu-solution", "The library takes 0", "ndl.gradients(ndl.relu(zeros), [zeros])[0].numpy().max() == 0"),
    ("power-solution", "aᵇ · log(a), times what came back", "agree(ndl.power, positive, some)"),
    (
        "exercise-power",
        "That holds for n = −1 and 0.5 as well",
        "all(agree(lambda a, n=n: a**n, positive, rule=power_rule) for n in (-1, 0.5))",
    ),
    (
        "shapes",
        "**the shape of its operand**, always",
        "[g.shape for g in ndl.gradients(a @ b, [a, b])] == [(2, 3), (3, 4)]",
    ),
    (
        "duality",
        "Below the sum you find a broadcast, and below the broadcast a sum",
        "[re.findall('Σ|broadcast to', viz.draw_gradient(total(ndl.Tensor([0.5]), 2)).source).count(sign)"
        " for sign in ('broadcast to', 'Σ')] == [2, 2]",
    ),
    (
        "duality-why",
        "The adjoint of `a` is the number of copies, whatever `a` is",
        "[ndl.gradients(total(x, n), [x])[0].item() for n in (2, 5) for x in [ndl.Tensor([n - 4.0])]] == "
        "[2, 5]",
    ),
    (
        "sum-solution",
        "the sums of rows end up in the columns",
        "not agree(lambda a: ndl.summation(a, (1,)), rng.normal(size=(3, 3)),"
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
        "blind",
        "`argmax`, `compare` and `sign`",
        "{name for name in ndl.ops.__all__ if name.islower()} - set(samples) == {'argmax', 'compare', "
        "'sign'}",
    ),
    (
        "exchange-intro",
        "exchange the rules",
        "len(yours) == 5 and all(o.gradient is r for o, r in library.items())",
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
            "def numerical(f, x, out_grad):\n    for i in np.ndindex(x.shape):\n        x[i] += 1e-5\n"
            "        up = f(x)\n        x[i] -= 2e-5\n"
            "        slope = ((up - f(x)) * out_grad).sum() / 2e-5\n    return x * 0 + slope",
            "Leave the inputs as they are",
        ),
    ],
    "exp_rule": [
        (rule("exp", "return ndl.exp(node.inputs[0])"), "Multiply it by what came back"),
        (rule("exp", "return out_grad * ndl.exp(node)"), "once more"),
        (rule("exp", A, "return out_grad * (a * ndl.exp(a + -1))"), "the rule of a power"),
        (rule("exp", "return node.op.gradient(out_grad, node)"), "the library's own rule"),
    ],
    "log_rule": [
        (rule("log", "return out_grad * node ** -1"), "`node` is the result"),
        (rule("log", A, "return a ** -1"), "Multiply it by what came back"),
        (rule("log", A, "return -out_grad * a ** -2"), "you differentiated twice"),
    ],
    "relu_rule": [
        (rule("relu", "return out_grad"), "You pass on everything"),
        (rule("relu", "return out_grad * (out_grad > 0)"), "You apply relu to what came back"),
        (rule("relu", "return ndl.relu(node.inputs[0]) * out_grad"), "the value of relu"),
    ],
    "power_rule": [
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
        (rule("summation", "return out_grad"), "needs its own partial adjoint"),
        (rule("summation", A, "return ndl.ones_like(a)"), "These are ones"),
        (rule("summation", A, "return ndl.broadcast_to(out_grad, a.shape)"), "along the *last* axes"),
        (rule("summation", A, "return ndl.ones_like(a) * out_grad"), "along the *last* axes"),
    ],
    "broadcast_rule": [
        (rule("broadcast", A, "return out_grad.sum((0,)).reshape(a.shape)"), "whatever was repeated"),
        (rule("broadcast", "return ndl.summation(out_grad, 0)"), "whatever was repeated"),
        (rule("broadcast", A, "return ndl.ones_like(a) * ndl.summation(out_grad)"), "one sum"),
        (rule("broadcast", "return out_grad[0]"), "the first copy"),
    ],
    "matmul_rule": [
        (rule("matmul", AB, "return out_grad @ b, a @ out_grad"), "nobody is transposed"),
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
    ],
}
