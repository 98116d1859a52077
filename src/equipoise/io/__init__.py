"""Bytes to data: readers that report file, line and hint, datasets with a fingerprint, splits."""
