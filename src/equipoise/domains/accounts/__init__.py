"""The commands of ``eq accounts``."""
