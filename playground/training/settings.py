"""What you can choose in the playground: each setting's words, its limits, and its form in the address.

`FIELDS` is the one list of all of them. The page builds its controls from it, the address is read and written
by it, and messages take their words from it.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from difflib import get_close_matches
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

from needle import nn, optim
from needle.data import toy

from ..language.expression import LIKE
from .features import FEATURES, MOST_CHARACTERS, FeatureError, checked
from .lessons import LESSONS
from .numerals import decimal, whole
from .points import MAKERS, MOST_OWN_POINTS, Point, check_points, read_points, write_points

__all__ = [
    "DATA",
    "FIELDS",
    "INITIALISATIONS",
    "LIVE",
    "MAX_LAYERS",
    "VIEW",
    "Field",
    "Layer",
    "Settings",
    "SettingsError",
]

ACTIVATIONS = {"tanh": nn.Tanh, "relu": nn.ReLU, "sigmoid": nn.Sigmoid, "linear": nn.Identity}
NORMALISATIONS = {"batchnorm": nn.BatchNorm1d, "layernorm": nn.LayerNorm1d}
OPTIMISERS: dict[str, Callable[..., optim.Optimizer]] = {
    "sgd": optim.SGD,
    "momentum": lambda params, lr: optim.SGD(params, lr, momentum=0.9, dampening=0.0),
    "adam": optim.Adam,
    "rmsprop": optim.RMSProp,
}
INITIALISATIONS = ("glorot", "kaiming", "uniform", "zeros")
SCHEDULES = ("constant", "steps", "cosine", "warm-up")

_LONGEST_NAME = 40  # that is compared with others
_MOST_TOLD = 3  # names that are none
_MOST_NAMES = 100  # of settings that are read at once
MOST_SEED = 2**32 - 1
MAX_LAYERS = 8
MAX_NEURONS = 32
MAX_FEATURES = 12


class SettingsError(ValueError):
    """Settings that can't be used.

    Attributes
    ----------
    problems : dict of str to str
        For each wrong field, a sentence that says what came and what is possible.
    """

    def __init__(self, problems: dict[str, str]) -> None:
        super().__init__(" ".join(problems.values()))
        self.problems = problems


class Layer(NamedTuple):
    """A hidden layer.

    In the address it looks like ``8``, ``8:relu`` or ``8:relu:dropout0.2:batchnorm``.
    """

    neurons: int
    activation: str = ""  # empty: the network's
    dropout: float = 0.0
    normalisation: str = ""

    def __str__(self) -> str:
        dropout = f"dropout{_plain(self.dropout)}" if self.dropout else ""
        parts = [str(self.neurons), self.activation, dropout, self.normalisation]
        return ":".join(part for part in parts if part)

    @classmethod
    def read(cls, text: str) -> Layer:
        """The layer that a text stands for; ValueError if it stands for none."""
        neurons, *rest = text.strip().split(":")
        layer = cls(whole(neurons))
        for word in rest:
            if word in ACTIVATIONS:
                layer = layer._replace(activation=word)
            elif word in NORMALISATIONS:
                layer = layer._replace(normalisation=word)
            elif word.startswith("dropout"):
                layer = layer._replace(dropout=decimal(word.removeprefix("dropout")))
            else:
                raise ValueError(word)
        if not (1 <= layer.neurons <= MAX_NEURONS and 0 <= layer.dropout <= 0.9):
            raise ValueError(text)
        return layer


class Field:
    """A setting: its label and its tooltip, and how its text is read and written."""

    kind: ClassVar[str]

    def __init__(self, label: str, help: str, words: Mapping[str, str] | None = None):
        self.label = label
        self.help = help
        self.words = words or {}  # what the page shows instead of a value's text

    def read(self, text: str) -> Any:
        """The value of a text; ValueError if it has none."""
        raise NotImplementedError

    def write(self, value: Any) -> str:
        """The text of a value."""
        return str(value)

    def check(self, value: Any) -> None:
        """Raise ValueError if the value can't be used."""
        if self.read(self.write(value)) != value:
            raise ValueError(value)

    @property
    def needed(self) -> str:
        """What the field can be, for a sentence that begins "… must be"."""
        raise NotImplementedError

    def for_page(self) -> dict[str, Any]:
        """What the page needs for a control."""
        return {"kind": self.kind, "label": self.label, "help": self.help, "words": self.words}


class Choice(Field):
    """One of a few words."""

    kind = "choice"

    def __init__(self, label: str, help: str, choices: Sequence[str], words: Mapping[str, str] | None = None):
        super().__init__(label, help, words)
        self.choices = list(choices)

    def read(self, text: str) -> str:
        word = text.strip().lower()
        if word not in self.choices:
            raise ValueError(text)
        return word

    @property
    def needed(self) -> str:
        return f"one of {', '.join(self.choices)}"

    def for_page(self) -> dict[str, Any]:
        return super().for_page() | {"choices": self.choices}


