"""Texts that mean harm, or that are none of the language: under words of the reason that each must get."""

from __future__ import annotations

__all__ = ["HOSTILE"]

_SHORT = {
    "names begin and end with a letter": [
        "().__class__.__bases__[0].__subclasses__()", "(1).__class__", "[].__class__.__mro__",
        "x = 1\nx.__class__", "x = 1\nx.__init__.__globals__", "x = 1\nx.__dict__", "x = 1\nx._data",
        "x = 1\nx._operands", "x = 1\nx.__del__()", "exp.__globals__", "exp.__code__",
        "exp.__self__.__dict__", "tensor.__init__", "sum.__call__(1)", "x = 1\nx.T.__class__",
        "__builtins__", "__import__(1)", "__name__", "__file__", "__loader__", "__spec__", "_", "__",
        "_x = 1", "x_ = 1", "a__b = 1", "x = 1\nx.__getattribute__(1)", "x = 1\nx.__reduce__()",
        "x = 1\nx.__setattr__(1, 2)", "f(_a=1)", "x = [1]\nx.__iter__", "x = [1]\nx.__array__()",
        "x = 1\n(x + 1).__class__.__name__", "for _ in range(3):\n  1",
    ],
    "a Tensor has no value": [
        "x = 1\nx.data", "x = 1\nx.grad", "x = 1\nx.op", "x = 1\nx.inputs", "x = 1\nx.shape",
        "x = 1\nx.dtype", "x = 1\nx.device", "x = 1\nx.cached_data", "x = 1\nx.requires_grad",
        "x = 1\nx.sum", "x = 1\nx.t", "x = 1\nx.real", "x = 1\nx.exp.func", "x = 1\nx.op.compute",
        "os.system", "sys.modules",
    ],
    "isn't a method of Tensors": [
        "x = 1\nx.numpy()", "x = 1\nx.item()", "x = 1\nx.realize_cached_data()", "x = 1\nx.make_const(1)",
        "x = 1\nx.backward()", "x = 1\nx.to(1)", "x = 1\nx.astype(1)", "x = 1\nx.ones(3)",
        "x = 1\nx.randn(3)", "x = 1\nx.tensor()", "x = 1\nx.tofile(1)", "x = 1\nx.format(1)",
        "(1).bit_length()", "[1].append(2)",
    ],
    "isn't a function": [
        "eval(1)", "exec(1)", "compile(1)", "open(1)", "input()", "getattr(1, 2)", "setattr(1, 2, 3)",
        "vars()", "globals()", "locals()", "dir()", "help()", "exit()", "quit()", "type(1)", "super()",
        "object()", "breakpoint()", "memoryview(1)", "bytes(10)", "int(1)", "list([1])", "iter([1])",
        "next([1])", "id(1)", "hash(1)", "range(3)", "map(exp, [1])", "pow(9, 9)", "numpy(1)", "os(1)",
        "gradients(1, [1])", "backward(1)", "load(1)", "save(1)", "matmul2(1, 2)",
    ],
    "has no value yet": [
        "os", "sys", "np.ones(3)", "ndl.exp(1)", "needle", "eval", "builtins", "self", "nan", "inf", "y = y",
        "a += 1", "x = 1\nx + xx",
    ],
    "is a function; call it": [
        "grad += 1", "exp", "x = exp", "[exp]", "tensor", "sum + 1", "exp[0]", "exp.T", "softmax_loss.exp()",
    ],
    "is a function; choose another name": [
        "exp = 1", "sum = 1", "range = 3", "a, exp = 1, 2", "for tensor in range(3):\n  1", "Tensor = 1",
    ],
    "you can't define": [
        "lambda: 1", "f = lambda x: x", "def f(): 1", "class A: 1", "(lambda: 1)()", "@exp\ndef f(): 1",
    ],
    "there is nothing to import": [
        "import os", "from os import system", "import os as exp", "from . import x", "x = 1; import sys",
    ],
    "is a word of Python": [
        "async def f(): 1", "await x", "yield 1", "yield from x", "global x", "nonlocal x", "del x", "pass",
        "break", "continue", "raise x", "try: x", "with x: y", "assert 1", "1 is 1", "x = 1 except 2",
        "finally", "x as y", "async for x in y: 1",
    ],
    "use where": [
        "1 if 2 else 3", "if 1: 2", "elif 1: 2", "else: 1",
    ],
    "repeat with for": [
        "while 1: 2", "while x: x",
    ],
    "leave the argument out": [
        "x = 1\nx[None]", "sum(1, axes=None)", "None",
    ],
    "write 1": [
        "True", "x = 1\nx + True",
    ],
    "multiply comparisons": [
        "1 and 2", "1 & 2",
    ],
    "subtract a comparison": [
        "not 1", "~1",
    ],
    "the last line is": [
        "return 1", "print(1)", "print",
    ],
    "there is no text in quotes": [
        '"a"', "'a'", "f'{1}'", 'f"{x}"', "b'a'", "r'a'", '"""a"""', "'''a'''", "'a' * 10**9", "x = 'a' 'b'",
        "x['a']", 'u"a"', "f'{().__class__}'", "'", '"',
    ],
    "there are no sets and dictionaries": [
        "{}", "{1}", "{1: 2}", "{**x}", "{x for x in y}", "{", "}", "exp(**{})",
    ],
    "for within brackets isn't supported here": [
        "[x for x in y]", "(x for x in y)", "[1 for i in range(9)]", "sum(x for x in y)",
        "[[1 for i in range(9)] for j in range(9)]",
    ],
    "assign with = on a line of its own": [
        "(x := 1)", "x := 1", "[y := 1, y]",
    ],
    "* before a value isn't supported here": [
        "* 1", "exp(*x)", "[*x]", "x = *y, 1", "exp(*[1, 2])", "stack([*x])",
    ],
    "** before an argument isn't supported here": [
        "x = 1\nexp(**x)", "exp(**1)",
    ],
    "an annotation isn't supported here": [
        "x: y = 1", "x: 1", "a:b",
    ],
    "you can't define functions": [
        "x -> y",
    ],
    "isn't supported here": [
        "x = 1\nx // 2", "5 % 2", "1 << 99", "1 >> 1", "1 | 2", "1 == 1", "1 != 1", "x <> y",
        "x = 1 \\\n+ 1", "`x`", "$x", "?x", "!ls", "%time", "x!", "a ? b", "1 in [1]", "x @ y ~", "...",
        "x = [1]\nx[...]", "for x, y in range(3):\n  1", "match 1:\n  case 1: 1",
    ],
    "only functions can be called": [
        "(1)(2)", "exp(1)(2)", "[1](2)", "(exp)(1)(2)", "x = 1\nx[0](1)", "x = 1\nx.exp()()", "1()", "[]()",
        "(1 + 2)(3)",
    ],
    "only a name can be assigned to": [
        "x = 1\nx[0] = 2", "x = 1\nx[0] += 2", "x = 1\nx.T *= 2",
        "x = 1\nx.data = 2", "x = 1\nx.T = 2", "[1][0] = 2",
    ],
    "a loop goes over range(n)": [
        "for i in x: 1", "for i in [1, 2]: 1", "for i in range(1, 2): 1", "for i in range(stop=2): 1",
        "for i in 5: 1", "for i in range(): 1", "for i in range(3)[0]: 1",
    ],
    "larger than 1e+30": [
        "9**9**9", "10**10**10", "9**9**9**9**9", "2**1000", "10.0**400", "1e30 * 10", "1e30 + 1e30 + 1e30",
        "-1e30 - 1e30 - 1e30", "(10**20) * (10**20)", "1 / 1e-31", "x = 1\nx + 9**99", "ones(9**9**9)",
        "exp(9**99)", "for i in range(50):\n  2 ** (i * i)", "0.001 ** -99",
    ],
    "is too large; at most 1e+30": [
        "1e400", "1e31", "9999999999999999999999999999999999999999", "1e999999999", "x = 1e99", "[1e31]",
    ],
    "this divides by 0": [
        "1 / 0", "0 / 0", "1.0 / (2 - 2)", "0 ** -1", "0.0 ** -0.5",
    ],
    "is not a real number": [
        "(-1) ** 0.5", "(-8) ** (1 / 3)",
    ],
    "at most 10,000, such as": [
        "ones(10**9)", "ones(10**4, 10**4)", "zeros(1000000)", "rand(100, 101)", "randn([10001])",
        "ones((10**9, 10**9, 10**9))", "ones(1, 1, 1, 1, 10**9, 1)", "broadcast_to(1, 10**9)",
        "broadcast_to([[1], [2]], 2, 10**8)", "x = 1\nx.broadcast_to((10**5, 10**5))",
        "x = ones(10000, 1)\nx @ x.T", "x = ones(5000, 1)\nx + x.T",
        "x = ones(5000, 1)\nx * x.reshape(1, 5000)", "x = ones(5000, 1)\nx < x.T",
        "x = ones(5000, 1)\nmaximum(x, x.T)", "x = ones(5000, 1)\nwhere(x, x, x.T)",
        "x = ones(100, 100)\nstack([x, x])", "x = ones(100, 100)\nconcatenate([x, x])",
        "x = [1, 2]\nfor i in range(50):\n  x = concatenate([x, x])",
        "one_hot([0], 10000 - 1 + 1) + one_hot([0, 1], 10000)", "one_hot([0, 1, 2], 5000)",
        "x = ones(100, 1, 100)\nx @ x.transpose(0, 1).reshape(1, 100, 100) * ones(3, 1, 1, 1)",
    ],
    "more axes than 6": [
        "ones(1, 1, 1, 1, 1, 1, 1)", "[[[[[[[1]]]]]]]", "x = 1\nfor i in range(50):\n  x = stack([x])",
        "x = 1\nfor i in range(50):\n  x = stack([x, x])", "reshape(1, 1, 1, 1, 1, 1, 1, 1)",
        "broadcast_to(1, [1, 1, 1, 1, 1, 1, 1, 1, 1, 1])",
    ],
    "takes a whole number from": [
        "ones(1.5)", "ones(-2)", "ones(10**10)", "ones([[1]])", "n = 3\nones(n)", "x = [1, 2]\nx[0.5]",
        "x = [1, 2]\nx[10**6]", "x = [1, 2]\nx[x]", "x = [1, 2]\nx[[0]]", "x = [1, 2]\nx[::10**9]",
        "x = [1, 2]\nx.sum(axes=9)", "x = [1, 2]\nx.sum(0.5)", "x = [1, 2]\nx.transpose(99, 1)",
        "for i in range(51):\n  1", "for i in range(10**9):\n  1", "for i in range(-1):\n  1",
        "for i in range(2.5):\n  1", "one_hot([0], 10**9)", "one_hot([0], 0)",
        "x = [1]\nfor i in range(x):\n  1",
    ],
    "must name each of the 2 axes": [
        "x = [[1]]\nx.permute()", "x = [[1]]\nx.permute([])", "x = [[1]]\nx.permute(0)",
    ],
    "lengths of at least 1": [
        "ones(0)", "ones(-1)", "zeros(3, 0)", "rand(-1, -1)",
    ],
    "more than 400 nodes": [
        "x = 1\nfor i in range(50):\n  for j in range(50):\n    x = x + 1",
        "x = 2\nfor i in range(50):\n  x = grad(exp(x) * x, x) + x",
        "x = 2\ny = x ** 9\nfor i in range(50):\n  y = grad(exp(y), x)",
        "for i in range(50):\n  for j in range(50):\n    constant([1]) + 1",
    ],
    "all Tensors together": [
        "x = ones(100, 100)\nfor i in range(50):\n  x = x @ x", "for i in range(50):\n  x = ones(10000)",
        "x = ones(10000)\nfor i in range(50):\n  x = x[0:9999].reshape(9999) * 1",
        "for i in range(50):\n  randn(100, 100)",
    ],
    "more than 10,000 steps": [
        "for i in range(50):\n  for j in range(50):\n    for k in range(50):\n      i + j",
    ],
    "a name has at most 30": [
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    ],
    "brackets are nested more than 40 deep": [
        "(((((((((((((((((((((((((((((((((((((((((",
    ],
    "one sign too many in a row": [
        "-----1", "1 + - + - + 1", "x = +++++1", "1 ** - - - - - 1", "1,,,,,,2", "x[::::::]",
    ],
    "is never closed": [
        "(", "[1, 2", "exp(1", "x = ([1]", "(1, = 2", "(1 # )",
    ],
    "closes no bracket": [
        ")", "1)", "(1]", "[1)", "x = ]", "exp(1))",
    ],
    "isn't supported": [
        "\x00", "1\x00", "x\x00 = 1", "x\t= 1", "for i in range(2):\n\t1", "\x1b[31m1", "1\r2", "\x0c1",
        "\x7f1", "1\u200b+1", "\u202e1", "\ufeff1", "1\xa0+ 1", "1\u2028+ 1", "\ud800", "# \x00",
        "# \u202e import os", "x = 1 # \x07", "\x01", "\u3000x", "\U000e0041",
    ],
    "use the letters a to z": [
        "λ = 1", "é", "ｅｘｐ(1)", "ｅval(1)", "𝐞𝐱𝐩(1)", "ᵉxp(1)", "ª = 1", "ſum(1)", "x․exp()", "𝟏 + 1", "١",
        "а = 1", "ℯxp(1)", "x＿y", "＿＿class＿＿", "x.︳", "()．T", "ﬁ = 1", "😀", "中 = 1", "1 ＋ 1", "∑",
        "（1）", "“a”", "⁻1", "½", "①",
    ],
    "isn't supported here: a power is written with **": [
        "x²", "x³",
    ],
    "multiply with *": [
        "2 × 3", "2 · 3",
    ],
    "subtract with -": [
        "2 − 1", "2 – 1",
    ],
    "compare with": [
        "1 ≤ 2", "1 ≥ 2",
    ],
    "divide with /": [
        "6 ÷ 3", "6 // 3",
    ],
    "write * between them": [
        "2x", "1j", "0x10", "0b1", "0o7", "1_000", "1e5j", "3.0e", "1.2.3", "0xdeadbeef", "1if 2else 3",
    ],
    "begins with 0": [
        "007", "00", "0123",
    ],
    "this can't be read": [
        "x =", "= 1", "1 +", "x y", "1 2", "x = 1\n2 x", "for", "for i in range(3)",
        "for i in range(3):", "  1", "x = 1\n  y = 2", "1 = 2", "exp(1) = 2", "x += ", ",", "x.", ".x",
        "x..exp()", "for i in range(3):\n1", "f(x=1, 2)", "[1 2]", "x[]", "in", "(1 +)", ":", "@x",
        "x, += 1", "a, b += 1", "(a + b) = c", "x = = 1", "1 <",
    ],
    "there is nothing here yet": [
        "", " ", "\n\n", "# nothing", "   # 1 + 2", "\r\n",
    ],
    "the last line has no value": [
        "for i in range(0):\n  1", "x = 1\nfor i in range(0):\n  x",
    ],
    "compare two at a time": [
        "1 < 2 < 3", "x = 1\n0 < x < 2 < 3",
    ],
    "these are two numbers": [
        "1 < 2", "1 >= 1.0",
    ],
    "multiplies matrices": [
        "2 @ 3", "1.5 @ 2",
    ],
    "a list of Tensors is not a Tensor": [
        "a = 1\na = [a, a]", "x = [1]\n[x]", "x = 1\nexp([x])", "x = 1\nx + [x, 1]",
        "a = 1\nfor i in range(50):\n  a = [a, a]", "x = 1\ntensor([[x]])",
    ],
    "rows have different lengths": [
        "[[1], [2, 3]]", "x = [1, [2]]", "exp([[1, 2], 3])", "[1, 2] + [[1], [2, 3]]", "[[], 1]",
    ],
    "names, but": [
        "a, b = 1", "a, b = 1, 2, 3", "a, b = [1]", "x = 1\na, b = x", "[a, b] = 5",
    ],
    "only a Tensor has parts": [
        "[1, 2][0]", "5[0]", "(1, 2)[1]", "1[0][0]",
    ],
    "is missing; write": [
        "exp()", "matmul([1])", "softmax_loss([[1]])", "one_hot([1])", "grad(1)", "where(1, 2)", "stack()",
        "x = 1\nx.maximum()",
    ],
    "takes no argument": [
        "exp(1, x=1)", "sum([1], axis=0)", "sum([1], keepdims=1)", "exp(1, out=2)", "ones(2, dtype=1)",
        "randn(2, seed=1)", "mean([1], a=2)", "stack([1], dim=0)", "softmax([1], device=1)",
    ],
    "argument": [
        "exp(1, 2)", "sum([1], 0, 1)", "x = 1\nx.exp(2)", "grad(1, 2, 3)", "matmul([1], [1], [1])",
    ],
    "labels are whole numbers": [
        "one_hot([0.5], 2)", "softmax_loss([[1, 2]], [0.1])", "one_hot(log([-1]), 2)",
    ],
    "a list of Tensors is needed": [
        "stack(1)", "stack([])", "concatenate(1)", "x = 1\nstack(x)",
    ],
    "a number is needed here": [
        "clip([1], [0], 1)", "x = 1\nclip(x, x, x)", "leaky_relu([1], slope=[1])",
    ],
    "does not require a gradient": [
        "grad(constant(1), 1)", "x = [1]\ngrad(x < 1, x)", "x = 1\ngrad(3, x)",
        "x = 1\ngrad(x, 1)", "x = 1\ngrad(x * x, detach(x))",
    ],
}  # fmt: skip

