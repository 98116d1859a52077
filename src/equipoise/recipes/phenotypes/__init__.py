"""Phenotype terms: models that find the terms of an ontology in clinical text, measured and compared."""

from equipoise.recipes.phenotypes.benchmark import compare_vectors, run_benchmark
from equipoise.recipes.phenotypes.comparison import PhenotypeBenchmark
from equipoise.recipes.phenotypes.diagnose import Diagnosis, diagnose

__all__ = ["Diagnosis", "PhenotypeBenchmark", "compare_vectors", "diagnose", "run_benchmark"]
