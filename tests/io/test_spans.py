"""Marked spans agree with their text, or are refused."""

import json

import pytest

from equipoise.domains.phenotypes.extraction.annotated_corpus import MarkedDocument, MarkedSpan, read_spans
from equipoise.errors import DuplicateError, FormatError

TEXT = "Fièvre élevée"


@pytest.fixture
def read(tmp_path):
    def reading(*rows):
        path = tmp_path / "spans.jsonl"
        path.write_text("\n".join(json.dumps(row) for row in rows))
        return read_spans(path)

    return reading


def row(**span):
    return {"id": "d1", "text": TEXT, "spans": [span]}


def test_a_span_marks_characters(read):
    (document,) = read(row(start=7, end=13, label="HP:1", text="élevée"))
    assert document == MarkedDocument("d1", TEXT, (MarkedSpan(7, 13, "HP:1"),))
    assert document.surface(document.spans[0]) == "élevée"
    assert read({"id": "a", "text": "", "spans": []})[0].spans == ()


@pytest.mark.parametrize(("start", "end"), [(-1, 3), (3, 3), (5, 3), (0, 14), (20, 30)])
def test_offsets_outside_the_text_are_refused(read, start, end):
    with pytest.raises(FormatError, match=rf"line 1.*{start}.*{end}.*13 characters"):
        read(row(start=start, end=end))


@pytest.mark.parametrize(("start", "end"), [(None, 3), ("0", 3), (0.0, 3), (False, True)])
def test_offsets_are_whole_numbers(read, start, end):
    with pytest.raises(FormatError, match="integer"):
        read(row(start=start, end=end))


def test_offsets_in_bytes_are_recognised(read):
    start = len("Fièvre ".encode())
    with pytest.raises(FormatError, match=r"'levée'.*'él'") as caught:
        read(row(start=start, end=start + 5, text="él") | {"text": TEXT})
    assert caught.value.hint == ""
    with pytest.raises(FormatError) as caught:
        read(row(start=start, end=start + 3, text="él"))
    assert "fit the UTF-8 bytes" in caught.value.hint


def test_documents_of_another_shape_are_refused(read):
    for wrong in ({"id": 1}, {"id": ""}, {"text": None}, {"spans": {}}, {"spans": [1]}):
        with pytest.raises(FormatError, match="line 1"):
            read(row(start=0, end=1) | wrong)
    with pytest.raises(FormatError):
        read({"id": "a", "text": "b"})
    with pytest.raises(DuplicateError, match=r"lines 1 and 2.*id d1"):
        read(row(start=0, end=1), row(start=0, end=1))
