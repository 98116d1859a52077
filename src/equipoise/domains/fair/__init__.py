"""Fair comparison of embedding models on your own document (``eq fair``, ``eq demo``)."""
