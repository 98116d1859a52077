"""Equal keys stand as the C++ library behind torch leaves them."""

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
def test_equals_stand_as_torch_sorts_them(found: list[int]) -> None:
    torch = pytest.importorskip("torch")
    assert std_sort_order(found) == torch.tensor(found).argsort().tolist()


@pytest.mark.engines("torch")
@on_linux
@settings(max_examples=60)
@given(keys, st.integers(1, 220))
def test_equals_are_picked_as_torch_picks_them(found: list[int], k: int) -> None:
    torch = pytest.importorskip("torch")
    k = min(k, len(found))
    scores = torch.tensor(found, dtype=torch.float32)
    assert torch_topk_order(found, k) == scores.topk(k, largest=False)[1].tolist()


@pytest.mark.engines("torch")
@on_linux
@pytest.mark.parametrize("size", [32_767, 32_768, 40_000])
@pytest.mark.parametrize("threads", [1, 2])
def test_long_lists_of_floats_are_sorted_and_picked_alike_at_any_length(size: int, threads: int) -> None:
    import torch

    found = [place * place % 7 for place in range(size)]
    scores, usual = torch.tensor(found, dtype=torch.float32), torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        assert std_sort_order(found) == scores.argsort().tolist()
        for k in (10, size // 2):
            assert torch_topk_order(found, k) == scores.topk(k, largest=False)[1].tolist()
    finally:
        torch.set_num_threads(usual)


@given(keys, st.integers(1, 220))
def test_keys_come_in_order_and_each_once(found: list[int], k: int) -> None:
    assert [found[place] for place in std_sort_order(found)] == sorted(found)
    assert sorted(std_sort_order(found)) == list(range(len(found)))
    picked = torch_topk_order(found, min(k, len(found)))
    assert [found[place] for place in picked] == sorted(found)[: len(picked)]


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_the_heap_takes_over_where_splits_do_not_help(depth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tie_orders, "_depth", lambda size: depth)
    for size in (17, 40, 200):
        tricky = [min(place, size - place) % 7 for place in range(size)]
        assert [tricky[place] for place in std_sort_order(tricky)] == sorted(tricky)
        assert [tricky[place] for place in torch_topk_order(tricky, 9)] == sorted(tricky)[:9]
