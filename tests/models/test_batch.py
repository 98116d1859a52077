"""Batching: every text once, alike lengths together, limits kept, order restored."""

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
def test_repetitions_lead_back_to_the_first_of_their_kind(texts):
    once = unique_texts(texts)
    assert once.texts == list(dict.fromkeys(texts))
    assert [texts[place] for place in once.first] == once.texts
    assert [texts[place] for place in once.again] == [texts[place] for place in once.same_as]
    assert sorted([*once.first, *once.again]) == list(range(len(texts)))


@given(TEXTS, st.integers(1, 7))
def test_blocks_hold_every_text_once_and_fall_in_length(texts, most):
    found = list(length_batches(texts, most))
    places = [place for block in found for place in block]
    lengths = [len(texts[place]) for place in places]
    assert sorted(places) == list(range(len(texts)))
    assert lengths == sorted(lengths, reverse=True)
    assert all(0 < len(block) <= most for block in found)


def test_a_block_ends_before_it_holds_too_much_text(monkeypatch):
    monkeypatch.setattr(encode_texts, "MAX_BATCH_CHARACTERS", 10)
    assert list(length_batches(["x" * 50, "y" * 6, "z" * 4, "w"], 99)) == [[0], [1, 2], [3]]


@given(LENGTHS, st.integers(1, 64))
def test_no_batch_exceeds_its_tokens_when_padded(lengths, limit):
    found = list(token_batches(lengths, limit))
    assert sorted(place for each in found for place in each) == list(range(len(lengths)))
    for each in found:
        padded = len(each) * max(lengths[place] for place in each)
        assert padded <= limit or len(each) == 1


@given(LENGTHS, st.integers(1, 64))
def test_a_batch_takes_all_texts_of_its_length_that_fit(lengths, limit):
    found = list(token_batches(lengths, limit))
    for each, after in pairwise(found):
        longest, following = lengths[each[0]], lengths[after[0]]
        fits = (len(each) + 1) * longest <= limit
        assert not fits or (following < longest and len(each) * longest >= limit / 4)


@given(LENGTHS, st.integers(1, 64))
def test_only_a_small_batch_is_padded_further(lengths, limit):
    for each in token_batches(lengths, limit):
        longest = lengths[each[0]]
        n_equal = sum(lengths[place] == longest for place in each)
        assert n_equal == len(each) or (len(each) - 1) * longest < limit / 4


def test_a_limit_of_nothing_runs_each_text_alone():
    assert [len(batch) for batch in token_batches([3, 1, 2], 0)] == [1, 1, 1]


@pytest.mark.parametrize(
    ("texts", "sentence"),
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
def test_what_is_no_text_is_named_by_its_place(texts, sentence):
    with pytest.raises(InputError, match=sentence):
        check_texts(texts)


def test_texts_may_come_from_a_generator_or_an_array():
    assert check_texts(text for text in ("a", "b")) == ["a", "b"]
    assert check_texts(np.array(["a", "b"], dtype=object)) == ["a", "b"]
