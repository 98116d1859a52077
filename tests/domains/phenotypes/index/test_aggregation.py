"""One score a term, held to slow code that looks at one query and one term at a time."""

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


def made(shape: list[tuple[int, bool]]) -> TermTexts:
    """Terms with so many synonyms, with a definition or without."""
    return component_texts(
        [f"term {place}" for place in range(len(shape))],
        [[f"synonym {nth} of {place}" for nth in range(count)] for place, (count, _) in enumerate(shape)],
        [f"definition of {place}" if has else "" for place, (_, has) in enumerate(shape)],
    )


def scores_of(components: TermTexts, queries: int = 3, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(queries, len(components)))


def slowly(row: np.ndarray, components: TermTexts, term: int, how: WeightedSum) -> float:
    """The value of an expression for one query and one term."""
    parts = {
        "label": _scores(row, components, term, ComponentKind.LABEL),
        "synonyms": _scores(row, components, term, ComponentKind.SYNONYM),
        "definition": _scores(row, components, term, ComponentKind.DEFINITION),
    }
    found = _slow_sum(how, parts)
    return parts["label"][0] if found is None else found


def _scores(row: np.ndarray, components: TermTexts, term: int, kind: ComponentKind) -> list[float]:
    own = (components.term == term) & (components.kind == kind)
    return [float(each) for each in row[own]]


def _slow_sum(how: WeightedSum, parts: dict[str, list[float]]) -> float | None:
    addends = [(weight, atom) for weight, atom in how.addends if weight]
    if not addends:
        return how.constant
    values = [(weight, _slow_atom(atom, parts)) for weight, atom in addends]
    there = [(weight, value) for weight, value in values if value is not None]
    if not there:
        return None
    total = sum(weight * value for weight, value in there)
    if all(weight > 0 for weight, _ in values):
        total *= sum(weight for weight, _ in values) / sum(weight for weight, _ in there)
    return total + how.constant


def _slow_atom(atom, parts: dict[str, list[float]]) -> float | None:
    if isinstance(atom, ComponentScore):
        return parts[atom.name][0] if parts[atom.name] else None
    values: list[float] = []
    for each in atom.sums:
        if any(isinstance(one, ComponentScore) and one.name == "synonyms" for _, one in each.addends):
            weight = each.addends[0][0]
            values += [weight * value + each.constant for value in parts["synonyms"]]
        elif (value := _slow_sum(each, parts)) is not None:
            values.append(value)
    pools = {"max": max, "min": min, "mean": lambda some: math.fsum(some) / len(some)}
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
def test_every_strategy_equals_slow_code(text: str, shape: list, seed: int) -> None:
    components, how = made(shape), parse_strategy(text)
    scores = scores_of(components, seed=seed)
    expected = [[slowly(row, components, term, how) for term in range(components.terms)] for row in scores]
    np.testing.assert_allclose(aggregate_scores(scores, components, text), expected, rtol=1e-12, atol=1e-12)


@given(sizes, st.integers(0, 1000))
def test_the_named_strategies_are_ordered_as_their_names_say(shape: list, seed: int) -> None:
    components = made(shape)
    scores = scores_of(components, seed=seed)
    found = {name: aggregate_scores(scores, components, name) for name in STRATEGIES}
    assert (found["all_min"] <= found["label_synonyms_min"]).all()
    assert (found["label_synonyms_min"] <= found["label_only"]).all()
    assert (found["label_only"] <= found["label_synonyms_max"]).all()
    assert (found["label_synonyms_max"] <= found["all_max"]).all()
    assert (found["all_weighted"] <= found["all_max"] + 1e-12).all()
    assert (found["all_weighted"] >= found["all_min"] - 1e-12).all()


def test_many_queries_are_reduced_like_few() -> None:
    components = made([(3, True), (0, False), (1, True)])
    scores = scores_of(components, queries=50)
    whole = aggregate_scores(scores, components, "all_weighted")
    assert whole.tolist() == [aggregate_scores(row[None], components, "all_weighted")[0].tolist() for row in scores]


def test_weights_of_absent_parts_go_to_those_that_are_present() -> None:
    components = component_texts(["bare"], [[]], [""])
    assert aggregate_scores(np.array([[0.7]]), components, "all_weighted").tolist() == [[0.7]]
    half = component_texts(["half"], [["other"]], [""])
    assert aggregate_scores(np.array([[0.8, 0.4]]), half, "all_weighted")[0, 0] == pytest.approx(
        (0.5 * 0.8 + 0.3 * 0.4) / 0.8
    )


def test_weights_are_given_by_part_or_in_order() -> None:
    components = made([(2, True), (1, False)])
    scores = scores_of(components)
    named = {"definition": 0.0, "label": 1.0, "synonyms": 3.0}
    ours = aggregate_scores(scores, components, "all_weighted", named)
    np.testing.assert_allclose(ours, aggregate_scores(scores, components, "label + 3*max(synonyms)"))
    assert (ours == aggregate_scores(scores, components, "all_weighted", [1.0, 3.0, 0.0])).all()


@pytest.mark.parametrize(
    ("weights", "fact"),
    [
        ([1.0, 2.0], "the weights are"),
        ([1.0, 2.0, 3.0, 4.0], "the weights are"),
        ({"label": 1.0, "synonym": 1.0, "definition": 0.0}, "the weights are"),
        ([1.0, -1.0, 0.0], "weight of synonyms is -1.0"),
        ([1.0, math.nan, 0.0], "weight of synonyms is nan"),
        ([0.0, 0.0, 0.0], "all weights are 0"),
    ],
)
def test_weights_that_cannot_be_are_refused(weights: object, fact: str) -> None:
    with pytest.raises(ParameterError, match=fact):
        parse_strategy("all_weighted", weights)  # type: ignore[arg-type]


def test_weights_are_for_all_weighted_only() -> None:
    with pytest.raises(ParameterError):
        parse_strategy("all_max", [1, 1, 1])


def test_a_misspelled_strategy_gets_a_suggestion() -> None:
    with pytest.raises(UnknownNameError) as error:
        parse_strategy("label_synonym_max")
    assert "did you mean label_synonyms_max" in error.value.hint


def test_the_scores_of_a_single_vector_index_stay_as_they_are() -> None:
    components = concatenated_texts(["a", "b"], [["c"], []], ["", ""])
    scores = np.array([[0.1, 0.2]], dtype=np.float32)
    assert aggregate_scores(scores, components).tolist() == scores.tolist()


def test_columns_that_a_strategy_does_not_read_may_be_left_out() -> None:
    components = made([(2, True), (0, True), (1, False)])
    scores = scores_of(components)
    for text, count in (("label_only", 3), ("label_synonyms_max", 6), ("all_max", 8)):
        assert n_columns_read(components, parse_strategy(text)) == count
        short = aggregate_scores(scores[:, :count], components, text)
        assert (short == aggregate_scores(scores, components, text)).all()
    with pytest.raises(ShapeError, match="8 components"):
        aggregate_scores(scores[:, :5], components)


def test_float32_scores_stay_float32() -> None:
    components = made([(2, True), (0, False)])
    scores = scores_of(components).astype(np.float32)
    for text in EXPRESSIONS:
        assert aggregate_scores(scores, components, text).dtype == np.float32
