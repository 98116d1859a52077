"""The HTML report: one file that opens from disk, without network requests."""
