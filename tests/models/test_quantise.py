"""What happens to vectors after the model: the laws of cutting, normalising and quantising."""

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


def finish(options: str) -> VectorPostprocessing:
    return VectorPostprocessing.of(parse_spec(f"minilm{options}"))


@given(VECTORS)
def test_nothing_asked_is_nothing_done(vectors):
    np.testing.assert_array_equal(finish("")(vectors), vectors)


@given(VECTORS, st.sampled_from(list(VectorDtype)))
def test_a_stored_vector_is_stored_as_itself(vectors, dtype):
    once = VectorPostprocessing(dtype=dtype)(vectors)
    np.testing.assert_allclose(VectorPostprocessing(dtype=dtype)(once), once, rtol=1e-6, atol=0)


@given(VECTORS, st.sampled_from(list(VectorDtype)), st.booleans())
def test_a_vector_does_not_depend_on_its_neighbours(vectors, dtype, normalize):
    step = VectorPostprocessing(normalize=normalize, dtype=dtype)
    alone = np.vstack([step(row[None]) for row in vectors])
    np.testing.assert_allclose(step(vectors), alone, rtol=1e-5, atol=1e-7)


@given(VECTORS)
def test_int8_is_off_by_at_most_half_a_step(vectors):
    step = np.abs(vectors).max(axis=1, keepdims=True) / 127
    assert (np.abs(int8_roundtrip(vectors) - vectors) <= step * 0.5001 + 1e-6).all()


@given(VECTORS)
def test_int8_takes_at_most_255_values_a_vector(vectors):
    stored = int8_roundtrip(vectors)
    step = np.where((largest := np.abs(vectors).max(axis=1, keepdims=True)) > 0, largest, 1) / 127
    levels = stored / step
    assert np.abs(levels - np.rint(levels)).max() < 1e-3
    assert np.abs(levels).max() < 127.5


@given(VECTORS)
def test_bits_keep_the_signs_and_nothing_else(vectors):
    stored = binary_roundtrip(vectors, unit_length=False)
    assert set(np.unique(stored)) <= {-1.0, 1.0}
    np.testing.assert_array_equal(stored > 0, vectors > 0)
    np.testing.assert_allclose(np.linalg.norm(binary_roundtrip(vectors, unit_length=True), axis=1), 1, rtol=1e-5)


@given(VECTORS)
def test_unit_vectors_have_length_one_and_zero_stays_zero(vectors):
    norms = np.linalg.norm(l2_normalize(vectors).astype(np.float64), axis=1)
    tiny = np.linalg.norm(vectors.astype(np.float64), axis=1) < 1e-15
    assert (np.abs(norms[~tiny] - 1) < 1e-5).all()
    np.testing.assert_array_equal(l2_normalize(np.zeros((2, 3), np.float32)), 0)


def test_cut_vectors_are_set_to_length_one_again_unless_told_not_to():
    vectors = np.array([[3.0, 4.0, 12.0]], np.float32)
    np.testing.assert_allclose(finish(",dim=2")(vectors), [[0.6, 0.8]], rtol=1e-6)
    np.testing.assert_array_equal(finish(",dim=2,normalize=false")(vectors), [[3.0, 4.0]])
    np.testing.assert_allclose(finish(",normalize=true")(vectors), vectors / 13, rtol=1e-6)


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
def test_the_card_says_what_a_stored_vector_takes(options, size):
    assert finish(options).bytes_per_vector(100) == size


def test_float16_is_numpys():
    vectors = np.array([[1 / 3, 1e-3]], np.float32)
    np.testing.assert_array_equal(finish(",dtype=float16")(vectors), vectors.astype(np.float16).astype(np.float32))


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        (",dtype=int9", "did you mean int8"),
        (",dim=0", "above 0"),
        (",dim=x", "above 0"),
        (",normalize=2", "true or"),
    ],
)
def test_impossible_steps_are_refused(options, hint):
    with pytest.raises(ParameterError) as caught:
        finish(options)
    assert hint in caught.value.hint


def test_more_dimensions_than_there_are_is_refused():
    with pytest.raises(ParameterError, match="3 dimensions"):
        finish(",dim=4")(np.ones((1, 3), np.float32))
