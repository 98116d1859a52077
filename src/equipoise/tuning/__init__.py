"""Parameter tuning: grid search, nested cross-validation, and equal budgets."""
