"""The commands of ``eq phenotypes``."""
