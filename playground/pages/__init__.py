"""The pages of the app that Streamlit runs: the Explorer and the sandboxes."""

from pathlib import Path

#: What Streamlit runs for all of them.
SCRIPT = Path(__file__).with_name("navigation.py")

#: Their titles, by the last part of their addresses.
TITLES = {
    "explorer": "Explorer",
    "maths": "Maths",
    "classifier": "Classifier",
    "tensor": "Tensor",
    "modules": "Modules",
    "digits": "Digits",
}
