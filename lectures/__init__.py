"""What stands behind the lectures: what they ask, how answers are checked, and what they draw with.

``lecture_07.py`` belongs to ``notebooks/07_*.ipynb``, and its questions are in ``lecture_07.toml``. `checking`
holds what all lectures share. ``README.md`` says how an answer is checked, and how to write an exercise.
"""

import logging
import sys
import warnings

from .without_numba import stand_in

stand_in()
if sys.platform == "emscripten":  # there, what two packages say of threads and fonts is no news
    warnings.filterwarnings("ignore", message="tqdm:disabling monitor support")
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
