"""Chunks: exact offsets, splitting in stages, and no text lost except separators."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.domains.phenotypes.extraction.candidates import ClinicalText, TextSpan, split_documents
from equipoise.domains.phenotypes.extraction.splitters import PhraseSplitter, SemanticSplitter, TextToSplit
from equipoise.errors import DuplicateError, InputError, ParameterError, UnknownNameError
from equipoise.models.embedder import embedder

PARTS = [
    "Fever",
    "cough and rash",
    "no",
    "but",
    "with",
    ", ",
    "; ",
    ". ",
    "\n\n",
    "\n- ",
    "(",
    ") ",
    "39,5",
    " ",
]
TEXTS = st.lists(st.sampled_from(PARTS), max_size=30).map("".join) | st.text(max_size=60)
LOSSLESS = ("paragraph", "sentence", "punctuation")
RULES = (*LOSSLESS, "conjunction", "cue")


def chunk_texts(document: str, *chunkers: object) -> list[str]:
    return [chunk.text for chunk in split_documents({"a": document}, chunkers)]  # type: ignore[arg-type]


@settings(max_examples=100, deadline=None)
@given(TEXTS, st.permutations(RULES), st.sampled_from(["en", "de"]))
def test_chunks_are_slices_of_the_document_in_order(text: str, order: Sequence[str], language: str) -> None:
    chunks = split_documents([ClinicalText("a", text, language)], order)
    assert all(chunk.text == text[chunk.start : chunk.end] for chunk in chunks)
    assert all(chunk.text == chunk.text.strip() for chunk in chunks)
    boundaries = [position for chunk in chunks for position in (chunk.start, chunk.end)]
    assert boundaries == sorted(boundaries)


@settings(max_examples=100, deadline=None)
@given(TEXTS, st.permutations(LOSSLESS))
def test_letters_are_kept_where_only_punctuation_separates(text: str, order: Sequence[str]) -> None:
    covered = {position for chunk in split_documents({"a": text}, order) for position in range(chunk.start, chunk.end)}
    assert all(position in covered for position, character in enumerate(text) if character.isalnum())


@settings(max_examples=100, deadline=None)
@given(TEXTS, TEXTS)
def test_a_document_is_split_independently_of_others(first: str, second: str) -> None:
    together = split_documents([ClinicalText("a", first, "en"), ClinicalText("b", second, "en")], RULES)
    single = split_documents([ClinicalText("b", second, "en")], RULES)
    assert [(chunk.start, chunk.text) for chunk in together if chunk.document == 1] == [
        (chunk.start, chunk.text) for chunk in single
    ]


@pytest.mark.parametrize(
    ("chunker", "document", "expected"),
    [
        ("paragraph", "One. Two.\n\nThree.\n- four\n- five", ["One. Two", "Three", "four", "five"]),
        ("sentence", "Seen by Dr. Roe. Has fever!", ["Seen by Dr. Roe", "Has fever"]),
        ("punctuation", "Fever (39,5 degrees), cough; rash", ["Fever", "39,5 degrees", "cough", "rash"]),
        ("conjunction", "fever and cough without rash", ["fever", "cough", "rash"]),
        ("cue", "The boy has no fever", ["The boy", "fever"]),
        ("cue", "Der Junge hat keine Hinweise auf Fieber", ["Der Junge", "Fieber"]),
        ("phrase", "loss of hair", ["loss", "loss of hair", "hair"]),
    ],
)
def test_each_chunker_splits_at_its_separators(chunker: str, document: str, expected: list[str]) -> None:
    assert chunk_texts(document, chunker) == expected


def test_words_are_not_split() -> None:
    assert chunk_texts("android handless", "conjunction", "cue") == ["android handless"]


def test_german_conjunctions_split_german_texts_only() -> None:
    document = "Fieber und Husten"
    assert [chunk.text for chunk in split_documents([ClinicalText("a", document, "de")], ["conjunction"])] == [
        "Fieber",
        "Husten",
    ]
    assert [chunk.text for chunk in split_documents([ClinicalText("a", document, "en")], ["conjunction"])] == [document]


def test_semantic_windows_split_where_the_words_change() -> None:
    text = "apple apple apple apple quartz quartz quartz quartz"
    splitter = SemanticSplitter(embedder("hash"), words=3, threshold=0.9)
    assert chunk_texts(text, splitter) == ["apple apple apple apple", "quartz quartz quartz quartz"]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from(["fever", "cough", "the", "rash"]), max_size=20).map(" ".join))
def test_semantic_chunks_keep_every_word_and_have_the_minimum_length(text: str) -> None:
    splitter = SemanticSplitter(embedder("hash"), words=2, threshold=0.8, min_words=3)
    chunks = chunk_texts(text, splitter)
    assert " ".join(chunks) == text
    assert len(chunks) <= 1 or min(len(chunk.split()) for chunk in chunks) >= 3


def test_semantic_windows_embed_all_texts_in_one_batch() -> None:
    class CountingEmbedder:
        batches = 0
        inner = embedder("hash")

        def embed(self, batch: list[str], **options: object) -> object:
            self.batches += 1
            return self.inner.embed(batch, **options)

    model = CountingEmbedder()
    SemanticSplitter(model).split([TextToSplit("one two three four five")] * 9)  # type: ignore[arg-type]
    assert model.batches == 1


def test_semantic_windows_without_a_model_are_an_error() -> None:
    with pytest.raises(ParameterError):
        split_documents({"a": "fever"}, ["semantic"])


def test_a_mistyped_chunker_gets_a_suggestion() -> None:
    with pytest.raises(UnknownNameError) as error_info:
        split_documents({"a": "fever"}, ["sentense"])
    assert error_info.value.hint == "did you mean sentence?"


def test_an_empty_document_has_no_chunks() -> None:
    assert split_documents({"a": " \n", "b": "fever"}) == (TextSpan(1, 0, 5, "fever"),)


@pytest.mark.parametrize("chunkers", [[], ()])
def test_an_empty_list_of_chunkers_is_an_error(chunkers: Sequence[str]) -> None:
    with pytest.raises(ParameterError):
        split_documents({"a": "fever"}, chunkers)


def test_invalid_documents_are_errors() -> None:
    with pytest.raises(DuplicateError):
        split_documents([ClinicalText("a", "x"), ClinicalText("a", "y")])
    with pytest.raises(InputError):
        split_documents([])
    with pytest.raises(UnknownNameError):
        ClinicalText("a", "fièvre", "fr")
    with pytest.raises(ParameterError):
        PhraseSplitter(0)


@pytest.mark.parametrize(
    ("text", "last_chunk"),
    [
        ("Family history: negative. Fever.", "Fever"),
        ("Familienanamnese: unauffällig. Fieber seit gestern.", "Fieber seit gestern"),
    ],
)
def test_a_result_after_a_heading_is_not_a_chunk(text: str, last_chunk: str) -> None:
    chunks = [chunk.text for chunk in split_documents({"a": text})]
    assert chunks[-1] == last_chunk
    assert not {"negative", "unauffällig"} & set(chunks)