class Number(Field):
    """A number within limits. The page offers some of them; others can be typed."""

    kind = "number"

    def __init__(
        self,
        label: str,
        help: str,
        low: float,
        high: float,
        *,
        step: float | None = None,
        offers: Sequence[float] = (),
        percent: bool = False,
    ):
        super().__init__(label, help)
        self.low, self.high, self.step = low, high, step
        self.offers = list(offers)
        self.percent = percent
        self.is_whole = isinstance(low, int)

    def read(self, text: str) -> float:
        value: float = whole(text) if self.is_whole else decimal(text)
        if not self.low <= value <= self.high:
            raise ValueError(text)
        return value

    def write(self, value: float) -> str:
        return str(value) if self.is_whole else _plain(value)

    @property
    def needed(self) -> str:
        kind = "a whole number" if self.is_whole else "a number"
        percent = f" ({100 * self.low:g} % to {100 * self.high:g} %)" if self.percent else ""
        return f"{kind} from {_grouped(self.low)} to {_grouped(self.high)}{percent}"

    def for_page(self) -> dict[str, Any]:
        own: dict[str, Any] = {
            "needed": self.needed,
            "low": self.low,
            "high": self.high,
            "step": self.step,
            "percent": self.percent,
        }
        return super().for_page() | own | {"offers": [self.write(x) for x in self.offers]}


class Switch(Field):
    """On or off."""

    kind = "switch"

    def read(self, text: str) -> bool:
        if text not in ("on", "off"):
            raise ValueError(text)
        return text == "on"

    def write(self, value: bool) -> str:
        return "on" if value else "off"

    @property
    def needed(self) -> str:
        return "on or off"


class Listed(Field):
    """Several things of one kind, in a text with a separator between them."""

    kind = "list"

    def __init__(
        self,
        label: str,
        help: str,
        needed: str,
        read: Callable[[str], tuple],
        write: Callable[[tuple], str],
        for_page: Mapping[str, Any] | None = None,
        check: Callable[[tuple], None] | None = None,
    ):
        super().__init__(label, help)
        self._needed, self._read, self._write, self._check = needed, read, write, check
        self._for_page = dict(for_page or {})

    def read(self, text: str) -> tuple:
        return self._read(text)

    def write(self, value: tuple) -> str:
        return self._write(value)

    def check(self, value: tuple) -> None:
        if self._check is None:
            super().check(value)
        else:
            self._check(value)

    @property
    def needed(self) -> str:
        return self._needed

    def for_page(self) -> dict[str, Any]:
        return super().for_page() | self._for_page


def _plain(value: float) -> str:
    """The shortest digits that are this number, without an exponent."""
    return f"{Decimal(repr(float(value))):f}".removesuffix(".0")


