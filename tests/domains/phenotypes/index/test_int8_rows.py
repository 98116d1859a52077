"""Quantised vectors: error bounds of their products, and the product itself."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from equipoise.domains.phenotypes.index.stored_vectors import Int8Rows, int8_product, ordering_error_bound

NUMBERS = st.floats(-100.0, 100.0, width=32)


@given(arrays(np.float32, (3, 8), elements=NUMBERS), arrays(np.float32, (6, 8), elements=NUMBERS))
def test_products_that_differ_by_more_than_the_bound_have_the_order_of_the_scores(
    queries: np.ndarray, corpus: np.ndarray
) -> None:
    left, right = Int8Rows.of(queries, scale_per_row=True), Int8Rows.of(corpus)
    products = left.values.astype(np.int64) @ right.values.astype(np.int64).T
    exact = queries.astype(np.float64) @ corpus.astype(np.float64).T
    clear = products[:, :, None] - products[:, None, :] > ordering_error_bound(left, right)[:, None, None]
    assert (exact[:, :, None] > exact[:, None, :])[clear].all()


@given(arrays(np.float32, (5, 7), elements=NUMBERS))
def test_a_row_is_its_quantised_row_plus_an_error_of_known_length(rows: np.ndarray) -> None:
    for scale_per_row in (False, True):
        quantised = Int8Rows.of(rows, scale_per_row=scale_per_row)
        residuals = rows - quantised.values * quantised.scale[:, None]
        assert np.linalg.norm(residuals, axis=1) == pytest.approx(quantised.quantization_errors)
        assert (np.abs(residuals) <= quantised.scale[:, None] * 0.5001).all()
        assert quantised.lengths == pytest.approx(np.linalg.norm(rows.astype(np.float64), axis=1))


def test_a_scale_is_multiplied_into_the_rows() -> None:
    rng = np.random.default_rng(0)
    rows, scale = rng.normal(size=(9, 4)), rng.uniform(0.1, 9.0, size=9)
    scaled, expected = Int8Rows.of(rows, scale), Int8Rows.of(rows * scale[:, None])
    assert np.array_equal(scaled.values, expected.values)
    assert scaled.quantization_errors == pytest.approx(expected.quantization_errors)


@pytest.mark.engines("torch")
def test_the_torch_product_of_bytes_is_exact() -> None:
    pytest.importorskip("torch")
    product = int8_product(300)
    if product is None:
        pytest.skip("this processor has no fast product of bytes")
    rng = np.random.default_rng(0)
    for rows in (5, 5, 2):
        left = rng.integers(-127, 128, size=(rows, 300), dtype=np.int8)
        right = rng.integers(-127, 128, size=(70, 300), dtype=np.int8)
        right[0] = left[0] = -127
        assert np.array_equal(product(left, right), left.astype(np.int32) @ right.T.astype(np.int32))


def test_torch_is_not_imported_for_the_product(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert int8_product(300) is None
    assert "torch" not in sys.modules


@pytest.mark.engines("torch")
def test_rows_whose_products_overflow_32_bits_have_no_product() -> None:
    pytest.importorskip("torch")
    assert 127 * 127 * 140_000 > 2**31
    assert int8_product(140_000) is None
