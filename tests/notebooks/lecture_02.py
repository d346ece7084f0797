"""Lecture 02: what its prose claims and what proves it, and answers that somebody might well give."""

from __future__ import annotations

SHOWN = [
    ("module", "Twenty arrays without names", "hook-code", "(20, np.float64(-0.618), np.float64(0.693))"),
    ("library-module", "the module knows them, by name", "affine-names", "['scale', 'shift']"),
    ("count", "a weight of shape (a, b)", "count-code", "([(2, 8), (1, 8), (8, 1), (1, 1)], 33)"),
    (
        "tree",
        "the names on the way from the root down to it",
        "paths",
        "['modules.0.weight',\n 'modules.0.bias',\n 'modules.1.fn.modules.0.weight',\n"
        " 'modules.1.fn.modules.0.bias',\n 'modules.1.fn.modules.2.weight',\n"
        " 'modules.1.fn.modules.2.bias',\n 'modules.2.weight',\n 'modules.2.bias']",
    ),
    ("setattr", "This one is nosy", "loud", "somebody sets size to 3\nsomebody sets size to 4\n"),
    ("shared", "find everything in a tree", "own-tree", "['arm.hand.grip', 'speed']"),
    (
        "modes",
        "counts it where it comes first",
        "twice",
        "(20, ['modules.0.weight', 'modules.0.bias'])",
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
    ("misspelt-read", "Nothing complained", "misspelt-code", "['weight', 'bias', 'wieght']"),
    (
        "misspelt-read",
        "tells you what you may have meant",
        "misspelt-read-code",
        "Linear has no attribute 'biass'; did you mean 'bias'?\n",
    ),
    ("exercise-parts", "trains without any error", "in-a-list", "0"),
    (
        "borrowed",
        "it says `self.weight = Parameter(...)`",
        "borrowed-run",
        "['layers.0.bias', 'layers.0.weight', 'layers.2.bias', 'layers.2.weight']",
    ),
    ("same", "the same as the library's network", "same-code", "True"),
    ("library-way", "finds a layer that you append to a list *later*", "append", "(2, 4)"),
]

TRUE = [
    ("hook", "a network of ten layers", "len(ten_layers) == 10 and len(flat) == 2 * 10"),
    (
        "module",
        "two weights have changed places",
        "mixed_up[2] is flat[4] and mixed_up[4] is flat[2]"
        " and sum(a is not b for a, b in zip(flat, mixed_up)) == 2",
    ),
    ("tree", "the Sequential above holds three", "len(small.modules) == 3"),
    (
        "tree",
        "a Residual, which adds its input to its output, keeps one part in `fn`",
        "network.modules[1].fn is block",
    ),
    ("drag-words", "It has 38 modules", "len(list(transformer.named_modules())) == 38"),
    ("setattr", "Every class has this method from `object`", "'__setattr__' in vars(object)"),
    ("shelves", "They are there before `__init__` runs", "Shelves.__new__(Shelves)._parameters == {}"),
    (
        "modes",
        "Your function would list it twice, under two paths",
        "(r := Base(), setattr(r, 'a', robot.arm), setattr(r, 'b', robot.arm))"
        " and sorted(dict(paths_of(r))) == ['a.hand.grip', 'b.hand.grip']",
    ),
    ("exercise-switch", "`training`, which is True at first", "nn.Module().training is True"),
    (
        "exercise-switch",
        "`train()` turns it on again",
        "nn.Dropout().eval().train().training and not nn.Sequential(nn.Dropout()).eval()[0].training",
    ),
    ("switch-solution", "so nothing is noted", "not robot._modules.keys() - {'arm'}"),
    ("exercise-parts", "needle looks into lists", "growing.parameters()[0] is growing.layers[0].weight"),
    (
        "borrowed",
        "`__init__` and `forward` of the library's own Linear, unchanged",
        "Linear.__init__ is nn.Linear.__init__ and not issubclass(Linear, nn.Module)",
    ),
    (
        "library-way",
        "It learned to tell the two colours apart",
        "losses[0] > 5 * losses[-1] and ((net(X).numpy() > 0) == (y.numpy() > 0)).mean() > 0.95",
    ),
    ("library-way", "It takes no notes at all", "'__setattr__' not in vars(nn.Module)"),
]

BOTH = "self.scale, self.shift = nn.Parameter([3.0]), nn.Parameter([2.0])"
AFFINE = "from needle import nn\nclass Affine(nn.Module):\n    def __init__(self):\n        "
FORWARD = "\n    def forward(self, x):\n        "
REGISTERING = (
    "from needle import nn\nfrom needle.lecture.lecture_02 import Shelves\nclass Registering(Shelves):\n"
    "    def __setattr__(self, name, value):\n        "
)
CLEARED = "self._parameters.pop(name, None)\n        self._modules.pop(name, None)\n        "
SHELVES = "from needle.lecture.lecture_02 import Shelves\n"

NEAR_MISSES = {
    "Affine": [
        (AFFINE + BOTH + FORWARD + "return x * self.shift + self.scale", "`scale` multiplies x"),
        (
            AFFINE + "self.scale, self.shift = ndl.Tensor([3.0]), ndl.Tensor([2.0])"
            f"{FORWARD}return self.scale * x + self.shift",
            "A Tensor is data",
        ),
        (
            AFFINE + f"self.scale = 3.0\n        self.shift = 2.0{FORWARD}return x * self.scale + self.shift",
            "Plain numbers are settings",
        ),
        (
            "from needle import nn\nclass Affine(nn.Module):"
            f"{FORWARD}{BOTH}\n        return self.scale * x + self.shift",
            "so they are new at every call",
        ),
        (AFFINE + BOTH + FORWARD + "self.scale * x + self.shift", "gives None back"),
        (AFFINE + BOTH + FORWARD + "return self.scale * (x + self.shift)", "For x = 1 the result is"),
    ],
    "Registering": [
        (
            REGISTERING + CLEARED + "if type(value) is nn.Parameter:\n"
            "            self._parameters[name] = value\n"
            "        if issubclass(type(value), Shelves):\n            self._modules[name] = value",
            "the attribute itself is not there",
        ),
        (
            REGISTERING + "self.__dict__[name] = value\n        if isinstance(value, nn.Parameter):\n"
            "            self._parameters[name] = value\n        elif hasattr(value, '_modules'):\n"
            "            self._modules[name] = value",
            "is still on its shelf",
        ),
        (
            REGISTERING + CLEARED + "if isinstance(value, ndl.Tensor):\n"
            "            self._parameters[name] = value\n"
            "        if isinstance(value, Shelves):\n            self._modules[name] = value\n"
            "        self.__dict__[name] = value",
            "not every Tensor is a Parameter",
        ),
        (REGISTERING + "self.name = value", "calls `__setattr__` again"),
        (REGISTERING + "super().__setattr__(name, value)", "Nothing is on the shelves"),
    ],
    "named_parameters": [
        (
            "def named_parameters(module):\n"
            "    return [(n, module._parameters[n]) for n in module._parameters]",
            "Go on with the modules",
        ),
        (
            "def named_parameters(module):\n    pairs = list(module._parameters.items())\n"
            "    for name, part in module._modules.items():\n"
            "        for path, p in part._parameters.items():\n"
            "            pairs.append((name + '.' + path, p))\n    return pairs",
            "one level down",
        ),
        (
            "def named_parameters(module):\n    yield from module._parameters.items()\n"
            "    for part in module._modules.values():\n        yield from named_parameters(part)",
            "Several parameters have the same name",
        ),
        (
            "def named_parameters(module, path=''):\n"
            "    pairs = [(f'{path}.{n}', p) for n, p in module._parameters.items()]\n"
            "    for name, part in module._modules.items():\n"
            "        pairs += named_parameters(part, f'{path}.{name}')\n    return pairs",
            "begins with a dot",
        ),
    ],
    "set_training": [
        (
            "def set_training(module, training):\n    setattr(module, 'training', training)",
            "Only the net itself",
        ),
        (
            "def set_training(module, training):\n    module.training = training\n"
            "    for name in module._modules:\n        module._modules[name].training = training",
            "parts have parts",
        ),
        (
            "def set_training(module, training):\n    module.__class__.training = training\n"
            "    for part in module._modules.values():\n        set_training(part, training)",
            "You set it on the class",
        ),
        (
            "def set_training(module, training):\n    for part in module._modules.values():\n"
            "        part.training = training\n        set_training(part, training)",
            "The net itself is not switched",
        ),
    ],
    "parts_in": [
        (
            SHELVES + "def parts_in(name, value):\n    if isinstance(value, Shelves):\n"
            "        return [(name, value)]\n    pairs = []\n    if isinstance(value, list):\n"
            "        for place, item in enumerate(value):\n"
            "            pairs += parts_in(f'{name}.{place}', item)\n    return pairs",
            "A tuple holds things",
        ),
        (
            SHELVES + "def parts_in(name, value):\n    if not isinstance(value, (list, tuple)):\n"
            "        return []\n"
            "    return [(f'{name}.{i}', x) for i, x in enumerate(value) if isinstance(x, Shelves)]",
            "its path is just the name",
        ),
        (
            SHELVES + "def parts_in(name, value):\n    if isinstance(value, Shelves):\n"
            "        return [(name, value)]\n    if not isinstance(value, (list, tuple)):\n"
            "        return []\n"
            "    return [(f'{name}.{i}', x) for i, x in enumerate(value) if isinstance(x, Shelves)]",
            "A list may hold another list",
        ),
        (
            SHELVES + "def parts_in(name, value):\n    if isinstance(value, Shelves):\n"
            "        return [(name, value)]\n    if not isinstance(value, (list, tuple)):\n"
            "        return []\n    return [(f'{name}.{i}', x) for i, x in enumerate(value)]",
            "leave out numbers and texts",
        ),
    ],
}
