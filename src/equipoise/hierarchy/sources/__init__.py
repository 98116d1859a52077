"""Where trees come from: one reader a file, each giving a ``Tree``; ``find`` picks by what it sees."""
