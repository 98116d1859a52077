"""``eq concepts``: scores of sentence models on a concept set."""
