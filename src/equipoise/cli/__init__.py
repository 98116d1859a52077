"""The command line: ``eq``."""
