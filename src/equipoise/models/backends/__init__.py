"""One model engine a file; each is imported only when a spec names it."""
