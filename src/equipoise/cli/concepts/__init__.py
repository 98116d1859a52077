"""The command ``eq concepts``."""
