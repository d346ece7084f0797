"""The course's applications."""
