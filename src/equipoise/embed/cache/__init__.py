"""Nothing is embedded twice: vectors kept by content in one file."""
