"""Index of term texts: components, aggregation of their scores, stored vectors, exact search."""
