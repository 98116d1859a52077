"""Documents from files and folders of every known format."""

import gzip

import pytest

from equipoise.errors import DuplicateError, EquipoiseError, FormatError, InputError, ParameterError
from equipoise.io.documents import SUFFIXES, TextDocument, read_document, read_documents


@pytest.fixture
def write_file(tmp_path):
    def write(name: str, content: str | bytes = "some text"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.markdown", "a.rst", "A.TXT"])
def test_plain_text_is_read_unchanged(write_file, name):
    assert read_document(write_file(name, "# Bread\n\nRye & wheat.\n")) == "# Bread\n\nRye & wheat.\n"


def test_line_ends_become_line_feeds_and_a_byte_order_mark_is_dropped(write_file):
    assert read_document(write_file("a.txt", b"\xef\xbb\xbfone\r\ntwo\rthree\n")) == "one\ntwo\nthree\n"


def test_a_gzipped_text_is_read(write_file):
    assert read_document(write_file("a.txt.gz", gzip.compress(b"rye bread"))) == "rye bread"


def test_folders_are_read_in_the_order_of_their_paths(write_file, tmp_path):
    for name in (
        "b.md",
        "a/z.txt",
        "a/deep/er.txt",
        "c.html",
        "data.csv",
        ".hidden.txt",
        ".git/x.txt",
        "~$b.docx",
    ):
        write_file(name, f"<p>text of {name}</p>" if name == "c.html" else f"text of {name}")
    assert read_documents(tmp_path) == [
        TextDocument(name, f"text of {name}") for name in ("a/deep/er.txt", "a/z.txt", "b.md", "c.html")
    ]


def test_files_are_read_in_the_given_order(write_file):
    paths = [write_file("b.txt", "bee"), write_file("a.txt", "ay")]
    assert [(document.name, document.text) for document in read_documents(*paths)] == [
        ("b.txt", "bee"),
        ("a.txt", "ay"),
    ]


def test_documents_with_equal_names_are_named_by_their_paths(write_file):
    paths = [write_file("one/a.txt"), write_file("two/a.txt")]
    assert [document.name for document in read_documents(*paths)] == [path.as_posix() for path in paths]


def test_repeated_files_raise_duplicate_error(write_file, tmp_path):
    path = write_file("a.txt")
    with pytest.raises(DuplicateError):
        read_documents(path, tmp_path)


def test_folders_without_documents_raise_input_error_with_the_suffixes(write_file, tmp_path):
    write_file("table.csv")
    with pytest.raises(InputError) as error:
        read_documents(tmp_path)
    assert all(suffix in error.value.hint for suffix in SUFFIXES)


def test_no_paths_raise_parameter_error():
    with pytest.raises(ParameterError):
        read_documents()


def test_missing_files_raise_input_error_with_a_suggestion(write_file):
    with pytest.raises(InputError) as error:
        read_document(write_file("report.txt").with_name("reprot.txt"))
    assert error.value.hint == "did you mean report.txt?"


def test_missing_paths_without_a_known_suffix_raise_input_error(tmp_path):
    with pytest.raises(InputError):
        read_documents(tmp_path / "nowhere")


def test_folders_instead_of_documents_raise_input_error(tmp_path):
    with pytest.raises(InputError):
        read_document(tmp_path)


@pytest.mark.parametrize("name", ["a.csv", "a"])
def test_unknown_suffixes_raise_format_error_with_the_known_ones(write_file, name):
    with pytest.raises(FormatError) as error:
        read_document(write_file(name))
    assert ".docx" in error.value.hint


def test_doc_files_raise_format_error_with_the_conversion_command(write_file):
    with pytest.raises(FormatError) as error:
        read_document(write_file("a.doc"))
    assert "--convert-to docx" in error.value.hint


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("content", [b"", b" \n\t\r\n"])
def test_empty_files_raise_input_error(write_file, suffix, content):
    with pytest.raises(InputError):
        read_document(write_file(f"a{suffix}", content))


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    "content", [bytes(range(256)) * 8, b"\x89PNG\r\n\x1a\n\0\0", b"\xff\xfe\x00\x01\x02", b"\x1f\x8bnot gzip"]
)
def test_binary_data_with_any_suffix_raises_an_error(write_file, suffix, content):
    with pytest.raises(EquipoiseError, match=r"a\."):
        read_document(write_file(f"a{suffix}", content))


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"%PDF-1.7\n%\xe2\xe3", "a PDF"),
        (b"PK\x03\x04rest", "a zip archive"),
        (b"{\\rtf1 text}", "rich text"),
    ],
)
def test_files_of_another_format_raise_format_error_with_the_format(write_file, content, kind):
    with pytest.raises(FormatError, match=kind):
        read_document(write_file("a.txt", content))


@pytest.mark.parametrize("suffix", [".pdf", ".docx"])
def test_plain_text_with_a_binary_suffix_raises_format_error(write_file, suffix):
    with pytest.raises(FormatError):
        read_document(write_file(f"a{suffix}", "only text"))


def test_latin_1_text_raises_format_error_with_a_hint(write_file):
    with pytest.raises(FormatError) as error:
        read_document(write_file("a.txt", "café".encode("latin-1")))
    assert error.value.code == "E204"
    assert "iconv" in error.value.hint
