"""Text in, vectors out, top-k back."""
