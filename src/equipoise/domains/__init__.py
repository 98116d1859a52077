"""The applications, one folder per command."""
