"""Opening text files, and errors of unreadable files."""

import gzip
import io
import os
import sys

import pytest

from equipoise.errors import EquipoiseError, FormatError, InputError
from equipoise.io.text import TextFile, open_text, read_bytes, read_text


@pytest.fixture
def write_file(tmp_path):
    def write(content: bytes, name: str = "a.txt"):
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return write


def test_missing_files_raise_input_error_with_a_suggestion(write_file):
    path = write_file(b"x", "bm25.trec")
    with pytest.raises(InputError, match=r"bm52\.trec") as error:
        read_text(path.with_name("bm52.trec"))
    assert error.value.hint == "did you mean bm25.trec?"


def test_missing_folders_raise_input_error_with_a_suggestion(tmp_path):
    (tmp_path / "runs").mkdir()
    with pytest.raises(InputError) as error:
        read_text(tmp_path / "rums" / "a.trec")
    assert error.value.hint == "did you mean runs?"


def test_folders_instead_of_files_raise_input_error_with_their_content(write_file, tmp_path):
    write_file(b"x", "bm25.trec")
    with pytest.raises(InputError) as error:
        read_text(tmp_path)
    assert error.value.hint == "it holds bm25.trec"


def test_paths_below_a_file_raise_input_error(write_file):
    with pytest.raises(InputError):
        read_text(write_file(b"x") / "below.txt")


EMPTY_GZIP = gzip.compress(b"", mtime=0)


@pytest.mark.parametrize("content", [b"", b"\n \r\n\t", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n", EMPTY_GZIP])
def test_empty_files_raise_input_error(write_file, content):
    with pytest.raises(InputError, match=r"a\.txt"):
        read_text(write_file(content))


def test_invalid_utf8_raises_format_error_with_line_and_offset(write_file):
    with pytest.raises(FormatError, match=r"UTF-8: line 2.*0xe9.*7"):
        read_text(write_file(b"abc\r\nca\xe9\n"))


def test_utf16_raises_input_error_with_a_hint(write_file):
    with pytest.raises(InputError) as error:
        read_text(write_file("q1 0 d1 1\n".encode("utf-16")))
    assert error.value.code == "E200"
    assert "iconv" in error.value.hint


def test_nul_bytes_raise_format_error(write_file):
    with pytest.raises(FormatError, match=r"line 2.*NUL.*3"):
        read_text(write_file(b"ab\n\0"))


def test_permission_denied_raises_input_error(write_file, monkeypatch):
    path = write_file(b"x")

    def raise_permission_error(*_):
        raise PermissionError(13, "Permission denied")

    # The superuser may read everything, so the error is simulated.
    monkeypatch.setattr("equipoise.io.text.open", raise_permission_error, raising=False)
    with pytest.raises(InputError):
        read_text(path)


def test_invalid_paths_raise_input_error():
    for path in ("a\0b", "x" * 5000, "\ud800"):
        with pytest.raises(InputError):
            read_text(path)


def test_byte_order_mark_line_ends_and_gzip_are_handled(write_file):
    assert read_text(write_file(b"\xef\xbb\xbfa\nb")) == "a\nb"
    assert open_text(write_file(b"a\r\nb\rc\nd")).lines == [b"a", b"b", b"c", b"d"]
    assert read_text(write_file(gzip.compress("ä\n".encode()), "a.txt.gz")) == "ä\n"
    assert read_text(write_file(gzip.compress(b"packed"), "misnamed.txt")) == "packed"
    assert read_text(write_file(b"plain", "misnamed.gz")) == "plain"


@pytest.mark.parametrize("damage", [lambda data: data[:-6], lambda data: data[:12] + b"\xff" * 20, lambda d: d[:2]])
def test_damaged_gzip_files_raise_input_error(write_file, damage):
    with pytest.raises(InputError):
        read_bytes(write_file(damage(gzip.compress(b"some text " * 20))))


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


def test_excerpts_are_numbered_shortened_and_without_control_characters(write_file):
    file = open_text(write_file(b"first\n\x1b[31mred\n" + b"x" * 300))
    assert file.excerpt(1) == "1 | first"
    assert "\x1b" not in file.excerpt(2)
    assert len(file.excerpt(3)) < 110
    error = file.error(FormatError, 1, "is wrong", hint="correct the line")
    assert isinstance(error, EquipoiseError)
    assert error.render().splitlines() == [
        f"error[E204]: {file.name} line 1 is wrong",
        "  1 | first",
        "hint: correct the line",
    ]


@pytest.mark.parametrize("blank", [b" ", b"\t", b"\n", b" \n", b"\x0c", b"\r\n"])
def test_the_first_line_is_found_after_any_number_of_blanks(blank: bytes) -> None:
    # One megabyte: a search of quadratic time would take hours.
    file = TextFile("a", blank * (1_000_000 // len(blank)) + b" first line \r\nsecond")
    assert file.first_line == "first line"
