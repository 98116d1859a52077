"""Diagnostics of a system on the labels of the ontology."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import spearmanr

from equipoise.config import StatsConfig
from equipoise.domains.phenotypes.diagnostics import LOWER_CASE, PATHS, PURITY, RESNIK, SELF, diagnose
from equipoise.domains.phenotypes.index.retriever import TermRetriever
from equipoise.domains.phenotypes.ontology import Ontology
from equipoise.domains.phenotypes.similarity import path_lengths, term_similarity


class TableScorer:
    """Scores from a table by label; those of lower-case labels are reversed."""

    def __init__(self, ontology: Ontology, scores: NDArray[Any]) -> None:
        self.rows = dict(zip(ontology.labels, scores, strict=True))
        self.rows |= {label.lower(): row[::-1] for label, row in self.rows.items() if label.lower() not in self.rows}

    def score_blocks(self, queries: Sequence[str]) -> Iterator[tuple[slice, NDArray[Any]]]:
        yield slice(0, len(queries)), np.array([self.rows[text] for text in queries])


def path_length_matrix(ontology: Ontology) -> NDArray[Any]:
    size = len(ontology)
    first, second = np.divmod(np.arange(size * size), size)
    return path_lengths(ontology, first, second).reshape(size, size)


def test_scores_by_path_length_correlate_perfectly_with_the_graph(ontology: Ontology) -> None:
    diagnostics = diagnose(TableScorer(ontology, -path_length_matrix(ontology)), ontology, n_labels=99)
    assert diagnostics.terms == len(ontology)
    assert diagnostics.shares[SELF].value == 1.0
    assert diagnostics.shares[LOWER_CASE].value < 0.5
    assert diagnostics.correlations[PATHS].value == pytest.approx(1.0)


def test_the_correlations_equal_scipy(ontology: Ontology) -> None:
    size = len(ontology)
    scores = np.random.default_rng(5).integers(0, 6, (size, size)).astype(float)
    diagnostics = diagnose(TableScorer(ontology, scores), ontology, n_labels=size)
    path_matrix, resnik_matrix = (
        path_length_matrix(ontology),
        term_similarity(ontology, "resnik").between(np.arange(size), np.arange(size)),
    )
    for row in range(size):
        others = np.arange(size) != row
        expected = spearmanr(-scores[row, others], path_matrix[row, others]).statistic
        assert diagnostics.correlations.per_unit[PATHS][row] == pytest.approx(expected)
        if np.ptp(resnik_matrix[row, others]):
            expected = spearmanr(scores[row, others], resnik_matrix[row, others]).statistic
            assert diagnostics.correlations.per_unit[RESNIK][row] == pytest.approx(expected)
        else:
            assert np.isnan(diagnostics.correlations.per_unit[RESNIK][row])


def test_constant_scores_tie_for_the_first_rank_and_have_no_correlation(ontology: Ontology) -> None:
    size = len(ontology)
    diagnostics = diagnose(TableScorer(ontology, np.ones((size, size))), ontology, n_labels=size)
    assert diagnostics.shares[SELF].value == pytest.approx(1 / size)
    assert diagnostics.shares[SELF].chance == pytest.approx(1 / size)
    assert np.isnan(diagnostics.correlations[PATHS].value)


def test_every_label_retrieves_its_term_in_any_case(ontology: Ontology) -> None:
    diagnostics = diagnose(TermRetriever("tfidf:", ontology, multi_vector=True), ontology, n_labels=len(ontology))
    assert diagnostics.shares[SELF].value == diagnostics.shares[LOWER_CASE].value == 1.0
    assert {part.value: part.estimate.n for part in diagnostics.by_synonyms} == {"0": 5, "1": 4, "2": 3}
    assert 0 < diagnostics.shares[PURITY].value <= 1
    content = diagnostics.to_dict()
    assert content["terms"] == len(ontology)
    assert len(content["estimates"]) == 5


def test_the_same_seed_samples_the_same_terms(ontology: Ontology) -> None:
    system = TermRetriever("tfidf:", ontology)
    first, repeated, other_seed = (
        diagnose(system, ontology, n_labels=5, config=StatsConfig(seed=seed)) for seed in (1, 1, 2)
    )
    assert first.to_dict() == repeated.to_dict()
    assert first.shares.unit_ids.tolist() != other_seed.shares.unit_ids.tolist()
