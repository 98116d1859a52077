"""Phenotype terms: models that find the terms of an ontology in clinical text, measured and compared.

from equipoise.domains.phenotypes.benchmark import run_benchmark

print(run_benchmark(["use", "tfidf:"], "cases.json", multi=True).verdict())

Everything is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from equipoise.lazy import lazy_attributes

if TYPE_CHECKING:
    from equipoise.domains.phenotypes.benchmark import PhenotypeBenchmark, compare_vectors, run_benchmark
    from equipoise.domains.phenotypes.diagnostics import LabelDiagnostics, diagnose

_HOMES = {
    "LabelDiagnostics": "equipoise.domains.phenotypes.diagnostics",
    "PhenotypeBenchmark": "equipoise.domains.phenotypes.benchmark",
    "compare_vectors": "equipoise.domains.phenotypes.benchmark",
    "diagnose": "equipoise.domains.phenotypes.diagnostics",
    "run_benchmark": "equipoise.domains.phenotypes.benchmark",
}

__all__ = ["LabelDiagnostics", "PhenotypeBenchmark", "compare_vectors", "diagnose", "run_benchmark"]

__getattr__ = lazy_attributes(__name__, _HOMES)
