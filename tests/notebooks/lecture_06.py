"""Lecture 06: what its prose claims, and what proves it."""

from __future__ import annotations

SHOWN = [
    (
        "exercise-bytes",
        "the last sum holds on to everything that ever went into it",
        "hook-code",
        "200 MB, held by a Tensor of shape ()\n",
    ),
    (
        "memory",
        "the sum of the hundred batches",
        "memory-code",
        "200000804 bytes for a hundred batches\n"
        "three keeps alive: 13 nodes, 6 MB of arrays\n"
        "bytes  name   made by  shape      dtype\n"
        " 1 MB  n2     leaf     (250000,)  float32\n"
        " 1 MB  n3     ×        (250000,)  float32\n"
        " 1 MB  n6     leaf     (250000,)  float32\n"
        " 1 MB  n7     ×        (250000,)  float32\n"
        " 1 MB  n10    leaf     (250000,)  float32\n"
        " 1 MB  n11    ×        (250000,)  float32\n"
        "  4 B  n1     leaf     ()         float32\n"
        "  4 B  n4     Σ        ()         float32\n"
        "  4 B  n5     +        ()         float32\n"
        "  4 B  n8     Σ        ()         float32\n"
        "  4 B  n9     +        ()         float32\n"
        "  4 B  n12    Σ        ()         float32\n"
        "  4 B  three  +        ()         float32",
    ),
    (
        "drag-intro",
        "`cut` has the number without its past: it is a leaf. `loss` has not changed",
        "detach-code",
        "(needle.Tensor([9.]), None, [], True)",
    ),
    (
        "curve",
        "The loop took the same hundred batches, and nothing is left of them",
        "flat-code",
        "0 MB, and the sum is the same: True\n",
    ),
    (
        "price",
        "there are 301 nodes in one loop and 2 in the other",
        "curve-code",
        "after 100 steps: 301 and 2\n<PictureFigure size 500x330 with 1 Axes>",
    ),
    (
        "lazy",
        "cannot be walked back, and the library tells you so",
        "cut-backward",
        "backward: this Tensor does not require a gradient: it is a constant, detached or made under "
        "no_grad(), or none of the Tensors it was computed from has requires_grad=True\n",
    ),
    (
        "lazy-ask",
        "Only the number is missing",
        "lazy-code",
        "None (1,)\n<computational graph of x3: 3 variables, 1 operator>",
    ),
    (
        "lazy-ask",
        "When you do, the whole graph behind it runs",
        "lazy-ask-code",
        "(array([12.], dtype=float32), NDArray([12.], device=cpu()))",
    ),
    (
        "exercise-shape",
        "a plan that you made before must not change",
        "written-code",
        "(needle.Tensor([12.]), needle.Tensor([100.]))",
    ),
    ("lazy-memory", "That would be forty gigabytes", "huge-code", "((100000, 100000), 40.0)"),
    (
        "program",
        "The sum has no `inputs`, and keeps 100 MB all the same",
        "lazy-detached",
        "[] 100.000004 MB\n25000000.0 4 bytes\n",
    ),
    (
        "exercise-train",
        "What comes in between, `n3` and `n4`, never leaves the processor, and the results agree",
        "one-loop",
        "def fused(n1, n2):\n    n3 = n1 * n2\n    n4 = n3 + n1\n    n5 = tanh(n4)\n    return n5\nTrue",
    ),
]

MOVED = "[sum(t.size * t.dtype.itemsize for t in [*n.inputs, n]) / 1e6 for n in {} if n.op]"

TRUE = [
    ("hook", "a quarter of a million numbers, which is 1 MB", "next(batches(1)).numpy().nbytes == 1_000_000"),
    ("memory", "makes the same count", "viz.memory(sum_loss).total == kept_bytes(sum_loss)"),
    (
        "detach",
        "Half of it is the batches, and the other half is their squares",
        "[sum(row.bytes for row in viz.memory(sum_loss).rows if row.made_by == kind and row.bytes > 4) / 1e6"
        " for kind in ('leaf', '×')] == [100, 100]",
    ),
    (
        "detach",
        "The last 804 bytes are the losses and their sums, 4 bytes each",
        "[row.bytes for row in viz.memory(sum_loss).rows if row.shape == ()] == [4] * 201",
    ),
    ("bytes-solution", "returns each node once", "len(ndl.autograd.find_topo_sort([loss])) == 2"),
    (
        "bytes-solution",
        "a reshaped Tensor looks at the same memory",
        "viz.memory(sum_loss.inputs[0]).total == viz.memory(sum_loss.inputs[0].reshape((1, 1))).total",
    ),
    (
        "price",
        "there are 301 nodes in one loop and 2 in the other. The first keeps three more in each step",
        "(kept[-1], flat[-1], set(np.diff(kept)), set(flat)) == (301, 2, {3}, {2})",
    ),
    (
        "lazy",
        "For a leaf that you make, it is True; for a detached Tensor, it is False",
        "x.requires_grad and not x.detach().requires_grad",
    ),
    (
        "lazy",
        "operators compute their numbers and note no `inputs`",
        "(lambda y: y.inputs == [] and y.item() == 81)(ndl.no_grad()(lambda: cut * loss)())",
    ),
    ("lazy", "until you set it back to `False`", "ndl.autograd.LAZY_MODE is False"),
    (
        "traffic",
        "`*` moves 12 MB, `+` another 12, and `tanh` 8. That is 32 MB in all",
        MOVED.format("ndl.autograd.find_topo_sort([out])") + " == [12, 12, 8]",
    ),
    ("program", "so each box takes 4 MB", "viz.memory(a).total == viz.memory(b).total == 4_000_000"),
    (
        "exercise-train",
        "into `w.grad`, anew each time",
        "(lambda w: [[(w * w).backward(), w.grad.item()][1] for _ in 'ab'])(ndl.Tensor(3.0)) == [6, 6]",
    ),
    ("train-run", "Are the losses going down", "losses[-1] < 1e-3 * losses[0] and len(losses) == 50"),
    (
        "exercise-train",
        "`w` stays a leaf",
        "[x1.is_leaf(), setattr(x1, 'data', x2), x1.is_leaf()] == [True, None, True]",
    ),
]
