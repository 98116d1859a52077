"""The five scores equal the formulas of the concept-evaluation document; they are undefined where a part is."""

from collections.abc import Callable
from math import isnan, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.domains.concepts.scores import (
    COMPOSITE,
    CONCEPT_SCORES,
    GROUND_TRUTH,
    ScoreTerm,
    explain_score,
    interpret_score,
)
from equipoise.stats.intervals import Interval

FORMULAS: dict[str, Callable[..., float]] = {
    "similarity": lambda accuracy, correlation, mae: accuracy * 0.4 + correlation * 0.4 + (1 - mae) * 0.2,
    "clustering": lambda silhouette, coherence, separation: silhouette * 0.5 + coherence * 0.3 + separation * 0.2,
    "entities": lambda silhouette, similarity: silhouette * 0.6 + similarity * 0.4,
    "relations": lambda coherence, density, clustering: coherence * 0.4 + min(density, 0.5) * 0.3 + clustering * 0.3,
    "quality": lambda diversity, variance, ratio: diversity * 0.4 + min(variance, 1.0) * 0.3 + min(ratio, 1.0) * 0.3,
}
numbers = st.floats(-1, 3, allow_nan=False)


@pytest.mark.parametrize("task", CONCEPT_SCORES)
@given(data=st.data())
def test_a_score_equals_its_published_formula(task: str, data: st.DataObject) -> None:
    blend = CONCEPT_SCORES[task]
    values = [data.draw(numbers) for _ in blend.terms]
    score = blend.value({term.part: value for term, value in zip(blend.terms, values, strict=True)})
    assert score == pytest.approx(FORMULAS[task](*values))


@pytest.mark.parametrize("task", CONCEPT_SCORES)
def test_an_undefined_part_leaves_the_score_undefined_and_not_zero(task: str) -> None:
    blend = CONCEPT_SCORES[task]
    for missing_term in blend.terms:
        parts = {term.part: 0.5 for term in blend.terms}
        assert isnan(blend.value({**parts, missing_term.part: nan}))
        del parts[missing_term.part]
        assert isnan(blend.value(parts))


def test_names_are_the_published_ones_and_weights_add_up_to_one() -> None:
    assert [blend.name for blend in CONCEPT_SCORES.values()] == [
        "semantic_similarity_score",
        "clustering_score",
        "entity_recognition_score",
        "knowledge_graph_score",
        "embedding_quality_score",
    ]
    for blend in CONCEPT_SCORES.values():
        assert sum(term.weight for term in blend.terms) == pytest.approx(1.0)


def test_an_undefined_capped_part_is_not_the_cap() -> None:
    assert isnan(ScoreTerm("density", 0.3, cap=0.5).entering(nan))


@pytest.mark.parametrize(
    ("score", "word"),
    [(-0.2, "poor"), (0.29, "poor"), (0.3, "moderate"), (0.5, "good"), (0.69, "good"), (0.7, "excellent")],
)
def test_interpretations_have_the_published_limits(score: float, word: str) -> None:
    assert interpret_score(score) == word


def test_an_interval_over_a_limit_gives_both_words() -> None:
    assert interpret_score(0.45, Interval(0.2, 0.72)) == "poor to excellent"
    assert interpret_score(0.45, Interval.unknown("one unit")) == "moderate"
    assert interpret_score(nan) == "n/a"


@pytest.mark.parametrize("name", [score.name for score in CONCEPT_SCORES.values()])
def test_every_score_is_explained_with_its_formula_and_ground_truth_metric(name: str) -> None:
    page = explain_score(name)
    score = next(score for score in CONCEPT_SCORES.values() if score.name == name)
    assert page is not None
    title, text, facts = page
    assert title.startswith(name)
    assert text
    assert (facts["formula"], facts["compare models by"]) == (score.formula, score.truth)


def test_the_composite_and_the_ground_truth_score_are_explained_and_other_names_are_not() -> None:
    for name in (COMPOSITE, GROUND_TRUTH):
        page = explain_score(name)
        assert page is not None
        assert page[2]["formula"]
    assert explain_score("accuracy") is None
