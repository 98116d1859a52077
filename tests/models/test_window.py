"""Truncation of texts: special tokens, windows and token counts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.errors import InputError
from equipoise.models import tokenizers as module
from equipoise.models.tokenizers import TruncatingTokenizer

tokenizers = pytest.importorskip("tokenizers")

TEXTS = st.lists(st.text("ab c\n", min_size=1, max_size=40), min_size=1, max_size=5)


def tokenizer():
    """A tokenizer of letters with the special tokens of BERT: [CLS] before, [SEP] after."""
    vocabulary = {token: number for number, token in enumerate(["[UNK]", "[CLS]", "[SEP]", "a", "b", "c", "ab"])}
    word_tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    word_tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    word_tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    return word_tokenizer


@given(TEXTS, st.integers(3, 9))
def test_truncation_agrees_with_the_library(texts, max_tokens):
    library = tokenizer()
    library.enable_truncation(max_tokens)
    truncated = TruncatingTokenizer(tokenizer(), max_tokens).cut(texts)
    assert truncated.ids == [encoding.ids for encoding in library.encode_batch(texts)]
    assert truncated.counts == [len(encoding.ids) for encoding in tokenizer().encode_batch(texts)]


@given(TEXTS)
def test_more_threads_give_the_same_tokens(texts):
    assert TruncatingTokenizer(tokenizer(), 5, threads=2).cut(texts) == TruncatingTokenizer(tokenizer(), 5).cut(texts)


@given(st.lists(st.sampled_from(["a", "b", "ab", "c"]), min_size=30, max_size=200), st.integers(3, 300))
def test_long_texts_read_in_segments_give_the_same_tokens(words, max_tokens):
    text = " ".join(words)
    expected = TruncatingTokenizer(tokenizer(), max_tokens).cut([text, "a"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "LONG_TEXT_CHARACTERS", 16)
        patch.setattr("equipoise.models.tokenizers._STRETCH", 16)
        segmented = TruncatingTokenizer(tokenizer(), max_tokens)
        assert segmented.cut([text, "a"]) == expected
        assert segmented.cut([segmented.head(text)]).ids == expected.ids[:1]


def test_unlimited_windows_read_the_whole_text():
    text = "a b " * 20_000
    truncated = TruncatingTokenizer(tokenizer(), None, special=False).cut([text])
    assert truncated.counts == [40_000]
    assert len(truncated.ids[0]) == 40_000


def test_damaged_tokenizers_raise_input_error(tmp_path):
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(InputError):
        TruncatingTokenizer.from_file(tmp_path / "tokenizer.json", 5)
