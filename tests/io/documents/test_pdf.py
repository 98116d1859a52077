"""PDF files: generated with a text layer, encrypted by pypdf, and damaged."""

import io
import subprocess
import sys
from pathlib import Path

import pytest

from equipoise.errors import FormatError, InputError
from equipoise.io.documents import read_document, read_documents
from equipoise.io.pdf_layout import restore_spaces

pypdf = pytest.importorskip("pypdf")
pytest.importorskip("cryptography")

CIPHERS = ["RC4-128", "AES-128", "AES-256-R5", "AES-256"]


def pdf_of(*pages: str) -> bytes:
    """A minimal PDF with one line of Helvetica for each line of a page."""
    objects = {
        1: "<< /Type /Catalog /Pages 2 0 R >>",
        3: "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    }
    page_references = []
    for page, text in enumerate(pages):
        object_number, stream = 4 + 2 * page, " T* ".join(f"({line}) Tj" for line in text.split("\n"))
        content = f"BT /F1 12 Tf 14 TL 72 720 Td {stream} ET" if text else ""
        page_references.append(f"{object_number} 0 R")
        objects[object_number] = (
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] "
            f"/Resources << /Font << /F1 3 0 R >> >> /Contents {object_number + 1} 0 R >>"
        )
        objects[object_number + 1] = f"<< /Length {len(content)} >>\nstream\n{content}\nendstream"
    objects[2] = f"<< /Type /Pages /Kids [{' '.join(page_references)}] /Count {len(page_references)} >>"
    body, offsets = "%PDF-1.4\n", {}
    for number in sorted(objects):
        offsets[number] = len(body)
        body += f"{number} 0 obj\n{objects[number]}\nendobj\n"
    table = "".join(f"{offsets[number]:010d} 00000 n \n" for number in sorted(objects))
    return (
        f"{body}xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}"
        f"trailer << /Root 1 0 R /Size {len(objects) + 1} >>\nstartxref\n{len(body)}\n%%EOF\n"
    ).encode()


def encrypt_pdf(content: bytes, cipher: str, **passwords: str) -> bytes:
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(content))
    writer.encrypt(algorithm=cipher, **passwords)
    buffer = io.BytesIO()
    writer.write(buffer)
    return buffer.getvalue()


@pytest.fixture
def write_pdf(tmp_path):
    def write(content: bytes):
        path = tmp_path / "report.pdf"
        path.write_bytes(content)
        return path

    return write


def test_pages_are_joined_by_a_blank_line(write_pdf):
    assert read_document(write_pdf(pdf_of("Rye bread", "Wheat bread"))) == "Rye bread\n\nWheat bread"


def test_empty_pages_add_no_blank_lines(write_pdf):
    assert read_document(write_pdf(pdf_of("one", "", "three"))) == "one\n\nthree"


def test_hyphens_at_line_ends_are_kept(write_pdf):
    assert read_document(write_pdf(pdf_of("a sour-\ndough"))) == "a sour-\ndough"


def test_scans_without_text_raise_input_error_with_a_hint(write_pdf):
    with pytest.raises(InputError, match=r"report\.pdf.*2 pages") as error:
        read_document(write_pdf(pdf_of("", "")))
    assert "ocrmypdf" in error.value.hint


@pytest.mark.parametrize("cipher", CIPHERS)
def test_files_with_a_password_raise_input_error_with_a_hint(write_pdf, cipher):
    with pytest.raises(InputError) as error:
        read_document(write_pdf(encrypt_pdf(pdf_of("secret"), cipher, user_password="u", owner_password="o")))
    assert "qpdf --decrypt" in error.value.hint


@pytest.mark.parametrize("cipher", CIPHERS)
def test_files_with_only_an_owner_password_are_read(write_pdf, cipher):
    content = encrypt_pdf(pdf_of("open to readers"), cipher, user_password="", owner_password="o")
    assert pypdf.PdfReader(io.BytesIO(content)).is_encrypted
    assert b"open to readers" not in content
    assert read_document(write_pdf(content)) == "open to readers"


@pytest.mark.slow
@pytest.mark.parametrize(("cipher", "password"), [("AES-128", ""), ("AES-256", ""), ("AES-256", "u")])
def test_missing_cipher_packages_raise_missing_extra_error(write_pdf, cipher, password):
    path = write_pdf(encrypt_pdf(pdf_of("secret"), cipher, user_password=password, owner_password="o"))
    read_statement = f"from equipoise.io.documents import read_document; read_document({str(path)!r})"
    hide_packages = "import sys; sys.modules.update({'cryptography': None, 'Crypto': None}); "
    command = [sys.executable, "-c", hide_packages + read_statement]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "MissingExtraError" in process.stderr
    assert "report.pdf cannot be read without a further package: cryptography" in process.stderr


