"""What a model reads of a text: frames of special tokens, cuts, and counts of what was cut."""

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
    """Letters as words of a BERT: [CLS] before, [SEP] after."""
    vocabulary = {token: number for number, token in enumerate(["[UNK]", "[CLS]", "[SEP]", "a", "b", "c", "ab"])}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    return made


@given(TEXTS, st.integers(3, 9))
def test_a_cut_is_the_librarys_own_truncation(texts, most):
    library = tokenizer()
    library.enable_truncation(most)
    cut = TruncatingTokenizer(tokenizer(), most).cut(texts)
    assert cut.ids == [each.ids for each in library.encode_batch(texts)]
    assert cut.counts == [len(each.ids) for each in tokenizer().encode_batch(texts)]


@given(TEXTS)
def test_more_threads_give_the_same_tokens(texts):
    assert TruncatingTokenizer(tokenizer(), 5, threads=2).cut(texts) == TruncatingTokenizer(tokenizer(), 5).cut(texts)


@given(st.lists(st.sampled_from(["a", "b", "ab", "c"]), min_size=30, max_size=200), st.integers(3, 300))
def test_a_long_text_read_in_stretches_is_the_text_read_whole(words, most):
    text = " ".join(words)
    whole = TruncatingTokenizer(tokenizer(), most).cut([text, "a"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "LONG_TEXT_CHARACTERS", 16)
        patch.setattr("equipoise.models.tokenizers._STRETCH", 16)
        parts = TruncatingTokenizer(tokenizer(), most)
        assert parts.cut([text, "a"]) == whole
        assert parts.cut([parts.head(text)]).ids == whole.ids[:1]


def test_a_window_without_end_reads_everything():
    text = "a b " * 20_000
    cut = TruncatingTokenizer(tokenizer(), None, special=False).cut([text])
    assert cut.counts == [40_000]
    assert len(cut.ids[0]) == 40_000


def test_a_damaged_tokenizer_is_named(tmp_path):
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(InputError):
        TruncatingTokenizer.from_file(tmp_path / "tokenizer.json", 5)
