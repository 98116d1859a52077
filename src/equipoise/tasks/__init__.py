"""From a system and a dataset to evidence."""
