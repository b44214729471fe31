"""What the domain asks of the world. The conditions stand in the docstrings: an adapter is written from them."""
