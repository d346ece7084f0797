"""The language in which people write expressions. Nothing of it is ever run as Python."""
