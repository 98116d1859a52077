"""Chunks: exact offsets, cut stage by stage, and nothing lost but what separates."""

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


def texts(document: str, *chunkers: object) -> list[str]:
    return [chunk.text for chunk in split_documents({"a": document}, chunkers)]  # type: ignore[arg-type]


@settings(max_examples=100, deadline=None)
@given(TEXTS, st.permutations(RULES), st.sampled_from(["en", "de"]))
def test_chunks_are_slices_of_the_document_in_order(text: str, order: Sequence[str], language: str) -> None:
    chunks = split_documents([ClinicalText("a", text, language)], order)
    assert all(chunk.text == text[chunk.start : chunk.end] for chunk in chunks)
    assert all(chunk.text == chunk.text.strip() for chunk in chunks)
    borders = [place for chunk in chunks for place in (chunk.start, chunk.end)]
    assert borders == sorted(borders)


@settings(max_examples=100, deadline=None)
@given(TEXTS, st.permutations(LOSSLESS))
def test_no_letter_is_lost_where_only_marks_separate(text: str, order: Sequence[str]) -> None:
    held = {place for chunk in split_documents({"a": text}, order) for place in range(chunk.start, chunk.end)}
    assert all(place in held for place, letter in enumerate(text) if letter.isalnum())


@settings(max_examples=100, deadline=None)
@given(TEXTS, TEXTS)
def test_a_document_is_cut_as_if_it_were_alone(first: str, second: str) -> None:
    both = split_documents([ClinicalText("a", first, "en"), ClinicalText("b", second, "en")], RULES)
    alone = split_documents([ClinicalText("b", second, "en")], RULES)
    assert [(chunk.start, chunk.text) for chunk in both if chunk.document == 1] == [
        (chunk.start, chunk.text) for chunk in alone
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
def test_each_chunker_cuts_where_it_says(chunker: str, document: str, expected: list[str]) -> None:
    assert texts(document, chunker) == expected


def test_words_are_not_cut_in_the_middle() -> None:
    assert texts("android handless", "conjunction", "cue") == ["android handless"]


def test_german_conjunctions_cut_german_texts_only() -> None:
    document = "Fieber und Husten"
    assert [chunk.text for chunk in split_documents([ClinicalText("a", document, "de")], ["conjunction"])] == [
        "Fieber",
        "Husten",
    ]
    assert [chunk.text for chunk in split_documents([ClinicalText("a", document, "en")], ["conjunction"])] == [document]


def test_semantic_windows_cut_where_the_words_change() -> None:
    text = "apple apple apple apple quartz quartz quartz quartz"
    cutter = SemanticSplitter(embedder("hash"), words=3, threshold=0.9)
    assert texts(text, cutter) == ["apple apple apple apple", "quartz quartz quartz quartz"]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from(["fever", "cough", "the", "rash"]), max_size=20).map(" ".join))
def test_semantic_pieces_keep_every_word_and_are_not_too_short(text: str) -> None:
    cutter = SemanticSplitter(embedder("hash"), words=2, threshold=0.8, min_words=3)
    pieces = texts(text, cutter)
    assert " ".join(pieces) == text
    assert len(pieces) <= 1 or min(len(piece.split()) for piece in pieces) >= 3


def test_semantic_windows_embed_all_texts_in_one_batch() -> None:
    class Counting:
        batches = 0
        inner = embedder("hash")

        def embed(self, batch: list[str], **options: object) -> object:
            self.batches += 1
            return self.inner.embed(batch, **options)

    counting = Counting()
    SemanticSplitter(counting).split([TextToSplit("one two three four five")] * 9)  # type: ignore[arg-type]
    assert counting.batches == 1


def test_semantic_windows_without_a_model_are_refused() -> None:
    with pytest.raises(ParameterError):
        split_documents({"a": "fever"}, ["semantic"])


def test_a_mistyped_chunker_gets_a_suggestion() -> None:
    with pytest.raises(UnknownNameError) as caught:
        split_documents({"a": "fever"}, ["sentense"])
    assert caught.value.hint == "did you mean sentence?"


def test_an_empty_document_has_no_chunks() -> None:
    assert split_documents({"a": " \n", "b": "fever"}) == (TextSpan(1, 0, 5, "fever"),)


@pytest.mark.parametrize("chunkers", [[], ()])
def test_no_chunker_is_refused(chunkers: Sequence[str]) -> None:
    with pytest.raises(ParameterError):
        split_documents({"a": "fever"}, chunkers)


def test_documents_are_checked() -> None:
    with pytest.raises(DuplicateError):
        split_documents([ClinicalText("a", "x"), ClinicalText("a", "y")])
    with pytest.raises(InputError):
        split_documents([])
    with pytest.raises(UnknownNameError):
        ClinicalText("a", "fièvre", "fr")
    with pytest.raises(ParameterError):
        PhraseSplitter(0)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Family history: negative. Fever.", "Fever"),
        ("Familienanamnese: unauffällig. Fieber seit gestern.", "Fieber seit gestern"),
    ],
)
def test_a_bare_result_behind_a_heading_is_no_chunk(text: str, left: str) -> None:
    pieces = [chunk.text for chunk in split_documents({"a": text})]
    assert pieces[-1] == left
    assert not {"negative", "unauffällig"} & set(pieces)
