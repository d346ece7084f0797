"""The plain data of a drawing: variables, operators, groups. No Tensor is in it, and nothing of its looks."""

from __future__ import annotations

from dataclasses import dataclass

from .text import Rows

__all__ = ["LEFT_OUT", "Graph", "Group", "Operand", "Operator", "Variable"]

LEFT_OUT = "more"  # the key of the node that stands for all that was left out


@dataclass(frozen=True)
class Operand:
    """One use of a variable by an operator."""

    key: str
    label: str = ""


@dataclass(frozen=True)
class Operator:
    """What made a variable."""

    symbol: str  # empty for a closed group: edges lead to it directly
    operands: tuple[Operand, ...]


@dataclass(frozen=True)
class Variable:
    """One Tensor, or one TensorTuple, as it is drawn.

    Attributes
    ----------
    key : str
        Unique in the graph, and the same each time.
    name : str
        Empty for a step on the way to an adjoint.
    kind : str
        A key of `style.LEGENDS`.
    facts : str
        Shape, and dtype where it is not float32.
    note : str
        What else there is to know, in a word or two.
    value, gradient : rows of cells
        See `text.rows_of`. Empty if unknown or too large.
    computed : bool
        False for a lazy node that nobody has asked for.
    operator : Operator or None
        None for a leaf.
    row : int
        0 for ordinary computation, and one more for each time reverse mode went over it.
    group : str
        Key of the innermost group that it is in; empty for none.
    shape : tuple of int or None
        None for a TensorTuple and for a group.
    dtype, device : str
    bytes : int or None
        Of the storage of its array, if nothing before it has the same storage; None if not computed yet.
    shares : str
        The name of what was before it in the same storage.
    parameters : int
        How many numbers there are in a parameter, in the gradient of one, or in all those in a group.
    requires_grad : bool or None
        Whether gradients flow to it; None for what is no node.
    cut_from : str
        The key of the variable whose very array it has although it is not computed from it, as after
        `detach`.
    detached : bool
        Whether it was cut from a graph, also where that is not known any more.
    adjoint_of : str
        In the graph of a gradient: key of the variable whose adjoint it is, or a step towards that.
    via : str
        Key of the consumer whose operator's `gradient` computed it; empty for a seed, and for the steps of a
        sum.
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

    @property
    def operands(self) -> tuple[Operand, ...]:
        """What it was made from; nothing for a leaf."""
        return self.operator.operands if self.operator else ()


@dataclass(frozen=True)
class Group:
    """What one call of a module made; or parts that follow each other and are alike.

    Attributes
    ----------
    key, title : str
    parent : str
        Key of the group that it is in; empty for none.
    row : int
        That of its variables: a module has one group in the forward graph and one for its gradient.
    label : str
        The title without the number that tells it from its neighbours.
    count : int
        More than 1 for a repeat: how many parts there are in it that are alike.
    """

    key: str
    title: str
    parent: str = ""
    row: int = 0
    label: str = ""
    count: int = 1


@dataclass(frozen=True)
class Graph:
    """All there is to draw.

    Attributes
    ----------
    variables : tuple of Variable
        Each after its operands; closed groups that use something of each other, as those of a gradient's
        gradient can, in any order.
    columns : tuple of tuples of str
        Keys of variables to be drawn below one another: a variable, its adjoint, the adjoint of that.
    left_out, limit : int
        How many variables were too many, and how many were allowed.
    forward_rows : int
        How many rows were there before reverse mode: a value of theirs that a later row uses is a value used
        again.
    groups : tuple of Group
        Each after the group that it is in.
    shown : frozenset of str
        Which facts are shown; see `facts.showing`.
    """

    variables: tuple[Variable, ...]
    columns: tuple[tuple[str, ...], ...] = ()
    left_out: int = 0
    limit: int = 0
    forward_rows: int = 1
    groups: tuple[Group, ...] = ()
    shown: frozenset[str] = frozenset(("value", "gradient", "shape"))

    @property
    def rows(self) -> list[int]:
        """The rows that there are, from top to bottom."""
        return sorted({variable.row for variable in self.variables})
