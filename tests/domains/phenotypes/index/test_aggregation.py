"""One score per term, compared with plain code for one query and one term at a time."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.domains.phenotypes.index.aggregation import (
    STRATEGIES,
    ComponentScore,
    WeightedSum,
    aggregate_scores,
    n_columns_read,
    parse_strategy,
)
from equipoise.domains.phenotypes.index.files import (
    ComponentKind,
    TermTexts,
    component_texts,
    concatenated_texts,
)
from equipoise.errors import ParameterError, ShapeError, UnknownNameError

sizes = st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=15)


def component_texts_of(shape: list[tuple[int, bool]]) -> TermTexts:
    """Terms with the given numbers of synonyms, with or without a definition."""
    return component_texts(
        [f"term {term}" for term in range(len(shape))],
        [[f"synonym {index} of {term}" for index in range(count)] for term, (count, _) in enumerate(shape)],
        [f"definition of {term}" if has_definition else "" for term, (_, has_definition) in enumerate(shape)],
    )


def scores_of(components: TermTexts, queries: int = 3, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(queries, len(components)))


def reference_score(row: np.ndarray, components: TermTexts, term: int, expression: WeightedSum) -> float:
    """The value of an expression for one query and one term."""
    parts = {
        "label": _scores(row, components, term, ComponentKind.LABEL),
        "synonyms": _scores(row, components, term, ComponentKind.SYNONYM),
        "definition": _scores(row, components, term, ComponentKind.DEFINITION),
    }
    value = _reference_sum(expression, parts)
    return parts["label"][0] if value is None else value


def _scores(row: np.ndarray, components: TermTexts, term: int, kind: ComponentKind) -> list[float]:
    mask = (components.term == term) & (components.kind == kind)
    return [float(score) for score in row[mask]]


def _reference_sum(expression: WeightedSum, parts: dict[str, list[float]]) -> float | None:
    addends = [(weight, atom) for weight, atom in expression.addends if weight]
    if not addends:
        return expression.constant
    values = [(weight, _reference_pool(atom, parts)) for weight, atom in addends]
    defined = [(weight, value) for weight, value in values if value is not None]
    if not defined:
        return None
    total = sum(weight * value for weight, value in defined)
    if all(weight > 0 for weight, _ in values):
        total *= sum(weight for weight, _ in values) / sum(weight for weight, _ in defined)
    return total + expression.constant


def _reference_pool(atom, parts: dict[str, list[float]]) -> float | None:
    if isinstance(atom, ComponentScore):
        return parts[atom.name][0] if parts[atom.name] else None
    values: list[float] = []
    for weighted_sum in atom.sums:
        if any(
            isinstance(component, ComponentScore) and component.name == "synonyms"
            for _, component in weighted_sum.addends
        ):
            weight = weighted_sum.addends[0][0]
            values += [weight * value + weighted_sum.constant for value in parts["synonyms"]]
        elif (value := _reference_sum(weighted_sum, parts)) is not None:
            values.append(value)
    pools = {"max": max, "min": min, "mean": lambda scores: math.fsum(scores) / len(scores)}
    return pools[atom.pooling](values) if values else None


EXPRESSIONS = [
    *(name for name in STRATEGIES),
    "0.6*label + 0.4*max(synonyms)",
    "max(synonyms)",
    "definition",
    "mean(label, synonyms, definition)",
    "min(synonyms, definition)",
    "max(label, 0.9*synonyms, -0.5*definition)",
    "max(-1*synonyms)",
    "label - 0.25*definition",
    "0*label + definition",
    "0*label",
    "max(0.5*label + 0.5*definition, mean(synonyms), 0.1) + 1",
    "max(max(synonyms), definition) * 2 / 3",
]


@settings(max_examples=30, deadline=None)
@given(sizes, st.integers(0, 1000))
@pytest.mark.parametrize("text", EXPRESSIONS)
def test_every_strategy_equals_the_reference(text: str, shape: list, seed: int) -> None:
    components, expression = component_texts_of(shape), parse_strategy(text)
    scores = scores_of(components, seed=seed)
    expected = [
        [reference_score(row, components, term, expression) for term in range(components.terms)] for row in scores
    ]
    np.testing.assert_allclose(aggregate_scores(scores, components, text), expected, rtol=1e-12, atol=1e-12)


@given(sizes, st.integers(0, 1000))
def test_the_named_strategies_have_the_expected_order(shape: list, seed: int) -> None:
    components = component_texts_of(shape)
    scores = scores_of(components, seed=seed)
    scores_by_name = {name: aggregate_scores(scores, components, name) for name in STRATEGIES}
    assert (scores_by_name["all_min"] <= scores_by_name["label_synonyms_min"]).all()
    assert (scores_by_name["label_synonyms_min"] <= scores_by_name["label_only"]).all()
    assert (scores_by_name["label_only"] <= scores_by_name["label_synonyms_max"]).all()
    assert (scores_by_name["label_synonyms_max"] <= scores_by_name["all_max"]).all()
    assert (scores_by_name["all_weighted"] <= scores_by_name["all_max"] + 1e-12).all()
    assert (scores_by_name["all_weighted"] >= scores_by_name["all_min"] - 1e-12).all()


def test_many_queries_are_aggregated_like_single_ones() -> None:
    components = component_texts_of([(3, True), (0, False), (1, True)])
    scores = scores_of(components, queries=50)
    together = aggregate_scores(scores, components, "all_weighted")
    assert together.tolist() == [aggregate_scores(row[None], components, "all_weighted")[0].tolist() for row in scores]


def test_weights_of_missing_components_are_redistributed() -> None:
    components = component_texts(["bare"], [[]], [""])
    assert aggregate_scores(np.array([[0.7]]), components, "all_weighted").tolist() == [[0.7]]
    without_definition = component_texts(["half"], [["other"]], [""])
    assert aggregate_scores(np.array([[0.8, 0.4]]), without_definition, "all_weighted")[0, 0] == pytest.approx(
        (0.5 * 0.8 + 0.3 * 0.4) / 0.8
    )


def test_weights_are_given_by_component_or_in_order() -> None:
    components = component_texts_of([(2, True), (1, False)])
    scores = scores_of(components)
    weights = {"definition": 0.0, "label": 1.0, "synonyms": 3.0}
    aggregated = aggregate_scores(scores, components, "all_weighted", weights)
    np.testing.assert_allclose(aggregated, aggregate_scores(scores, components, "label + 3*max(synonyms)"))
    assert (aggregated == aggregate_scores(scores, components, "all_weighted", [1.0, 3.0, 0.0])).all()


@pytest.mark.parametrize(
    ("weights", "text"),
    [
        ([1.0, 2.0], "weights"),
        ([1.0, 2.0, 3.0, 4.0], "weights"),
        ({"label": 1.0, "synonym": 1.0, "definition": 0.0}, "weights"),
        ([1.0, -1.0, 0.0], "synonyms.*-1.0"),
        ([1.0, math.nan, 0.0], "synonyms.*nan"),
        ([0.0, 0.0, 0.0], "weights.*0"),
    ],
)
def test_invalid_weights_are_errors(weights: object, text: str) -> None:
    with pytest.raises(ParameterError, match=text):
        parse_strategy("all_weighted", weights)  # type: ignore[arg-type]


def test_weights_are_for_all_weighted_only() -> None:
    with pytest.raises(ParameterError):
        parse_strategy("all_max", [1, 1, 1])


def test_a_misspelled_strategy_gets_a_suggestion() -> None:
    with pytest.raises(UnknownNameError) as error:
        parse_strategy("label_synonym_max")
    assert "did you mean label_synonyms_max" in error.value.hint


def test_the_scores_of_a_single_vector_index_are_unchanged() -> None:
    components = concatenated_texts(["a", "b"], [["c"], []], ["", ""])
    scores = np.array([[0.1, 0.2]], dtype=np.float32)
    assert aggregate_scores(scores, components).tolist() == scores.tolist()


def test_columns_that_a_strategy_does_not_read_are_optional() -> None:
    components = component_texts_of([(2, True), (0, True), (1, False)])
    scores = scores_of(components)
    for text, count in (("label_only", 3), ("label_synonyms_max", 6), ("all_max", 8)):
        assert n_columns_read(components, parse_strategy(text)) == count
        from_columns = aggregate_scores(scores[:, :count], components, text)
        assert (from_columns == aggregate_scores(scores, components, text)).all()
    with pytest.raises(ShapeError, match="8 components"):
        aggregate_scores(scores[:, :5], components)


def test_float32_scores_stay_float32() -> None:
    components = component_texts_of([(2, True), (0, False)])
    scores = scores_of(components).astype(np.float32)
    for text in EXPRESSIONS:
        assert aggregate_scores(scores, components, text).dtype == np.float32
