"""The local viewer of results."""
