"""Adjusted p values against scipy and a slow reading of Holm's paper."""

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
    """Step down from the smallest; stop at the first that is not small enough."""
    rejected = [False] * len(p)
    for step, at in enumerate(sorted(range(len(p)), key=lambda at: p[at])):
        if p[at] > alpha / (len(p) - step):
            break
        rejected[at] = True
    return rejected


@given(P_VALUES, st.floats(0.001, 0.9))
def test_holm_rejects_what_the_step_down_procedure_rejects(p, alpha):
    adjusted = holm(p)
    clear = np.abs(adjusted - alpha) > 1e-12
    assert (np.array(holm_rejects(p, alpha)) == (adjusted <= alpha))[clear].all()


@given(P_VALUES)
def test_benjamini_hochberg_is_scipys(p):
    assert benjamini_hochberg(p) == pytest.approx(false_discovery_control(p))


@given(P_VALUES, st.sampled_from(["holm", "bh", "none"]))
def test_an_adjusted_p_is_never_smaller_and_keeps_the_order(p, method):
    adjusted = adjust(p, method)
    assert (adjusted >= np.array(p) - 1e-15).all()
    assert (adjusted <= 1).all()
    assert (np.diff(adjusted[np.argsort(p, kind="stable")]) >= -1e-15).all()


@pytest.mark.parametrize("method", ["holm", "bh", "none"])
def test_an_unknown_p_is_not_part_of_the_family(method):
    adjusted = adjust([0.01, np.nan, 0.04], method)
    assert adjusted[[0, 2]] == pytest.approx(adjust([0.01, 0.04], method))
    assert np.isnan(adjusted[1])


def test_the_argument_is_left_alone():
    p = np.array([0.03, 0.01])
    holm(p)
    assert p.tolist() == [0.03, 0.01]


def test_bad_input_is_named():
    with pytest.raises(ParameterError):
        holm([0.5, 1.5])
    with pytest.raises(UnknownNameError, match="bonferoni"):
        adjust([0.5], "bonferoni")