def _grouped(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else _plain(value)


def _read_layers(text: str) -> tuple[Layer, ...]:
    words = [word for word in re.split(r"[\s,;×–-]+", text.strip()) if word]
    if len(words) > MAX_LAYERS:
        raise ValueError(text)
    return tuple(map(Layer.read, words))


def _read_features(text: str) -> tuple[str, ...]:
    """Expressions with commas between them; a comma within brackets belongs to its expression."""
    if len(text) > MAX_FEATURES * 2 * MOST_CHARACTERS:
        raise ValueError(text)
    parts, depth = [""], 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    parts = [part.strip() for part in parts]
    if not 1 <= len(parts) <= MAX_FEATURES or len(set(parts)) < len(parts):
        raise ValueError(text)
    return tuple(map(checked, parts))


class _PartlyRead(ValueError):
    """A text of which only a part can be used: its value, and a sentence about the rest."""

    def __init__(self, value: Any, said: str) -> None:
        super().__init__(said)
        self.value = value


def _read_hidden_controls(text: str) -> tuple[str, ...]:
    names = list(dict.fromkeys(name for name in re.split(r"[\s,;]+", text.strip()) if name))
    unknown = [name for name in names if name not in HIDEABLE]
    if unknown:
        known = tuple(name for name in names if name in HIDEABLE)
        told = unknown[:_MOST_TOLD]
        said = [f"There is no control “{_short(name)}” to hide{_near(name, HIDEABLE)}" for name in told]
        raise _PartlyRead(known, " ".join(said))
    return tuple(names)


_RATES = [0.00001, 0.0001, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10]

FIELDS: dict[str, Field] = {
    # The data.
    "dataset": Choice(
        "Data set",
        "What the network learns: the first eight have two classes of points, the last two a number at each "
        "point (regression). Or start with an empty plane and paint.",
        [*MAKERS, "own"],
        {"own": "your own", "multi-gaussian": "gaussians", "xor": "XOR"},
    ),
    "noise": Number(
        "Noise",
        "How much chance there is in the data: some labels are wrong, or points lie away from their place.",
        0.0,
        toy.MAX_NOISE,
        step=0.05,
        percent=True,
    ),
    "points": Number("Points", "How many are made, for training and test together.", 10, 5000, step=50),
    "train_share": Number(
        "Training share", "The share of points to learn from.", 0.1, 0.9, step=0.1, percent=True
    ),
    "seed": Number(
        "Data seed",
        "Decides which points are made. Regenerate draws another; type the old one to get its points back.",
        0,
        MOST_SEED,
    ),
    "own": Listed(
        "Your points",
        "Points that you painted or uploaded.",
        f"at most {MOST_OWN_POINTS:,} points such as 1,2,1 (x1, x2, label), with _ between them",
        read_points,
        write_points,
        check=check_points,
    ),
    # The network.
    "inputs": Listed(
        "Inputs",
        "What the network sees of a point. Add an expression of your own, such as x1**2 + x2**2.",
        f"1 to {MAX_FEATURES} different expressions of x1 and x2 with commas between them, such as "
        f"x1,x2,sin(x1)",
        _read_features,
        ",".join,
        {"known": FEATURES},
    ),
    "hidden": Listed(
        "Hidden layers",
        "The neurons in each hidden layer, from left to right.",
        f"at most {MAX_LAYERS} layers of 1 to {MAX_NEURONS} neurons, such as 4-2 or "
        f"8:relu:dropout0.2-4:batchnorm",
        _read_layers,
        lambda layers: "-".join(map(str, layers)),
        {"most": MAX_LAYERS, "widest": MAX_NEURONS, "normalisations": list(NORMALISATIONS)},
    ),
    "activation": Choice(
        "Activation", "The function of each hidden neuron, where a layer has none of its own.",
        list(ACTIVATIONS),
        {"relu": "ReLU"},
    ),
    "initialisation": Choice(
        "First weights",
        "Glorot and Kaiming fit the spread to the layer's size. Uniform is from −0.5 to 0.5 with a bias of "
        "0.1, as in TensorFlow Playground. From zeros, all neurons of a layer stay the same.",
        INITIALISATIONS,
        {"glorot": "Glorot", "kaiming": "Kaiming"},
    ),
    "weights_seed": Number(
        "Weights seed",
        "Decides the first weights and the order of the batches. Reset draws another seed. To repeat a run, "
        "type its seed here, or hold Shift while you press Reset.",
        0,
        MOST_SEED,
    ),
    # The training.
    "optimiser": Choice(
        "Optimiser",
        "How a step follows from the gradient. Momentum adds 0.9 times the step before.",
        list(OPTIMISERS),
        {"sgd": "SGD", "adam": "Adam", "rmsprop": "RMSProp"},
    ),
    "learning_rate": Number(
        "Learning rate", "How long a step is. A change counts at once.", 0.000001, 100.0, offers=_RATES
    ),
    "schedule": Choice(
        "Schedule",
        "How the learning rate changes: half of it after every period; down to 0 along a cosine within a "
        "period; or up from near 0 within the first period. A period is set beside it.",
        SCHEDULES,
    ),
    "period": Number(
        "Rate's period",
        "In so many epochs the schedule halves the learning rate, or goes through its curve.",
        1,
        100_000,
        offers=[10, 30, 100, 300, 1000]
    ),
    "batch_size": Number(
        "Batch size", "How many points a step looks at. A change counts at once.", 1, 5000,
        offers=[1, 5, 10, 20, 30, 100],
    ),
    "regularisation": Choice(
        "Regularisation", "A penalty on large weights: L1 on their sizes, L2 on half their squares.",
        ["none", "l1", "l2"], {"l1": "L1", "l2": "L2"},
    ),
    "regularisation_rate": Number(
        "Penalty rate", "How much the penalty counts. A change counts at once.", 0.0, 10.0,
        offers=[0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10],
    ),
    "compiled": Switch(
        "Compiled",
        "On: needle turns a whole training step into machine code, which runs much faster. Off: Python "
        "computes one operator after the other.",
    ),
    "pace": Choice(
        "Pace",
        "How fast to play: as fast as it can, or slowly enough to watch.",
        ["fastest", "60", "10", "1"],
        {"60": "60 epochs/s", "10": "10 epochs/s", "1": "1 epoch/s"},
    ),
    # The view.
    "test_points": Switch("Show test points", "Also show the points that the network does not learn from."),
    "discretise": Switch("Discretise", "Show only which class wins, not how clearly."),
    "log_loss": Switch("log", "Losses on a logarithmic axis."),
    "hide": Listed(
        "Hidden controls",
        "Controls that this lesson does without.",
        "names of controls with commas between them",
        _read_hidden_controls,
        ",".join,
    ),
    "lesson": Choice("Lesson", "The question that goes with this page.", ["none", *LESSONS]),
}  # fmt: skip

#: Settings that may change while a network learns; any other change begins a new training.
LIVE = {"learning_rate", "batch_size", "regularisation_rate", "schedule", "period", "compiled", "own", "seed"}
#: Those among them that give the network other points to learn from.
DATA = {"own", "seed"}
#: Settings that change nothing in the training.
VIEW = {"pace", "test_points", "discretise", "log_loss", "hide", "lesson"}
#: What a lesson can hide.
HIDEABLE = [name for name in FIELDS if name not in ("hide", "lesson", "own")] + [
    "play", "step", "reset", "regenerate", "paint", "look_inside", "take_home", "loss", "epoch", "lessons"
]  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """Everything that decides how a training goes and what the page shows of it.

    Two trainings with equal settings give equal numbers. The defaults are TensorFlow Playground's, where it
    has them. `FIELDS` says what each setting is.

    Raises
    ------
    SettingsError
        If a value can't be used.
    """

    dataset: str = "circle"
    noise: float = 0.0
    points: int = 500
    train_share: float = 0.5
    seed: int = 0
    own: tuple[Point, ...] = ()
    inputs: tuple[str, ...] = ("x1", "x2")
    hidden: tuple[Layer, ...] = (Layer(4), Layer(2))
    activation: str = "tanh"
    initialisation: str = "glorot"
    weights_seed: int = 0
    optimiser: str = "sgd"
    learning_rate: float = 0.03
    schedule: str = "constant"
    period: int = 100
    batch_size: int = 10
    regularisation: str = "none"
    regularisation_rate: float = 0.0
    compiled: bool = True
    pace: str = "fastest"
    test_points: bool = False
    discretise: bool = False
    log_loss: bool = False
    hide: tuple[str, ...] = ()
    lesson: str = "none"

    def __post_init__(self) -> None:
        hidden = tuple(Layer(x) if isinstance(x, int) else Layer(*x) for x in self.hidden)
        object.__setattr__(self, "hidden", hidden)
        problems = {}
        for name, field in FIELDS.items():
            try:
                field.check(getattr(self, name))
            except (ValueError, TypeError, AttributeError):
                problems[name] = _expected(name, str(getattr(self, name)))
        if problems:
            raise SettingsError(problems)

    @cached_property
    def is_regression(self) -> bool:
        """Whether the network learns numbers, not classes: of your own points, if a label is not −1 or 1."""
        has_numbers = self.dataset == "own" and any(abs(point.label) != 1 for point in self.own)
        return has_numbers or self.dataset in toy.REGRESSION

    @property
    def has_penalty(self) -> bool:
        """Whether large weights cost something."""
        return self.regularisation != "none" and self.regularisation_rate > 0

    def activation_of(self, layer: Layer) -> str:
        """The name of a hidden layer's activation."""
        return layer.activation or self.activation

    def changed(self, texts: Mapping[str, str]) -> tuple[Settings, list[str]]:
        """These settings with some others, read from text, such as the page's address.

        Returns
        -------
        tuple
            The settings, and a sentence for each name that is unknown and each value that can't be used:
            these stay as they were.
        """
        values: dict[str, Any] = {}
        problems = []
        for name, text in itertools.islice(texts.items(), _MOST_NAMES):
            if name not in FIELDS:
                problems.append(f"There is no setting “{_short(name)}”{_near(name, FIELDS)}")
                continue
            try:
                values[name] = FIELDS[name].read(text)
            except _PartlyRead as error:
                values[name] = error.value
                problems.append(str(error))
            except FeatureError as error:
                problems.append(f"{FIELDS[name].label}: {error}")
            except ValueError:
                problems.append(_expected(name, text))
        return dataclasses.replace(self, **values), problems

    def to_text(self) -> dict[str, str]:
        """The settings that differ from their defaults, as `changed` reads them."""
        return {name: FIELDS[name].write(getattr(self, name)) for name in self.different_from(Settings())}

    def different_from(self, other: Settings) -> list[str]:
        """The names of the fields in which two settings differ."""
        return [name for name in FIELDS if getattr(self, name) != getattr(other, name)]


def _expected(name: str, got: str) -> str:
    """A sentence that says what a field can be, and what came instead."""
    return f"{FIELDS[name].label} must be {FIELDS[name].needed}, not “{_short(got)}”."


def _near(name: str, names: Iterable[str]) -> str:
    """The end of a sentence about a name that is none: which one may be meant."""
    near = get_close_matches(name[:_LONGEST_NAME].lower(), names, n=1, cutoff=LIKE)
    return f"; did you mean “{near[0]}”?" if near else "."


def _short(text: str) -> str:
    return text if len(text) <= 30 else text[:29] + "…"
