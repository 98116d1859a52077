"""Choosing parameters: the grid, the nested estimate of what the choice is worth, and equal budgets."""
