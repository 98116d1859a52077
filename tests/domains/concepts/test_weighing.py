"""The share of all weightings in which a model is first."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from equipoise.domains.concepts.comparison import weight_sensitivity
from equipoise.errors import ShapeError


def test_two_models_and_two_scores_have_a_closed_form() -> None:
    # With weight w on the first score, the first model wins where w 0.4 > (1 - w) 0.1, that is for w > 0.2.
    shares = weight_sensitivity(np.array([[0.9, 0.3], [0.5, 0.4]]), seed=1)
    assert shares == pytest.approx([0.8, 0.2], abs=0.01)


def test_a_model_that_is_best_on_every_score_always_wins() -> None:
    assert weight_sensitivity(np.array([[0.3, 0.3, 0.2], [0.2, 0.1, 0.1]])).tolist() == [1.0, 0.0]


def test_equal_models_have_equal_shares() -> None:
    assert weight_sensitivity(np.full((4, 5), 0.3)) == pytest.approx(np.full(4, 0.25))


def test_large_errors_reduce_the_share_of_a_small_lead() -> None:
    scores = np.array([[0.31, 0.31], [0.30, 0.30]])
    errors = np.random.default_rng(0).normal(scale=0.2, size=(2, 2, 500))
    assert weight_sensitivity(scores)[0] == 1.0
    assert weight_sensitivity(scores, errors)[0] == pytest.approx(0.5, abs=0.05)


@given(arrays(np.float64, (3, 4), elements=st.floats(-1, 1)))
def test_shares_add_up_to_one(scores: np.ndarray) -> None:
    shares = weight_sensitivity(scores, weightings=200)
    assert shares.sum() == pytest.approx(1.0)
    assert (shares >= 0).all()


def test_a_single_row_is_an_error() -> None:
    with pytest.raises(ShapeError, match="1 dimensions"):
        weight_sensitivity(np.array([0.1, 0.2]))
