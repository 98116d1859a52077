"""Terms by their texts: components, ways to aggregate their scores, a stored index, and exact search."""
