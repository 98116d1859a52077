"""Phenotype terms: ontology, term index, benchmark and extraction from clinical text.

Example::

    from equipoise.phenotypes import query, run_benchmark

    print(query("Krampfanfälle", k=1)[0].label)
    print(run_benchmark(["use", "tfidf:"], "cases.json").verdict())
"""

from equipoise.lazy_imports import lazy_module

PUBLIC_NAMES = {
    "BaseMetric": "equipoise.metrics.base",
    "BenchmarkConfig": "equipoise.domains.phenotypes.config",
    "BuiltIndex": "equipoise.domains.phenotypes.index.build",
    "Candidates": "equipoise.domains.phenotypes.extraction.candidates",
    "CutoffTies": "equipoise.domains.phenotypes.max_similarity",
    "ExtractedTerm": "equipoise.domains.phenotypes.extraction.predict",
    "ExtractionConfig": "equipoise.domains.phenotypes.config",
    "ExtractionRun": "equipoise.domains.phenotypes.extraction.experiment",
    "ExtractionTuning": "equipoise.domains.phenotypes.extraction.tuning_results",
    "LabelDiagnostics": "equipoise.domains.phenotypes.diagnostics",
    "Ontology": "equipoise.domains.phenotypes.ontology",
    "PhenotypeBenchmark": "equipoise.domains.phenotypes.benchmark",
    "ScoredExtraction": "equipoise.domains.phenotypes.extraction.score_predictions",
    "TermExtractor": "equipoise.domains.phenotypes.extraction.extractor",
    "TermIndex": "equipoise.domains.phenotypes.index.files",
    "TermMatch": "equipoise.domains.phenotypes.query",
    "TermRetriever": "equipoise.domains.phenotypes.index.retriever",
    "TermSimilarity": "equipoise.domains.phenotypes.similarity",
    "Translations": "equipoise.domains.phenotypes.index.lexicon",
    "annotation_information_content": "equipoise.domains.phenotypes.similarity",
    "build_index": "equipoise.domains.phenotypes.index.build",
    "compare_extractions": "equipoise.domains.phenotypes.extraction.experiment",
    "compare_vectors": "equipoise.domains.phenotypes.benchmark",
    "detect_assertions": "equipoise.domains.phenotypes.assertion.detect",
    "diagnose": "equipoise.domains.phenotypes.diagnostics",
    "evaluate_assertions": "equipoise.domains.phenotypes.assertion.evaluation",
    "extract": "equipoise.domains.phenotypes.extraction.extractor",
    "load_ontology": "equipoise.domains.phenotypes.ontology",
    "open_index": "equipoise.domains.phenotypes.index.build",
    "open_term_retriever": "equipoise.domains.phenotypes.query",
    "predict": "equipoise.domains.phenotypes.extraction.predict",
    "query": "equipoise.domains.phenotypes.query",
    "read_annotated_corpus": "equipoise.domains.phenotypes.extraction.annotated_corpus",
    "read_annotation_counts": "equipoise.domains.phenotypes.similarity",
    "read_cases": "equipoise.domains.phenotypes.cases",
    "read_notes": "equipoise.domains.phenotypes.export",
    "read_translations": "equipoise.domains.phenotypes.index.lexicon",
    "run_benchmark": "equipoise.domains.phenotypes.benchmark",
    "run_extraction": "equipoise.domains.phenotypes.extraction.experiment",
    "score_predictions": "equipoise.domains.phenotypes.extraction.score_predictions",
    "term_rows": "equipoise.domains.phenotypes.export",
    "term_similarity": "equipoise.domains.phenotypes.similarity",
    "to_phenopacket": "equipoise.domains.phenotypes.export",
    "tune_extraction": "equipoise.domains.phenotypes.extraction.tuning",
    "with_max_similarity": "equipoise.domains.phenotypes.max_similarity",
    "write_phenopackets": "equipoise.domains.phenotypes.export",
}

__getattr__, __dir__, __all__ = lazy_module(__name__, PUBLIC_NAMES)
