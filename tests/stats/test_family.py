"""Adjusted p values, compared with scipy and with Holm's step-down procedure."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control

from equipoise.errors import ParameterError, UnknownNameError
from equipoise.stats.multiple_comparisons import adjust, benjamini_hochberg, holm

P_VALUES = st.lists(st.floats(0, 1, allow_subnormal=False), min_size=1, max_size=12)


def holm_rejects(p, alpha):
    """Step down from the smallest p value; stop at the first that exceeds its threshold."""
    rejected = [False] * len(p)
    for step, index in enumerate(sorted(range(len(p)), key=lambda index: p[index])):
        if p[index] > alpha / (len(p) - step):
            break
        rejected[index] = True
    return rejected


@given(P_VALUES, st.floats(0.001, 0.9))
def test_holm_agrees_with_the_step_down_procedure(p, alpha):
    adjusted = holm(p)
    not_at_threshold = np.abs(adjusted - alpha) > 1e-12
    assert (np.array(holm_rejects(p, alpha)) == (adjusted <= alpha))[not_at_threshold].all()


@given(P_VALUES)
def test_benjamini_hochberg_agrees_with_scipy(p):
    assert benjamini_hochberg(p) == pytest.approx(false_discovery_control(p))


@given(P_VALUES, st.sampled_from(["holm", "bh", "none"]))
def test_adjusted_p_values_are_not_smaller_and_keep_the_order(p, method):
    adjusted = adjust(p, method)
    assert (adjusted >= np.array(p) - 1e-15).all()
    assert (adjusted <= 1).all()
    assert (np.diff(adjusted[np.argsort(p, kind="stable")]) >= -1e-15).all()


@pytest.mark.parametrize("method", ["holm", "bh", "none"])
def test_unknown_p_values_are_excluded_from_the_family(method):
    adjusted = adjust([0.01, np.nan, 0.04], method)
    assert adjusted[[0, 2]] == pytest.approx(adjust([0.01, 0.04], method))
    assert np.isnan(adjusted[1])


def test_the_argument_is_not_modified():
    p = np.array([0.03, 0.01])
    holm(p)
    assert p.tolist() == [0.03, 0.01]


def test_bad_input_raises_errors():
    with pytest.raises(ParameterError):
        holm([0.5, 1.5])
    with pytest.raises(UnknownNameError, match="bonferoni"):
        adjust([0.5], "bonferoni")
