"""The commands of ``eq places``."""
