"""Models behind an HTTP service: retries, refusals, and no key in any output."""
