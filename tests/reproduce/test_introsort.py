"""Equal keys are in the order of the C++ library of torch."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.reproduce import tie_orders
from equipoise.reproduce.tie_orders import std_sort_order, torch_topk_order

keys = st.lists(st.integers(0, 6), min_size=1, max_size=220)
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="another C++ library has another order")


@pytest.mark.engines("torch")
@on_linux
@settings(max_examples=60)
@given(keys)
def test_equal_keys_are_sorted_as_in_torch(values: list[int]) -> None:
    torch = pytest.importorskip("torch")
    assert std_sort_order(values) == torch.tensor(values).argsort().tolist()


@pytest.mark.engines("torch")
@on_linux
@settings(max_examples=60)
@given(keys, st.integers(1, 220))
def test_equal_keys_are_selected_as_in_torch_topk(values: list[int], k: int) -> None:
    torch = pytest.importorskip("torch")
    k = min(k, len(values))
    scores = torch.tensor(values, dtype=torch.float32)
    assert torch_topk_order(values, k) == scores.topk(k, largest=False)[1].tolist()


@pytest.mark.engines("torch")
@on_linux
@pytest.mark.parametrize("size", [32_767, 32_768, 40_000])
@pytest.mark.parametrize("threads", [1, 2])
def test_long_lists_are_sorted_and_selected_as_in_torch(size: int, threads: int) -> None:
    import torch

    values = [index * index % 7 for index in range(size)]
    scores, previous_threads = torch.tensor(values, dtype=torch.float32), torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        assert std_sort_order(values) == scores.argsort().tolist()
        for k in (10, size // 2):
            assert torch_topk_order(values, k) == scores.topk(k, largest=False)[1].tolist()
    finally:
        torch.set_num_threads(previous_threads)


@given(keys, st.integers(1, 220))
def test_the_order_is_a_sorted_permutation(values: list[int], k: int) -> None:
    assert [values[index] for index in std_sort_order(values)] == sorted(values)
    assert sorted(std_sort_order(values)) == list(range(len(values)))
    top_indices = torch_topk_order(values, min(k, len(values)))
    assert [values[index] for index in top_indices] == sorted(values)[: len(top_indices)]


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_heap_sort_is_used_at_the_depth_limit(depth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tie_orders, "_depth", lambda size: depth)
    for size in (17, 40, 200):
        values = [min(index, size - index) % 7 for index in range(size)]
        assert [values[index] for index in std_sort_order(values)] == sorted(values)
        assert [values[index] for index in torch_topk_order(values, 9)] == sorted(values)[:9]
