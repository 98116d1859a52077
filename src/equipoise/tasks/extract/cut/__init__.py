"""Ways to cut a text into pieces, each smaller than the one before it."""
