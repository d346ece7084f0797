"""All runs of the process, and the socket by which pages watch and steer them."""
