"""Fair comparison of embedding models on your own document."""
