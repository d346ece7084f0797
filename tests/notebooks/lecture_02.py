"""Lecture 02: what its prose claims and what proves it, and answers that somebody might well give."""

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
    ("setattr", "This one is nosy", "loud", "somebody sets size to 3\nsomebody sets size to 4\n"),
    (
        "modes",
        "lists it only where it comes first",
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
        "it says `self.weight = Parameter(...)`",
        "borrowed-code",
        "['layers.0.bias', 'layers.0.weight', 'layers.2.bias', 'layers.2.weight']",
    ),
    ("library-way", "yours does not, either", "append", "4\n2\n"),
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
    ("setattr", "PyTorch listens", "'__setattr__' not in vars(nn.Module)"),
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
        "((net(X).numpy().reshape(-1) > 0) == (colours > 0)).mean() > 0.95 and set(colours.tolist()) == "
        "{-1, 1}",
    ),
    ("library-way", "It does not listen", "'__setattr__' not in vars(nn.Module)"),
]

BOTH = "self.scale, self.shift = nn.Parameter([3.0]), nn.Parameter([2.0])"
AFFINE = "from needle import nn\nclass Affine(nn.Module):\n    def __init__(self):\n        "
FORWARD = "\n    def forward(self, x):\n        "
REGISTERING = (
    "from needle import nn\nfrom lectures.lecture_02 import Shelves\nclass Registering(Shelves):\n"
    "    def __setattr__(self, name, value):\n        "
)
CLEARED = "self._parameters.pop(name, None)\n        self._modules.pop(name, None)\n        "
SHELVES = "from lectures.lecture_02 import Shelves\n"

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
        (AFFINE + BOTH + FORWARD + "return self.scale * (x + self.shift)", "For x = 10 the result is"),
        (AFFINE + BOTH + FORWARD + "return 3 * x + 2", "does not use `self.scale`"),
        (
            AFFINE + "shift = nn.Parameter([2.0])\n        scale = nn.Parameter([3.0])"
            f"{FORWARD}return self.scale * x + self.shift",
            "In `__init__`, write",
        ),
        (
            AFFINE + "self.scale, self.shift = nn.Parameter([2.0]), nn.Parameter([3.0])"
            f"{FORWARD}return x * self.scale + self.shift",
            "which of the two numbers is the scale",
        ),
        (AFFINE + BOTH + FORWARD + "return x @ self.scale + self.shift", "number by number"),
        (AFFINE + BOTH + FORWARD + "return x * scale + shift", "In a method, say `self.scale`"),
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
        (
            REGISTERING + CLEARED + "if isinstance(value, nn.Parameter):\n"
            "            self._parameters[name] = value\n        elif isinstance(value, Shelves):\n"
            "            self._modules[name] = value\n        else:\n            self.__dict__[name] = value",
            "belongs to every case",
        ),
        (
            REGISTERING + "self._parameters.pop(name)\n        object.__setattr__(self, name, value)",
            "`pop(name, None)` does not",
        ),
        (
            REGISTERING + CLEARED + "if value is nn.Parameter:\n            self._parameters[name] = value\n"
            "        object.__setattr__(self, name, value)",
            "whether it is the class itself",
        ),
        (
            REGISTERING + CLEARED + "if isinstance(value, nn.Parameter):\n"
            "            self.parameters[name] = value\n        object.__setattr__(self, name, value)",
            "The shelves are two dictionaries",
        ),
        (
            REGISTERING
            + "object.__setattr__(self, name, value)\n        if isinstance(value, nn.Parameter):\n"
            "            self._parameters[name] = value\n        elif isinstance(value, Shelves):\n"
            "            self._modules[name] = value\n        " + CLEARED,
            "later, it is the new one",
        ),
        (
            REGISTERING + CLEARED + "object.__setattr__(self, name, value)\n"
            "        if isinstance(value, nn.Parameter):\n"
            "            self._parameters = {name: value}\n        elif isinstance(value, Shelves):\n"
            "            self._modules = {name: value}",
            "The second has replaced the first",
        ),
        (REGISTERING + "super().__setattr__(name, value)", "Nothing is on the shelves"),
    ],
    "named_parameters": [
        ("def named_parameters(module):\n    return module._parameters.items()", "Make a list of it"),
        (
            "def named_parameters(module):\n    pairs = module._parameters.items()\n"
            "    for name, part in module._modules.items():\n"
            "        pairs += [(f'{name}.{path}', p) for path, p in named_parameters(part)]\n"
            "    return pairs",
            "Make a list of it",
        ),
        (
            "def named_parameters(module):\n    pairs = dict(module._parameters)\n"
            "    for name, part in module._modules.items():\n"
            "        for path, p in named_parameters(part).items():\n"
            "            pairs[f'{name}.{path}'] = p\n    return pairs",
            "later cells need a list of pairs",
        ),
        (
            "def named_parameters(module):\n    yield from module._parameters.items()\n"
            "    for name, part in module._modules.items():\n"
            "        for path, p in named_parameters(part):\n            yield f'{name}.{path}', p",
            "Collect the pairs in a list",
        ),
        (
            "def named_parameters(module):\n    pairs = list(module._parameters.items())\n"
            "    for part in module._modules:\n        pairs += named_parameters(part)\n    return pairs",
            "gives its names alone",
        ),
        (
            "def named_parameters(module):\n    pairs = list(module._parameters.items())\n"
            "    for part in module._modules.values():\n        pairs.append(named_parameters(part))\n"
            "    return pairs",
            "is a list itself",
        ),
        (
            "def named_parameters(module):\n    pairs = [] + module._parameters\n    return pairs",
            "gives its names alone",
        ),
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
            "def set_training(module, training):\n    module.training = True\n"
            "    for part in module._modules.values():\n        set_training(part, training)",
            "You always switch to training",
        ),
        (
            "def set_training(module, training):\n    module.training = training\n"
            "    for part in module._modules.values():\n        return set_training(part, training)",
            "ends it after the first part",
        ),
        (
            "def set_training(module, training):\n    for part in module._modules.values():\n"
            "        set_training(part, training)",
            "Nothing is switched",
        ),
        (
            "def set_training(module, training):\n    module.training = training\n"
            "    for child in module._modules:\n        set_training(child, training)",
            "use `.values()`",
        ),
        (
            "def set_training(module, training):\n    module.train() if training else module.eval()",
            "this net has none yet",
        ),
        (
            "def set_training(module, training):\n    module.training = not training\n"
            "    for part in module._modules.values():\n        set_training(part, training)",
            "the wrong way round",
        ),
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
            "        return name, value\n    return []",
            "Put it into brackets",
        ),
        (
            SHELVES + "def parts_in(name, value):\n    if isinstance(value, Shelves):\n"
            "        return [(name, value)]\n    pairs = []\n    if isinstance(value, (list, tuple)):\n"
            "        for i, item in enumerate(value):\n"
            "            pairs += parts_in(name + '.' + i, item)\n    return pairs",
            "joins texts only",
        ),
        (
            SHELVES + "def parts_in(name, value):\n    if isinstance(value, Shelves):\n"
            "        return [(name, value)]\n    if isinstance(value, (list, tuple)):\n"
            "        return [p for i, x in enumerate(value) for p in parts_in(f'{name}.{i}', x)]",
            "give back an empty list",
        ),
        (
            "from needle import nn\ndef parts_in(name, value):\n    if isinstance(value, nn.Module):\n"
            "        return [(name, value)]\n    pairs = []\n    if isinstance(value, (list, tuple)):\n"
            "        for place, item in enumerate(value):\n"
            "            pairs += parts_in(f'{name}.{place}', item)\n    return pairs",
            "and not `nn.Module`",
        ),
        (
            SHELVES + "def parts_in(name, value):\n    if isinstance(value, Shelves):\n"
            "        return [(name, value)]\n    if not isinstance(value, (list, tuple)):\n        return "
            "[]\n"
            "    return [parts_in(f'{name}.{i}', x) for i, x in enumerate(value)]",
            "Your list holds lists",
        ),
        (
            SHELVES + "def parts_in(name, value):\n    pairs = []\n"
            "    for i, x in enumerate(value):\n        pairs += parts_in(f'{name}.{i}', x)\n    return "
            "pairs",
            "only if it is a list or a tuple",
        ),
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
