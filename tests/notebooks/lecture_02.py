"""Lecture 02: what its prose claims, and what proves it."""

from __future__ import annotations

SHOWN = [
    ("module", "it still runs and gives another answer", "hook-code", "(0.989, 0.062)"),
    (
        "count",
        "the module knows them by name",
        "count-code",
        "['scale', 'shift']\n([(2, 8), (1, 8), (8, 1), (1, 1)], 33)",
    ),
    (
        "tree",
        "each place of the list counts as a name",
        "paths",
        "['modules.0.weight',\n 'modules.0.bias',\n 'modules.1.fn.modules.0.weight',\n"
        " 'modules.1.fn.modules.0.bias',\n 'modules.1.fn.modules.2.weight',\n"
        " 'modules.1.fn.modules.2.bias',\n 'modules.2.weight',\n 'modules.2.bias']",
    ),
    ("setattr", "This one prints what is set", "loud", "somebody sets size to 3\nsomebody sets size to 4\n"),
    (
        "modes",
        "the shared layer is there once, under its first path",
        "twice",
        "(['left.grip', 'right.grip'], ['modules.0.weight', 'modules.0.bias'])",
    ),
    (
        "modes",
        "about half of the numbers to 0 and doubles the others",
        "dropout-training",
        "needle.Tensor([0. 2. 2. 2. 0. 0. 0. 0.])",
    ),
    (
        "exercise-switch",
        "`eval()` turns it off",
        "dropout-use",
        "(needle.Tensor([1. 1. 1. 1. 1. 1. 1. 1.]), False)",
    ),
    (
        "lists",
        "needle even says what you may have meant",
        "misspelt-code",
        "['weight', 'bias', 'wieght']\nLinear has no attribute 'biass'; did you mean 'bias'?\n",
    ),
    ("exercise-parts", "trains without any error", "in-a-list", "0"),
    (
        "pay-off",
        "Their code says `self.weight = Parameter(...)`",
        "borrowed-code",
        "['layers.0.bias', 'layers.0.weight', 'layers.2.bias', 'layers.2.weight']",
    ),
    ("library-way", "your module misses the new layer", "append", "4\n2\n"),
]

TRUE = [
    ("hook", "a network of twenty layers", "len(flat) == 20"),
    ("module", "They have the same shape", "{array.shape for array in flat} == {(8, 8)}"),
    ("tree", "the Sequential above holds three", "len(small.modules) == 3"),
    ("tree", "keeps one module in its attribute `fn`", "network.modules[1].fn is block"),
    (
        "drag-words",
        "the 177 single numbers, and in this list the eight arrays",
        "sum(p.size for p in network.parameters()) == 177 and len(network.parameters()) == 8",
    ),
    ("drag-words", "It has 38 modules, counting itself", "len(list(transformer.named_modules())) == 38"),
    ("setattr", "Every class has this method from `object`", "'__setattr__' in vars(object)"),
    (
        "exercise-register",
        "Both are there, and empty, before `__init__` runs",
        "(new := Shelves.__new__(Shelves)) and new._parameters == {} and new._modules == {}",
    ),
    (
        "exercise-switch",
        "`training`, which is True at first",
        "nn.Module().training is True and Base().training is True",
    ),
    (
        "exercise-switch",
        "`train()` turns it on again",
        "nn.Dropout().eval().train().training and not nn.Sequential(nn.Dropout()).eval()[0].training",
    ),
    ("switch-solution", "so nothing is noted", "set(robot._modules) == {'left', 'right'}"),
    (
        "lists",
        "the layer goes on with its old weight",
        "(w := layer.weight.numpy()).any()"
        " and abs(layer(ndl.Tensor([[1.0, 1.0]])).item() - (w.sum() + layer.bias.numpy().sum())) < 1e-6",
    ),
    (
        "exercise-parts",
        "needle looks into lists",
        "(n := nn.Module(), setattr(n, 'layers', [nn.Linear(2, 2)])) and len(n.parameters()) == 2",
    ),
    (
        "pay-off",
        "A list that is set anew takes its old layers off the shelf",
        "(m := Module(), setattr(m, 'layers', [Linear(1, 1), Linear(1, 1)]),"
        " setattr(m, 'layers', [m.layers[0]])) and len(m.parameters()) == 2",
    ),
    (
        "pay-off",
        "`parameters` lists each parameter once",
        "(m := Module(), part := Linear(1, 1), setattr(m, 'a', part), setattr(m, 'b', part))"
        " and len(m.parameters()) == 2 and len(paths_of(m)) == 4",
    ),
    (
        "pay-off",
        "`__init__` and `forward` of the library's own Linear, unchanged",
        "Linear.__init__ is nn.Linear.__init__ and not issubclass(Linear, nn.Module)",
    ),
    (
        "same",
        "in each of 150 steps",
        "len(learn(lambda x: x @ w, [w := nn.Parameter([[0.0], [0.0]])], points, colours)) == 150",
    ),
    (
        "same",
        "the same as the library's network with the same initial numbers",
        "np.array_equal(Net(np.random.default_rng(0))(X).numpy(), library(X).numpy())",
    ),
    ("same", "The blue points have the label 1, the orange ones -1", "set(colours.tolist()) == {-1, 1}"),
    (
        "library-way",
        "It told the two apart",
        "((net(X).numpy().reshape(-1) > 0) == (colours > 0)).mean() > 0.95",
    ),
    ("library-way", "It does not listen", "'__setattr__' not in vars(nn.Module)"),
]
