# Written by scripts/write_stubs.py from PUBLIC_NAMES. Do not edit.

from equipoise.domains.phenotypes.assertion.detect import detect_assertions as detect_assertions
from equipoise.domains.phenotypes.assertion.evaluation import evaluate_assertions as evaluate_assertions
from equipoise.domains.phenotypes.benchmark import PhenotypeBenchmark as PhenotypeBenchmark
from equipoise.domains.phenotypes.benchmark import compare_vectors as compare_vectors
from equipoise.domains.phenotypes.benchmark import run_benchmark as run_benchmark
from equipoise.domains.phenotypes.cases import read_cases as read_cases
from equipoise.domains.phenotypes.config import BenchmarkConfig as BenchmarkConfig
from equipoise.domains.phenotypes.diagnostics import LabelDiagnostics as LabelDiagnostics
from equipoise.domains.phenotypes.diagnostics import diagnose as diagnose
from equipoise.domains.phenotypes.export import read_notes as read_notes
from equipoise.domains.phenotypes.export import term_rows as term_rows
from equipoise.domains.phenotypes.export import to_phenopacket as to_phenopacket
from equipoise.domains.phenotypes.export import write_phenopackets as write_phenopackets
from equipoise.domains.phenotypes.extraction.annotated_corpus import read_annotated_corpus as read_annotated_corpus
from equipoise.domains.phenotypes.extraction.candidates import Candidates as Candidates
from equipoise.domains.phenotypes.extraction.config import ExtractionConfig as ExtractionConfig
from equipoise.domains.phenotypes.extraction.experiment import ExtractionRun as ExtractionRun
from equipoise.domains.phenotypes.extraction.experiment import compare_extractions as compare_extractions
from equipoise.domains.phenotypes.extraction.experiment import run_extraction as run_extraction
from equipoise.domains.phenotypes.extraction.extractor import TermExtractor as TermExtractor
from equipoise.domains.phenotypes.extraction.extractor import extract as extract
from equipoise.domains.phenotypes.extraction.predict import ExtractedTerm as ExtractedTerm
from equipoise.domains.phenotypes.extraction.predict import predict as predict
from equipoise.domains.phenotypes.extraction.score_predictions import ScoredExtraction as ScoredExtraction
from equipoise.domains.phenotypes.extraction.score_predictions import score_predictions as score_predictions
from equipoise.domains.phenotypes.extraction.tuning import tune_extraction as tune_extraction
from equipoise.domains.phenotypes.extraction.tuning_results import ExtractionTuning as ExtractionTuning
from equipoise.domains.phenotypes.index.build import BuiltIndex as BuiltIndex
from equipoise.domains.phenotypes.index.build import build_index as build_index
from equipoise.domains.phenotypes.index.build import open_index as open_index
from equipoise.domains.phenotypes.index.files import TermIndex as TermIndex
from equipoise.domains.phenotypes.index.lexicon import Translations as Translations
from equipoise.domains.phenotypes.index.lexicon import read_translations as read_translations
from equipoise.domains.phenotypes.index.retriever import TermRetriever as TermRetriever
from equipoise.domains.phenotypes.max_similarity import CutoffTies as CutoffTies
from equipoise.domains.phenotypes.max_similarity import with_max_similarity as with_max_similarity
from equipoise.domains.phenotypes.ontology import Ontology as Ontology
from equipoise.domains.phenotypes.ontology import load_ontology as load_ontology
from equipoise.domains.phenotypes.query import TermMatch as TermMatch
from equipoise.domains.phenotypes.query import open_term_retriever as open_term_retriever
from equipoise.domains.phenotypes.query import query as query
from equipoise.domains.phenotypes.similarity import TermSimilarity as TermSimilarity
from equipoise.domains.phenotypes.similarity import (
    annotation_information_content as annotation_information_content,
)
from equipoise.domains.phenotypes.similarity import read_annotation_counts as read_annotation_counts
from equipoise.domains.phenotypes.similarity import term_similarity as term_similarity
from equipoise.metrics.base import BaseMetric as BaseMetric
