"""Documents from files and folders of every known format."""

import gzip

import pytest

from equipoise.errors import DuplicateError, EquipoiseError, FormatError, InputError, ParameterError
from equipoise.io.documents import SUFFIXES, TextDocument, read_document, read_documents


@pytest.fixture
def write(tmp_path):
    def written(name: str, content: str | bytes = "some text"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return written


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.markdown", "a.rst", "A.TXT"])
def test_plain_text_is_read_as_it_stands(write, name):
    assert read_document(write(name, "# Bread\n\nRye & wheat.\n")) == "# Bread\n\nRye & wheat.\n"


def test_line_ends_become_line_feeds_and_a_byte_order_mark_is_dropped(write):
    assert read_document(write("a.txt", b"\xef\xbb\xbfone\r\ntwo\rthree\n")) == "one\ntwo\nthree\n"


def test_a_gzipped_text_is_read(write):
    assert read_document(write("a.txt.gz", gzip.compress(b"rye bread"))) == "rye bread"


def test_a_folder_gives_its_documents_in_the_order_of_their_paths(write, tmp_path):
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
        write(name, f"<p>text of {name}</p>" if name == "c.html" else f"text of {name}")
    assert read_documents(tmp_path) == [
        TextDocument(name, f"text of {name}") for name in ("a/deep/er.txt", "a/z.txt", "b.md", "c.html")
    ]


def test_files_come_in_the_order_they_are_named(write):
    paths = [write("b.txt", "bee"), write("a.txt", "ay")]
    assert [(document.name, document.text) for document in read_documents(*paths)] == [
        ("b.txt", "bee"),
        ("a.txt", "ay"),
    ]


def test_documents_of_the_same_name_are_told_apart_by_their_paths(write):
    paths = [write("one/a.txt"), write("two/a.txt")]
    assert [document.name for document in read_documents(*paths)] == [path.as_posix() for path in paths]


def test_the_same_file_twice_is_refused(write, tmp_path):
    path = write("a.txt")
    with pytest.raises(DuplicateError):
        read_documents(path, tmp_path)


def test_a_folder_without_documents_says_which_it_would_have_read(write, tmp_path):
    write("table.csv")
    with pytest.raises(InputError) as caught:
        read_documents(tmp_path)
    assert all(suffix in caught.value.hint for suffix in SUFFIXES)


def test_no_path_at_all_is_refused():
    with pytest.raises(ParameterError):
        read_documents()


def test_a_missing_file_gets_the_nearest_name(write):
    with pytest.raises(InputError) as caught:
        read_document(write("report.txt").with_name("reprot.txt"))
    assert caught.value.hint == "did you mean report.txt?"


def test_a_missing_path_without_a_known_suffix_is_missing_too(tmp_path):
    with pytest.raises(InputError):
        read_documents(tmp_path / "nowhere")


def test_a_folder_where_one_document_should_be_is_named(tmp_path):
    with pytest.raises(InputError):
        read_document(tmp_path)


@pytest.mark.parametrize("name", ["a.csv", "a"])
def test_an_unknown_suffix_lists_the_known_ones(write, name):
    with pytest.raises(FormatError) as caught:
        read_document(write(name))
    assert ".docx" in caught.value.hint


def test_an_old_word_file_gets_the_command_that_converts_it(write):
    with pytest.raises(FormatError) as caught:
        read_document(write("a.doc"))
    assert "--convert-to docx" in caught.value.hint


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("content", [b"", b" \n\t\r\n"])
def test_an_empty_file_of_any_format_is_an_input_error(write, suffix, content):
    with pytest.raises(InputError):
        read_document(write(f"a{suffix}", content))


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    "junk", [bytes(range(256)) * 8, b"\x89PNG\r\n\x1a\n\0\0", b"\xff\xfe\x00\x01\x02", b"\x1f\x8bnot gzip"]
)
def test_binary_junk_of_any_suffix_is_explained(write, suffix, junk):
    with pytest.raises(EquipoiseError, match=r"a\."):
        read_document(write(f"a{suffix}", junk))


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"%PDF-1.7\n%\xe2\xe3", "a PDF"),
        (b"PK\x03\x04rest", "a zip archive"),
        (b"{\\rtf1 text}", "rich text"),
    ],
)
def test_a_file_with_the_suffix_of_another_format_is_told_by_its_first_bytes(write, content, kind):
    with pytest.raises(FormatError, match=kind):
        read_document(write("a.txt", content))


@pytest.mark.parametrize("suffix", [".pdf", ".docx"])
def test_plain_text_with_the_suffix_of_a_binary_format_is_told(write, suffix):
    with pytest.raises(FormatError):
        read_document(write(f"a{suffix}", "only text"))


def test_latin_1_text_is_refused_with_the_hint(write):
    with pytest.raises(FormatError, match="not UTF-8") as caught:
        read_document(write("a.txt", "café".encode("latin-1")))
    assert "iconv" in caught.value.hint
