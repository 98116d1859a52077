"""Training of tree embeddings in Euclidean and hyperbolic space."""
