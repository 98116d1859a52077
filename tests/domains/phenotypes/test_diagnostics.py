"""A diagnosis sees what a system makes of the ontology's own labels."""

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


class Table:
    """Scores from a table by label; those of lower-case labels are reversed."""

    def __init__(self, ontology: Ontology, scores: NDArray[Any]) -> None:
        self.rows = dict(zip(ontology.labels, scores, strict=True))
        self.rows |= {label.lower(): row[::-1] for label, row in self.rows.items() if label.lower() not in self.rows}

    def score_blocks(self, queries: Sequence[str]) -> Iterator[tuple[slice, NDArray[Any]]]:
        yield slice(0, len(queries)), np.array([self.rows[text] for text in queries])


def paths(ontology: Ontology) -> NDArray[Any]:
    size = len(ontology)
    one, other = np.divmod(np.arange(size * size), size)
    return path_lengths(ontology, one, other).reshape(size, size)


def test_a_system_that_knows_the_graph_is_faithful_to_it(ontology: Ontology) -> None:
    found = diagnose(Table(ontology, -paths(ontology)), ontology, n_labels=99)
    assert found.terms == len(ontology)
    assert found.shares[SELF].value == 1.0
    assert found.shares[LOWER_CASE].value < 0.5
    assert found.correlations[PATHS].value == pytest.approx(1.0)


def test_the_correlations_are_those_of_scipy(ontology: Ontology) -> None:
    size = len(ontology)
    scores = np.random.default_rng(5).integers(0, 6, (size, size)).astype(float)
    found = diagnose(Table(ontology, scores), ontology, n_labels=size)
    far, alike = (
        paths(ontology),
        term_similarity(ontology, "resnik").between(np.arange(size), np.arange(size)),
    )
    for row in range(size):
        others = np.arange(size) != row
        expected = spearmanr(-scores[row, others], far[row, others]).statistic
        assert found.correlations.per_unit[PATHS][row] == pytest.approx(expected)
        if np.ptp(alike[row, others]):
            expected = spearmanr(scores[row, others], alike[row, others]).statistic
            assert found.correlations.per_unit[RESNIK][row] == pytest.approx(expected)
        else:
            assert np.isnan(found.correlations.per_unit[RESNIK][row])


def test_constant_scores_share_the_first_place_and_correlate_with_nothing(ontology: Ontology) -> None:
    size = len(ontology)
    found = diagnose(Table(ontology, np.ones((size, size))), ontology, n_labels=size)
    assert found.shares[SELF].value == pytest.approx(1 / size)
    assert found.shares[SELF].chance == pytest.approx(1 / size)
    assert np.isnan(found.correlations[PATHS].value)


def test_every_label_finds_itself_by_its_own_letters_whatever_its_synonyms(ontology: Ontology) -> None:
    found = diagnose(TermRetriever("tfidf:", ontology, multi_vector=True), ontology, n_labels=len(ontology))
    assert found.shares[SELF].value == found.shares[LOWER_CASE].value == 1.0
    assert {each.value: each.estimate.n for each in found.by_synonyms} == {"0": 5, "1": 4, "2": 3}
    assert 0 < found.shares[PURITY].value <= 1
    told = found.to_dict()
    assert told["terms"] == len(ontology)
    assert len(told["estimates"]) == 5


def test_the_same_seed_looks_up_the_same_terms(ontology: Ontology) -> None:
    system = TermRetriever("tfidf:", ontology)
    one, other, another = (diagnose(system, ontology, n_labels=5, config=StatsConfig(seed=seed)) for seed in (1, 1, 2))
    assert one.to_dict() == other.to_dict()
    assert one.shares.unit_ids.tolist() != another.shares.unit_ids.tolist()
