"""Phenotype terms: models that find the terms of an ontology in clinical text, measured and compared.

from equipoise.recipes.phenotypes import run_benchmark

print(run_benchmark(["use", "tfidf:"], "cases.json", multi=True).verdict())

Everything is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from equipoise.lazy import from_homes

if TYPE_CHECKING:
    from equipoise.recipes.phenotypes.benchmark import compare_vectors, run_benchmark
    from equipoise.recipes.phenotypes.comparison import PhenotypeBenchmark
    from equipoise.recipes.phenotypes.diagnosis import Diagnosis, diagnose

_HOMES = {
    "Diagnosis": "equipoise.recipes.phenotypes.diagnosis",
    "PhenotypeBenchmark": "equipoise.recipes.phenotypes.comparison",
    "compare_vectors": "equipoise.recipes.phenotypes.benchmark",
    "diagnose": "equipoise.recipes.phenotypes.diagnosis",
    "run_benchmark": "equipoise.recipes.phenotypes.benchmark",
}

__all__ = ["Diagnosis", "PhenotypeBenchmark", "compare_vectors", "diagnose", "run_benchmark"]

__getattr__ = from_homes(__name__, _HOMES)
