"""Model backends, one per file; each is imported only when a spec names it."""
