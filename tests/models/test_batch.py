"""Batching: every text once, similar lengths together, within limits."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.errors import InputError
from equipoise.models import encode_texts
from equipoise.models.encode_texts import check_texts, length_batches, token_batches, unique_texts

TEXTS = st.lists(st.text("ab ", min_size=1, max_size=9), min_size=1, max_size=40)
LENGTHS = st.lists(st.integers(1, 30), min_size=1, max_size=60)


@given(TEXTS)
def test_repeated_texts_refer_to_their_first_occurrence(texts):
    unique = unique_texts(texts)
    assert unique.texts == list(dict.fromkeys(texts))
    assert [texts[index] for index in unique.first] == unique.texts
    assert [texts[index] for index in unique.again] == [texts[index] for index in unique.same_as]
    assert sorted([*unique.first, *unique.again]) == list(range(len(texts)))


@given(TEXTS, st.integers(1, 7))
def test_batches_contain_every_text_once_in_order_of_length(texts, batch_size):
    batches = list(length_batches(texts, batch_size))
    indices = [index for batch in batches for index in batch]
    lengths = [len(texts[index]) for index in indices]
    assert sorted(indices) == list(range(len(texts)))
    assert lengths == sorted(lengths, reverse=True)
    assert all(0 < len(batch) <= batch_size for batch in batches)


def test_batches_end_before_the_character_limit(monkeypatch):
    monkeypatch.setattr(encode_texts, "MAX_BATCH_CHARACTERS", 10)
    assert list(length_batches(["x" * 50, "y" * 6, "z" * 4, "w"], 99)) == [[0], [1, 2], [3]]


@given(LENGTHS, st.integers(1, 64))
def test_padded_batches_do_not_exceed_the_token_limit(lengths, limit):
    batches = list(token_batches(lengths, limit))
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    for batch in batches:
        n_tokens = len(batch) * max(lengths[index] for index in batch)
        assert n_tokens <= limit or len(batch) == 1


@given(LENGTHS, st.integers(1, 64))
def test_batches_take_all_texts_of_equal_length_that_fit(lengths, limit):
    batches = list(token_batches(lengths, limit))
    for batch, next_batch in pairwise(batches):
        longest, next_longest = lengths[batch[0]], lengths[next_batch[0]]
        fits = (len(batch) + 1) * longest <= limit
        assert not fits or (next_longest < longest and len(batch) * longest >= limit / 4)


@given(LENGTHS, st.integers(1, 64))
def test_only_small_batches_are_padded_further(lengths, limit):
    for batch in token_batches(lengths, limit):
        longest = lengths[batch[0]]
        n_equal = sum(lengths[index] == longest for index in batch)
        assert n_equal == len(batch) or (len(batch) - 1) * longest < limit / 4


def test_a_limit_of_zero_gives_batches_of_one():
    assert [len(batch) for batch in token_batches([3, 1, 2], 0)] == [1, 1, 1]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([], "there are no texts"),
        ("one text", "one text was given"),
        (None, "the texts are of type NoneType"),
        (["a", ""], "text 1 .* is empty"),
        (["a", "b", " \n\t"], "text 2 .* is empty"),
        (["a", 3], "text 1 .* is of type int"),
        (["a", None], "text 1 .* is of type NoneType"),
        (["ok", "broken \ud800 half"], "text 1 .* lone surrogate.* at position 7"),
    ],
)
def test_invalid_texts_raise_input_error_with_their_index(texts, message):
    with pytest.raises(InputError, match=message):
        check_texts(texts)


def test_texts_may_come_from_a_generator_or_an_array():
    assert check_texts(text for text in ("a", "b")) == ["a", "b"]
    assert check_texts(np.array(["a", "b"], dtype=object)) == ["a", "b"]
