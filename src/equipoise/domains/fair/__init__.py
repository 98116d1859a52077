"""The commands of the fair comparison."""
