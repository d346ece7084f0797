"""Lecture 07: what its prose claims, and what proves it."""

from __future__ import annotations

SHOWN = [
    (
        "adjoint",
        "A thousand runs and one more, or one run and one walk back",
        "hook-code",
        "by nudging: 1001 runs\nby backward(): 1 run, and a walk back\nthe same thousand numbers: True\n",
    ),
    (
        "one-step",
        "again, at `v1 = 0`",
        "v1-to-v4",
        "(needle.Tensor([1.]), needle.Tensor([2.]), needle.Tensor([2.]))",
    ),
    (
        "product-rule",
        "a nudge of `v2` is multiplied by `v3`",
        "one-step-back",
        "(needle.Tensor([2.]), needle.Tensor([1.]))",
    ),
    (
        "product-rule",
        "the **sum** of its partial adjoints",
        "sum-of-partials",
        "(needle.Tensor([2.]), needle.Tensor([1.]), needle.Tensor([3.]))",
    ),
    (
        "check-sum",
        "First `v2` through the product alone, with `v3` held at 2",
        "central-difference",
        "v2 via v4: 2.0\nv3:        1.0\nv2:        3.0\n",
    ),
    ("order", "`v1` gets what `v2` passes on", "too-early", "(needle.Tensor([2.]), needle.Tensor([3.]))"),
    (
        "exercise-order",
        "About a billion ways",
        "thirty-doublings",
        "ways back to a: 1073741824\nnodes visited:  31\n"
        "how often each node is used, from top down: [0, 2, 2, 2] …\n",
    ),
    (
        "steps",
        "the partial adjoints, each with the consumer it came through, and their sum",
        "step-through",
        "adjoint of v4 = 1 (seed) = 1.0\nadjoint of v3 = 1 (via v4) = 1.0\n"
        "adjoint of v2 = 2 (via v4) + 1 (via v3) = 3.0\nadjoint of v1 = 3 (via v2) = 3.0\n",
    ),
    (
        "backward",
        "which is `None` before",
        "backward-code",
        "(None,\n needle.Tensor([3.]),\n needle.Tensor([3.]),\n needle.Tensor([1.]),\n needle.Tensor([1.]))",
    ),
    (
        "check-backward",
        "run the whole graph again",
        "check-backward-code",
        "at 0: by nudging 3.0, by backward() 3.0000\nat 0.5: by nudging 7.0853, by backward() 7.0853\n"
        "at -1: by nudging 0.6386, by backward() 0.6386\n",
    ),
    (
        "second-order",
        "every adjoint is itself a node",
        "second-derivative",
        "v2_via_v4 is the result of EWiseMul on v3 itself: True\n"
        "first derivative: needle.Tensor([3.]) second: needle.Tensor([5.]) by nudging: 5.0\n",
    ),
    ("pay-off", "`grad` is **replaced**", "backward-again", "needle.Tensor([3.])"),
    ("same-numbers", "Compare all 33 numbers", "same-numbers-code", "True"),
]

TRUE = [
    ("one-step", "`v1 = 0`", "v1.item() == 0"),
    ("product-rule", "so its rule gives a tuple of one", "len(v3.op.gradient_as_tuple(v3_adj, v3)) == 1"),
    (
        "second-order",
        "multiplies what came back by the other operand",
        "[type(p.op).__name__ for p in v4.op.gradient_as_tuple(v1, v4)] == ['EWiseMul'] * 2",
    ),
    (
        "exercise-order",
        "0 for `v4`, 1 for `v3`, 2 for `v2` and 1 for `v1`",
        "[count_uses(v4)[node] for node in (v4, v3, v2, v1)] == [0, 1, 2, 1]",
    ),
    (
        "backward",
        "The dashed edges are those values",
        "set(re.findall(r'(n.) -> a._op .*dashed', viz.draw_gradient(v4).source)) == {'n2', 'n3'}",
    ),
    (
        "backward",
        "stores the adjoint of every variable in its `grad`",
        "all(node.grad.item() == total.item() for node, _, total in ndl.autograd.adjoints(v4))",
    ),
    ("second-order", "leaves every `grad` as it is", "[v1.grad, ndl.gradients(v4, [v1])][0] is v1.grad"),
    ("second-backward", "`v1.grad` is 3", "v1.grad.item() == 3"),
    (
        "pay-off",
        "Each time, the next derivative replaces `x.grad`",
        "[z := ndl.Tensor([2.0]), (z * z * z).backward(), z.grad.item(), z.grad.backward(), z.grad.item()]"
        "[2::2] == [12, 12]",
    ),
    (
        "order-rule",
        "Along each of them, 1 comes back to `a`",
        "ndl.gradients((z := ndl.Tensor([1.0])) + z, [z])[0].item() == 2",
    ),
    ("exercise-nth", "What arrives at `v1` is 5", "ndl.gradients(v1.grad, [v1])[0].item() == 5"),
    (
        "exercise-nth",
        "so that is the third row",
        "[viz.draw_gradient(v1.grad, wrt=v1).source.count('second-order gradient ' + to) for to in '→←']"
        " == [1, 1]",
    ),
    ("exercise-nth", "no rule asks for its value", "v4 not in ndl.autograd.find_topo_sort([v1.grad])"),
    (
        "reverse-order-solution",
        "Python ends a recursion when too many calls are open",
        "1_000 <= sys.getrecursionlimit() <= 10_000",
    ),
    (
        "reverse-solution",
        "is `walk_back` in `needle/reverse.py`",
        "ndl.autograd.walk_back is ndl.reverse.walk_back"
        " and '_walk' in ndl.autograd.adjoints.__code__.co_names"
        " and 'walk_back' in ndl.autograd._walk.__code__.co_names",
    ),
    (
        "reverse-solution",
        "begins with another adjoint than 1 if you give it one",
        "ndl.gradients(v4, [v1], ndl.Tensor([2.0]))[0].item() == 6",
    ),
    (
        "pay-off",
        "2 · 8 weights and 8 biases in its first layer, 8 weights and 1 bias in its second",
        "[p.numpy().size for p in model.parameters()] == [16, 8, 8, 1] and 16 + 8 + 8 + 1 == 33",
    ),
    (
        "same-numbers",
        "it leaves a few points on the wrong side",
        "0 < np.sum((model(X).numpy() > 0) != (y.numpy() > 0)) <= 5",
    ),
    ("same-numbers", "After 120 steps it leaves", "len(losses) == 120"),
    ("exercise-order", "visits each node **once**", "len(list(ndl.autograd.adjoints(top))) == 31"),
    ("square-solution", "compares your rule", "ndl.gradcheck(Square(), ndl.Tensor([3.0]))"),
    (
        "summary",
        "a node after all its consumers",
        "[node for node, *_ in ndl.autograd.adjoints(v4)] == [v4, v3, v2, v1]",
    ),
]