@pytest.mark.parametrize("damage", [lambda pdf: pdf[:60], lambda pdf: b"%PDF-1.4\n" + bytes(range(256))])
def test_damaged_files_raise_format_error_and_print_nothing(write_pdf, damage, capfd):
    with pytest.raises(FormatError, match=r"report\.pdf.*PDF"):
        read_document(write_pdf(damage(pdf_of("text"))))
    assert capfd.readouterr() == ("", "")


def test_extracted_text_is_cached_by_content(tmp_path: Path) -> None:
    file, cache = tmp_path / "page.pdf", tmp_path / "cache"
    file.write_bytes(pdf_of("wheat and rye"))
    extracted = read_document(file, cache=cache)
    assert extracted == read_document(file)
    (stored,) = cache.iterdir()
    stored.write_text("from the cache", encoding="utf-8")
    assert [document.text for document in read_documents(file, cache=cache)] == ["from the cache"]
    file.write_bytes(pdf_of("barley"))
    assert read_document(file, cache=cache) == "barley"


def test_damaged_and_unwritable_caches_are_ignored(tmp_path: Path) -> None:
    file, cache = tmp_path / "page.pdf", tmp_path / "cache"
    file.write_bytes(pdf_of("wheat and rye"))
    read_document(file, cache=cache)
    (stored,) = cache.iterdir()
    stored.write_bytes(b"\xff\xfe\xff")
    assert read_document(file, cache=cache) == "wheat and rye"
    assert stored.read_text(encoding="utf-8") == "wheat and rye"
    assert read_document(file, cache=file / "not a folder") == "wheat and rye"


def test_page_numbers_and_running_heads_do_not_interrupt_a_sentence(write_pdf):
    """The words are hyphenated at line ends, and one of them at the end of a page."""
    pages = [
        "The baker of the old town begins his work with a sour-\ndough of rye and wheat before the sun rises and\n"
        "then he kneads it by hand for a long quarter of an\nhour until it is smooth and does not stick to the ta-\n"
        "ble any more, which is the moment for the first\nrest of the dough",
        "in a warm place.\nThen comes the oven.",
        "Bread is sold from six.",
    ]
    text = read_document(write_pdf(pdf_of(*(f"{page}\n{number}" for number, page in enumerate(pages, 41)))))
    assert "rest of the dough\nin a warm place." in text
    assert not any(str(number) in text for number in (41, 42, 43))
    assert text.endswith("oven.\n\nBread is sold from six.")


def test_lines_with_numbers_that_do_not_count_pages_are_kept(write_pdf):
    text = read_document(write_pdf(pdf_of("Invoice 7301\nrye", "Invoice 7999\noats", "Invoice 8120\nwheat", "Notes")))
    assert [line for line in text.splitlines() if "Invoice" in line] == ["Invoice 7301", "Invoice 7999", "Invoice 8120"]


@pytest.mark.engines("reportlab")
def test_spaces_at_a_change_of_the_font_are_restored(tmp_path):
    canvas = pytest.importorskip("reportlab.pdfgen.canvas").Canvas(str(tmp_path / "fonts.pdf"))
    line = canvas.beginText(72, 700)
    for font, word in (("Helvetica", "The option"), ("Courier", "draft"), ("Helvetica", "marks long lines.")):
        line.setFont(font, 11)
        line.textOut(word)
        line.moveCursor(canvas.stringWidth(word, font, 11) + 3, 0)
    canvas.drawText(line)
    canvas.save()
    assert read_document(tmp_path / "fonts.pdf") == "The option draft marks long lines."


@pytest.mark.parametrize(
    ("plain", "layout", "expected"),
    [
        ("see theTEX manual", "see the T EX manual", "see theTEX manual"),
        ("set HOME_DIR now", "set HOME_ DIR now", "set HOME_DIR now"),
        ("left ofit", "left of it      right column", "left of it"),
        ("not in the layout", "", "not in the layout"),
    ],
)
def test_only_spaces_between_words_are_restored(plain, layout, expected):
    assert restore_spaces(plain, layout) == expected
