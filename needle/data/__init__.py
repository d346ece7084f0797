"""Data: toy problems in the plane."""
