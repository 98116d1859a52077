"""Trees, and their readers."""
