"""Tasks: from a system and a dataset to evidence."""
