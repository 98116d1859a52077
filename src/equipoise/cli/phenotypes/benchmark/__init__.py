"""``eq phenotypes benchmark``: models that find terms, measured and compared on cases."""

from equipoise.cli.phenotypes.benchmark.group import benchmark

__all__ = ["benchmark"]
