"""Datasets, one kind a file."""
