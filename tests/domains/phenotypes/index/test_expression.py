"""The expression language of aggregation: parsing and errors."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.domains.phenotypes.index.aggregation import (
    ComponentScore,
    PooledTerm,
    WeightedSum,
    parse_expression,
)
from equipoise.errors import ParameterError

LABEL = ComponentScore("label")


def test_a_sum_is_flattened_with_its_weights() -> None:
    expression = parse_expression("2*(label + 3*definition)/4 - -1e-1 * max(label) + 1 - .5")
    assert expression == WeightedSum(
        (
            (0.5, LABEL),
            (1.5, ComponentScore("definition")),
            (0.1, PooledTerm("max", (WeightedSum(((1.0, LABEL),)),))),
        ),
        0.5,
    )


def test_synonyms_may_be_scaled_inside_a_pool() -> None:
    expression = parse_expression("max(label, 0.9*synonyms)")
    assert expression.addends[0][1].sums[1].addends == ((0.9, ComponentScore("synonyms")),)
    assert expression.parts == {"label", "synonyms"}


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("label * definition", 8),
        ("1 / label", 4),
        ("label / 0", 8),
        ("0.5*synonyms", 0),
        ("label + synonyms", 8),
        ("label +", 7),
        ("max label", 4),
        ("max(label", 3),
        ("(label", 0),
        ("max(1, 2)", 0),
        ("label label", 6),
        ("labels", 0),
        ("__import__('os')", 0),
        ("label; label", 5),
        ("label ** 2", 0),
        ("1e999*label", 0),
        ("max(*label)", 4),
        ("max(label, key=label)", 0),
        ("1j*label", 0),
        ("label if label else label", 0),
    ],
)
def test_an_error_points_at_the_column(text: str, column: int) -> None:
    with pytest.raises(ParameterError) as error:
        parse_expression(text)
    assert error.value.excerpt == f"{text}\n{' ' * column}^"
    assert error.value.hint


def test_empty_and_constant_expressions_are_errors() -> None:
    for text in ("", "  "):
        with pytest.raises(ParameterError, match="empty"):
            parse_expression(text)
    with pytest.raises(ParameterError):
        parse_expression("1 + 2")


def test_a_mistyped_component_gets_a_suggestion() -> None:
    with pytest.raises(ParameterError) as error:
        parse_expression("0.5*lable")
    assert "did you mean label" in error.value.hint


@pytest.mark.parametrize("text", ["(" * 300 + "label" + ")" * 300, "-" * 900 + "label", "label+" * 400])
def test_very_long_expressions_are_errors_without_exhausting_the_stack(text: str) -> None:
    with pytest.raises(ParameterError):
        parse_expression(text)


@given(st.text("label synomdefitxm0123456789.*/+-(),eE", max_size=40))
def test_any_text_is_an_expression_or_a_parameter_error(text: str) -> None:
    with suppress(ParameterError):
        assert parse_expression(text).parts
