"""Lecture 06: what its prose claims and what proves it, and answers that somebody might well give."""

from __future__ import annotations

LOOP = "def train(batches):\n    w, losses = ndl.Tensor([0.0]), []\n    for x, y in batches:\n"
LOSS = LOOP + "        loss = ((x * w - y) ** 2).sum()\n        loss.backward()\n        "
END = "\n    return losses"
SUM = "def add_up(batches):\n    total = ndl.Tensor(0.0)\n    for x in batches:\n        "

SHOWN = [
    (
        "chain",
        "Two hundred megabytes, held by a Tensor of one number. (Its shape is `()`",
        "hook-code",
        "(200, ())",
    ),
    (
        "memory",
        "makes the same count",
        "memory-code",
        "200.000804",
    ),
    (
        "drag-intro",
        "`cut` has the number without its past: it is a leaf. `loss` has not changed",
        "detach-code",
        "(needle.Tensor([9.]), None, [], True)",
    ),
    (
        "curve",
        "The same hundred batches came by, and nothing is left of them",
        "flat-code",
        "(0, ())",
    ),
    ("price", "Three more in each step, against two in all", "curve-numbers", "(4, 301, 2, 2)"),
    (
        "both-needed",
        "cannot be walked back, and the library tells you so",
        "cut-backward",
        "backward: this Tensor does not require a gradient: it is a constant, detached or made under "
        "no_grad(), or none of the Tensors it was computed from has requires_grad=True\n",
    ),
    ("both-needed", "no past is kept at all: `no_grad`", "no-grad", "(needle.Tensor([9.]), [])"),
    (
        "lazy-ask",
        "When you do, the whole graph behind it runs",
        "lazy-ask-code",
        "(array([12.], dtype=float32), NDArray([12.], device=cpu()))",
    ),
    (
        "exercise-shape",
        "what you planned before must not notice",
        "written-code",
        "(needle.Tensor([12.]), needle.Tensor([100.]))",
    ),
    (
        "lazy-memory",
        "Forty gigabytes",
        "huge-code",
        "((100000, 100000), 40.0)",
    ),
    ("program", "a plan needs its ingredients", "lazy-detached", "([], 100.000004)"),
    ("program", "Once you ask for the number, it lets go of them", "lazy-detached-asked", "(25000000.0, 4)"),
    ("program", "Take six operators on a million numbers", "traffic-code", "(6, 60.0)"),
    ("write-program", "That is a fifth", "one-loop", "12.0"),
    (
        "compile",
        "A function of two numbers",
        "write-program-code",
        "def fused(n1, n2):\n    n3 = n1 * n2\n    n4 = n3 + n1\n    n5 = tanh(n4)\n    n6 = -n2\n"
        "    n7 = exp(n6)\n    n8 = n5 * n7\n    return n8\n",
    ),
    (
        "compile-explained",
        "The numbers are those of the library, and `out` was still waiting",
        "compile-code",
        "(True, True)",
    ),
]

TRUE = [
    ("hook", "a quarter of a million numbers, which is 1 MB", "next(batches(1)).numpy().nbytes == 1_000_000"),
    ("hook", "They are all 1", "bool((next(batches(1)).numpy() == 1).all())"),
    ("memory", "makes the same count", "viz.memory(sum_loss).total == kept_bytes(sum_loss)"),
    (
        "detach",
        "Half of it are batches, the other half their squares",
        "[sum(row.bytes for row in viz.memory(sum_loss).rows if row.made_by == kind and row.bytes > 4) / 1e6"
        " for kind in ('leaf', '×')] == [100, 100]",
    ),
    ("bytes-solution", "returns each node once", "len(ndl.autograd.find_topo_sort([loss])) == 2"),
    (
        "bytes-solution",
        "a reshaped Tensor looks at the same memory",
        "viz.memory(sum_loss.inputs[0]).total == viz.memory(sum_loss.inputs[0].reshape((1, 1))).total",
    ),
    ("add-up-solution", "gives a plain number", "type(flat_sum.item()) is float"),
    ("lazy-mode-flag", "until you set it back to `False`", "ndl.autograd.LAZY_MODE is False"),
    ("compile-explained", "it knows five operators", "len(FORMS) == 5"),
    ("train-run", "Are the losses going down", "losses[-1] < 1e-3 * losses[0] and len(losses) == 50"),
    (
        "exercise-train",
        "`w` stays a leaf",
        "[x1.is_leaf(), setattr(x1, 'data', x2), x1.is_leaf()] == [True, None, True]",
    ),
]

NEAR_MISSES = {
    "kept_bytes": [
        ("def kept_bytes(output):\n    return output.size * output.dtype.itemsize", "the output alone"),
        (
            "def kept_bytes(output):\n    total, stack = 0, [output]\n    while stack:\n"
            "        node = stack.pop()\n        total += node.size * node.dtype.itemsize\n"
            "        stack.extend(node.inputs)\n    return total",
            "once for each way",
        ),
        (
            "def kept_bytes(output):\n    nodes = ndl.autograd.find_topo_sort([output])\n"
            "    return 4 * sum(int(np.prod(node.shape)) for node in nodes)",
            "Not every number takes four bytes",
        ),
        (
            "def kept_bytes(output):\n    seen, stack, total = set(), list(output.inputs), 0\n"
            "    while stack:\n        node = stack.pop()\n        if node not in seen:\n"
            "            seen.add(node)\n            total += node.numpy().nbytes\n"
            "            stack += node.inputs\n    return total",
            "The output itself is missing",
        ),
    ],
    "add_up": [
        (
            SUM + "total = total + (x * x).sum()\n        total.detach()\n    return total",
            "returns a new one",
        ),
        (SUM + "total = total + (x * x).sum()\n    return total.item()", "Cut in every step"),
        (
            SUM + "loss = (x * x).sum().detach()\n        total = loss + total\n    return total",
            "a leaf that wants",
        ),
        (SUM + "total = (x * x).sum().item()\n    return total", "the loss of the last batch"),
        (
            "def add_up(batches):\n    seen = list(batches)\n"
            "    return sum((x * x).sum().item() for x in seen)",
            "which Tensor of the step before",
        ),
    ],
    "shape_of": [
        ("def shape_of(f, x):\n    return tuple(f(x).numpy().shape)", "but `f` ran for it"),
        (
            "def shape_of(f, x):\n    with ndl.lazy():\n        y = f(x)\n    return y.numpy().shape",
            "but `f` ran for it",
        ),
        ("def shape_of(f, x):\n    with ndl.lazy():\n        f(x)\n    return x.shape", "of what goes in"),
        (
            "def shape_of(f, x):\n    with ndl.lazy():\n        return len(f(x).shape)",
            "how many axes there are",
        ),
        ("def shape_of(f, x):\n    with ndl.lazy():\n        f(x)", "Is a `return` missing?"),
    ],
    "train": [
        (LOSS + "w = w - w.grad * 0.1\n        losses += [loss]" + END, "the loop as it was"),
        (LOSS + "w = w - w.grad * 0.1\n        losses += [float(loss)]" + END, "a chain"),
        (LOSS + "w.data = w - w.grad * 0.1\n        losses += [loss]" + END, "keeps its whole step"),
        (
            LOSS + "w = w.detach() - 0.1 * w.grad.detach()\n        losses += [loss.item()]" + END,
            "asks for no gradient",
        ),
        (LOSS + "w.data - w.grad * 0.1\n        losses += [loss.item()]" + END, "never moves"),
    ],
}
