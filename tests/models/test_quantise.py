"""Postprocessing of vectors: truncation, normalisation and quantisation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from equipoise.errors import ParameterError
from equipoise.models.encoder import (
    VectorDtype,
    VectorPostprocessing,
    binary_roundtrip,
    int8_roundtrip,
    l2_normalize,
)
from equipoise.models.registry import parse_spec

VECTORS = arrays(
    np.float32,
    st.tuples(st.integers(1, 6), st.integers(1, 17)),
    elements=st.floats(-100, 100, width=32, allow_subnormal=False),
)


def postprocessing(options: str) -> VectorPostprocessing:
    return VectorPostprocessing.of(parse_spec(f"minilm{options}"))


@given(VECTORS)
def test_no_options_change_nothing(vectors):
    np.testing.assert_array_equal(postprocessing("")(vectors), vectors)


@given(VECTORS, st.sampled_from(list(VectorDtype)))
def test_quantisation_is_idempotent(vectors, dtype):
    once = VectorPostprocessing(dtype=dtype)(vectors)
    np.testing.assert_allclose(VectorPostprocessing(dtype=dtype)(once), once, rtol=1e-6, atol=0)


@given(VECTORS, st.sampled_from(list(VectorDtype)), st.booleans())
def test_vectors_do_not_depend_on_other_vectors(vectors, dtype, normalize):
    step = VectorPostprocessing(normalize=normalize, dtype=dtype)
    single_vectors = np.vstack([step(row[None]) for row in vectors])
    np.testing.assert_allclose(step(vectors), single_vectors, rtol=1e-5, atol=1e-7)


@given(VECTORS)
def test_int8_errors_are_at_most_half_a_step(vectors):
    step = np.abs(vectors).max(axis=1, keepdims=True) / 127
    assert (np.abs(int8_roundtrip(vectors) - vectors) <= step * 0.5001 + 1e-6).all()


@given(VECTORS)
def test_int8_has_at_most_255_levels_per_vector(vectors):
    stored = int8_roundtrip(vectors)
    step = np.where((largest := np.abs(vectors).max(axis=1, keepdims=True)) > 0, largest, 1) / 127
    levels = stored / step
    assert np.abs(levels - np.rint(levels)).max() < 1e-3
    assert np.abs(levels).max() < 127.5


@given(VECTORS)
def test_binary_vectors_keep_the_signs_only(vectors):
    stored = binary_roundtrip(vectors, unit_length=False)
    assert set(np.unique(stored)) <= {-1.0, 1.0}
    np.testing.assert_array_equal(stored > 0, vectors > 0)
    np.testing.assert_allclose(np.linalg.norm(binary_roundtrip(vectors, unit_length=True), axis=1), 1, rtol=1e-5)


@given(VECTORS)
def test_normalised_vectors_have_norm_one_and_zero_stays_zero(vectors):
    norms = np.linalg.norm(l2_normalize(vectors).astype(np.float64), axis=1)
    tiny = np.linalg.norm(vectors.astype(np.float64), axis=1) < 1e-15
    assert (np.abs(norms[~tiny] - 1) < 1e-5).all()
    np.testing.assert_array_equal(l2_normalize(np.zeros((2, 3), np.float32)), 0)


def test_truncated_vectors_are_normalised_by_default():
    vectors = np.array([[3.0, 4.0, 12.0]], np.float32)
    np.testing.assert_allclose(postprocessing(",dim=2")(vectors), [[0.6, 0.8]], rtol=1e-6)
    np.testing.assert_array_equal(postprocessing(",dim=2,normalize=false")(vectors), [[3.0, 4.0]])
    np.testing.assert_allclose(postprocessing(",normalize=true")(vectors), vectors / 13, rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "size"),
    [
        ("", 400),
        (",dtype=float16", 200),
        (",dtype=int8", 104),
        (",dtype=binary", 13),
        (",dim=9,dtype=binary", 2),
    ],
)
def test_bytes_per_vector_of_every_dtype(options, size):
    assert postprocessing(options).bytes_per_vector(100) == size


def test_float16_agrees_with_numpy():
    vectors = np.array([[1 / 3, 1e-3]], np.float32)
    np.testing.assert_array_equal(
        postprocessing(",dtype=float16")(vectors), vectors.astype(np.float16).astype(np.float32)
    )


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        (",dtype=int9", "did you mean int8"),
        (",dim=0", "above 0"),
        (",dim=x", "above 0"),
        (",normalize=2", "true or"),
    ],
)
def test_invalid_options_raise_parameter_error(options, hint):
    with pytest.raises(ParameterError) as error:
        postprocessing(options)
    assert hint in error.value.hint


def test_too_many_dimensions_raise_parameter_error():
    with pytest.raises(ParameterError, match="3 dimensions"):
        postprocessing(",dim=4")(np.ones((1, 3), np.float32))
