"""Opening text files, and everything that can stand in the way."""

import gzip
import io
import os
import sys

import pytest

from equipoise.errors import EquipoiseError, FormatError, InputError
from equipoise.io.text import TextFile, open_text, read_bytes, read_text


@pytest.fixture
def write(tmp_path):
    def written(content: bytes, name: str = "a.txt"):
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return written


def test_a_missing_file_is_named_with_its_nearest_neighbour(write):
    path = write(b"x", "bm25.trec")
    with pytest.raises(InputError, match=r"bm52\.trec") as caught:
        read_text(path.with_name("bm52.trec"))
    assert caught.value.hint == "did you mean bm25.trec?"


def test_a_missing_folder_is_named_as_such(tmp_path):
    (tmp_path / "runs").mkdir()
    with pytest.raises(InputError) as caught:
        read_text(tmp_path / "rums" / "a.trec")
    assert caught.value.hint == "did you mean runs?"


def test_a_folder_where_a_file_should_be_says_what_it_holds(write, tmp_path):
    write(b"x", "bm25.trec")
    with pytest.raises(InputError) as caught:
        read_text(tmp_path)
    assert caught.value.hint == "it holds bm25.trec"


def test_a_path_below_a_file_is_explained(write):
    with pytest.raises(InputError):
        read_text(write(b"x") / "below.txt")


EMPTY_GZIP = gzip.compress(b"", mtime=0)


@pytest.mark.parametrize("content", [b"", b"\n \r\n\t", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n", EMPTY_GZIP])
def test_a_file_without_content_is_empty(write, content):
    with pytest.raises(InputError, match=r"a\.txt is empty"):
        read_text(write(content))


def test_bytes_that_are_not_utf8_are_located_by_line_and_offset(write):
    with pytest.raises(FormatError, match=r"UTF-8: line 2.*0xe9.*7"):
        read_text(write(b"abc\r\nca\xe9\n"))


def test_utf16_is_recognised_by_its_mark(write):
    with pytest.raises(InputError, match="is UTF-16") as caught:
        read_text(write("q1 0 d1 1\n".encode("utf-16")))
    assert "iconv" in caught.value.hint


def test_a_nul_byte_marks_a_binary_file(write):
    with pytest.raises(FormatError, match=r"line 2.*NUL.*3"):
        read_text(write(b"ab\n\0"))


def test_permission_denied_is_explained(write, monkeypatch):
    path = write(b"x")

    def refusing(*_):
        raise PermissionError(13, "Permission denied")

    # The superuser may read everything, so the refusal is staged.
    monkeypatch.setattr("equipoise.io.text.open", refusing, raising=False)
    with pytest.raises(InputError):
        read_text(path)


def test_a_path_that_no_system_accepts_is_explained():
    for path in ("a\0b", "x" * 5000, "\ud800"):
        with pytest.raises(InputError):
            read_text(path)


def test_byte_order_mark_line_ends_and_gzip_make_no_difference(write):
    assert read_text(write(b"\xef\xbb\xbfa\nb")) == "a\nb"
    assert open_text(write(b"a\r\nb\rc\nd")).lines == [b"a", b"b", b"c", b"d"]
    assert read_text(write(gzip.compress("ä\n".encode()), "a.txt.gz")) == "ä\n"
    assert read_text(write(gzip.compress(b"packed"), "misnamed.txt")) == "packed"
    assert read_text(write(b"plain", "misnamed.gz")) == "plain"


@pytest.mark.parametrize("damage", [lambda data: data[:-6], lambda data: data[:12] + b"\xff" * 20, lambda d: d[:2]])
def test_a_damaged_gzip_file_is_explained(write, damage):
    with pytest.raises(InputError):
        read_bytes(write(damage(gzip.compress(b"some text " * 20))))


def test_a_dash_reads_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(b"q1"))))
    assert read_text("-") == "q1"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    with pytest.raises(InputError):
        read_text("-")
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InputError):
        read_text("-")


def test_a_pipe_is_read_like_a_file():
    source, sink = os.pipe()
    os.write(sink, b"streamed")
    os.close(sink)
    assert read_text(f"/dev/fd/{source}") == "streamed"
    os.close(source)


def test_excerpts_are_numbered_cut_and_free_of_control_characters(write):
    file = open_text(write(b"first\n\x1b[31mred\n" + b"x" * 300))
    assert file.excerpt(1) == "1 | first"
    assert "\x1b" not in file.excerpt(2)
    assert len(file.excerpt(3)) < 110
    error = file.error(FormatError, 1, "is wrong", hint="mend it")
    assert isinstance(error, EquipoiseError)
    assert error.render().splitlines() == [
        f"error[E204]: {file.name} line 1 is wrong",
        "  1 | first",
        "hint: mend it",
    ]


@pytest.mark.parametrize("blank", [b" ", b"\t", b"\n", b" \n", b"\x0c", b"\r\n"])
def test_the_first_line_is_found_after_any_number_of_blanks(blank: bytes) -> None:
    # A megabyte: a search that starts again at every blank would take hours.
    file = TextFile("a", blank * (1_000_000 // len(blank)) + b" first line \r\nsecond")
    assert file.first_line == "first line"
