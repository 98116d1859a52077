"""Finished results as people read them."""
