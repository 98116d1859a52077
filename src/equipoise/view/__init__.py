"""The local viewer over the same page model as the report."""