_TEN_TIMES = "x = tanh(x); " * 10
_LONG = {
    "is too large; at most 1e+30": ["9" * 150],
    "more axes than 6": ["ones(" + "1, " * 60 + "1)"],
    "more than 400 nodes": [f"x = 1\nfor i in range(50):\n  {_TEN_TIMES}"],
    "more than 10,000 steps": [
        "for i in range(50):\n  for j in range(50):\n    for k in range(50):\n"
        "      for l in range(50):\n        i"
    ],
    "at most 2,000 are read": [
        "x" * 2001, "1+" * 1500, " " * 100_000, "#" * 5000, "a" * 10**7, "\n" * 3000, "\0" * 9999,
        "(" * 100_000, "-" * 100_000, "[" * 10**6 + "]" * 10**6, "x = 1\n" * 10**5,
    ],
    "at most 200 are read": [
        "x = " + "1 + " * 80, "#" * 201, " " * 201, "x = " + "(" * 300, "x" * 1000, "1" * 1999, "-" * 500,
    ],
    "at most 60 are read": ["\n" * 100, "x = 1\n" * 100, ";\n" * 61],
    "a name has at most 30": ["x" * 199, "exp(" + "y" * 99 + ")", "long_" * 20 + "name = 1"],
    "brackets are nested more than 40 deep": [
        "(" * 100 + "1" + ")" * 99, "[" * 60 + "]" * 60, "exp(\n" * 45 + "1" + ")" * 45,
        "\n".join(["(" * 30] * 50), "([" * 30 + "])" * 30, "x" + "[x" * 60 + "]" * 60,
    ],
    "operations are nested": [
        "+".join("1" * 90), "x = 1\nx" + ".exp()" * 30 + "\n" + "*".join("x" * 60), "**".join("1" * 60),
        "(" + "+\n".join("1" * 55) + ")", "x = [1]\nx" + "[0:]" * 45, "x = 1\nx" + ".T" * 50,
        "\n".join(["(", *["2**" * 40] * 10, "2)"]), "@".join("1" * 99), "1" + "-1" * 50,
    ],
    "one sign too many in a row": ["-" * 190 + "1"],
}  # fmt: skip

#: For each reason, the texts that are refused for it.
HOSTILE = {reason: [*_SHORT.get(reason, []), *_LONG.get(reason, [])] for reason in _SHORT | _LONG}
