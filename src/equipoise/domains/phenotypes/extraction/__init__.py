"""Extraction measured at the document: runs, comparisons and tuning on annotated texts."""

from equipoise.domains.phenotypes.extraction.experiment import compare_extractions, run_extraction
from equipoise.domains.phenotypes.extraction.tuning import tune_extraction

__all__ = ["compare_extractions", "run_extraction", "tune_extraction"]
