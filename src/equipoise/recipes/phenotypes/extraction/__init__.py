"""Extraction measured at the document: runs, comparisons and tuning on annotated texts."""

from equipoise.recipes.phenotypes.extraction.compare import compare_extractions
from equipoise.recipes.phenotypes.extraction.run import run_extraction
from equipoise.recipes.phenotypes.extraction.tune import tune_extraction

__all__ = ["compare_extractions", "run_extraction", "tune_extraction"]
