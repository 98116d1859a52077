"""Document-level term extraction: evaluation, comparison and tuning on annotated documents."""

from equipoise.domains.phenotypes.extraction.experiment import compare_extractions, run_extraction
from equipoise.domains.phenotypes.extraction.tuning import tune_extraction

__all__ = ["compare_extractions", "run_extraction", "tune_extraction"]
