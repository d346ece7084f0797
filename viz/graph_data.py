"""The plain data of a drawing: variables, operators, groups. It holds no Tensors and no looks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from .text import Rows

__all__ = ["LEFT_OUT", "Graph", "Group", "Line", "Operand", "Operator", "Step", "Variable"]

LEFT_OUT = "more"  # the key of the box that stands for everything left out


class Step(NamedTuple):
    """A variable in a box that stands for rounds of a loop, in words: ``n7``, ``n6 × 2``, ``[1]``."""

    name: str
    made_of: str
    value: str


class Line(NamedTuple):
    """A line of a user's program."""

    file: str  # or the cell of a notebook
    number: int
    text: str


@dataclass(frozen=True)
class Operand:
    """One use of a variable by an operator."""

    key: str
    label: str = ""


@dataclass(frozen=True)
class Operator:
    """The operator that computes a variable."""

    symbol: str  # empty for a closed group: edges lead to its box directly
    operands: tuple[Operand, ...]


@dataclass(frozen=True)
class Variable:
    """One Tensor, or one TensorTuple, as it is drawn.

    Attributes
    ----------
    key : str
        Unique in the graph, and the same for each drawing of it.
    name : str
        Empty for a step on the way to an adjoint.
    kind : str
        A key of `style.LEGENDS`.
    facts : str
        Shape, and dtype if it is not float32.
    note : str
        Anything else worth a word or two.
    value, gradient : rows of cells
        See `text.rows_of`. Empty if unknown or too large.
    computed : bool
        False for a lazy node that is not computed yet.
    operator : Operator or None
        None for a leaf.
    row : int
        0 for ordinary computation, and one more for each time that reverse mode went over it.
    group : str
        Key of the innermost group around it; empty for none.
    shape : tuple of int or None
        None for a TensorTuple and for a group.
    dtype, device : str
    bytes : int or None
        The size of its array's storage, which counts at the first variable that has it; None if not
        computed yet.
    shares : str
        The name of the first variable with the same storage.
    parameters : int
        How many numbers a parameter has, or the gradient of one; in a group, all of these together.
    requires_grad : bool or None
        Whether gradients flow to it; None if it is not a node.
    cut_from : str
        The key of the variable whose array it shares without being computed from it, as after `detach`.
    detached : bool
        Whether it was cut from a graph, even if it is not known any more from which.
    adjoint_of : str
        In a gradient graph: the key of the variable whose adjoint it is, or is a step towards.
    via : str
        The key of the consumer whose operator's `gradient` computed it; empty for a seed, and for the steps
        of a sum.
    numbers : rows of cells
        All its numbers, or the first rows and columns of a large array.
    line : Line or None
        The line that made it; of a step of a gradient, the line that made the consumer.
    rounds : tuple of tuples of str
        Of a box that stands for rounds of a loop: the keys of what each round computed.
    """

    key: str
    name: str
    kind: str
    facts: str = ""
    note: str = ""
    value: Rows = ()
    gradient: Rows = ()
    computed: bool = True
    operator: Operator | None = None
    row: int = 0
    group: str = ""
    shape: tuple[int, ...] | None = None
    dtype: str = ""
    device: str = ""
    bytes: int | None = None
    shares: str = ""
    parameters: int = 0
    requires_grad: bool | None = None
    cut_from: str = ""
    detached: bool = False
    adjoint_of: str = ""
    via: str = ""
    numbers: Rows = ()
    line: Line | None = None
    rounds: tuple[tuple[str, ...], ...] = ()

    @property
    def operands(self) -> tuple[Operand, ...]:
        """The variables that it is computed from; none for a leaf."""
        return self.operator.operands if self.operator else ()


@dataclass(frozen=True)
class Group:
    """All that one call of a module computed; or parts in a row that are alike.

    Attributes
    ----------
    key, title : str
    parent : str
        Key of the group around it; empty for none.
    row : int
        The row of its variables: a module has one group in the forward graph and one for its gradient.
    label : str
        The title without the number that tells it from its neighbours.
    count : int
        For a repeat, how many parts are alike; else 1.
    first : str
        The key of the first group of the same call, or of the same repeat: the one in the forward graph. All
        groups with the same `first` open and close together.
    """

    key: str
    title: str
    parent: str = ""
    row: int = 0
    label: str = ""
    count: int = 1
    first: str = ""


@dataclass(frozen=True)
class Graph:
    """Everything that is drawn.

    Attributes
    ----------
    variables : tuple of Variable
        Each after its operands. Closed groups that use parts of each other, which a gradient's gradient can
        have, stand in any order.
    columns : tuple of tuples of str
        Keys of variables that stand below one another: a variable, its adjoint, the adjoint of that.
    left_out, limit : int
        How many variables were left out, and how many were allowed.
    forward_rows : int
        How many rows there were before reverse mode. If a later row uses a value from them, that value is
        used again.
    groups : tuple of Group
        Each after the group that it is in.
    steps : mapping of str to Step
        By key, what is in the `rounds` of boxes.
    shown : frozenset of str
        Which facts are shown; see `facts.showing`.
    """

    variables: tuple[Variable, ...]
    columns: tuple[tuple[str, ...], ...] = ()
    left_out: int = 0
    limit: int = 0
    forward_rows: int = 1
    groups: tuple[Group, ...] = ()
    steps: Mapping[str, Step] = field(default_factory=dict)
    shown: frozenset[str] = frozenset(("value", "gradient", "shape"))

    @property
    def rows(self) -> list[int]:
        """The rows of the variables, from top to bottom."""
        return sorted({variable.row for variable in self.variables})
