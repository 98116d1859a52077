"""``eq bench``: a benchmark of embedding models on your own data."""
