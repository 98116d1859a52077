"""Gradient descent in flat and in hyperbolic space, and points laid out along a tree."""
