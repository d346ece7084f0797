"""The colours that Python paints with. Style sheets name the same ones, and a test compares them."""

__all__ = ["BLUE", "GRADIENT", "ORANGE"]

#: The class +1, and what counts most on a page; the class −1.
BLUE = "#2f6fde"
ORANGE = "#e08a1e"
#: Slopes and gradients: darker, since they are letters, too.
GRADIENT = "#e07b00"
