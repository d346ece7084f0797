"""The mathematical operators under the course's file name; they live in the files below."""

from ..graph import Op as Op
from ..graph import TensorOp as TensorOp
from ..graph import TensorTupleOp as TensorTupleOp
from .ops_activations import *
from .ops_arithmetic import *
from .ops_movement import *
from .ops_reductions import *
from .ops_selection import *
