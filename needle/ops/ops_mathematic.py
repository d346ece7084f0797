"""The mathematical operators under the course's file name; they live in the files below."""

from .ops_activations import *
from .ops_arithmetic import *
from .ops_movement import *
from .ops_reductions import *
from .ops_selection import *
