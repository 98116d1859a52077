"""PDF files: written by hand with a text layer, encrypted and damaged by pypdf."""

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
    kids = []
    for page, text in enumerate(pages):
        own, stream = 4 + 2 * page, " T* ".join(f"({line}) Tj" for line in text.split("\n"))
        content = f"BT /F1 12 Tf 14 TL 72 720 Td {stream} ET" if text else ""
        kids.append(f"{own} 0 R")
        objects[own] = (
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] "
            f"/Resources << /Font << /F1 3 0 R >> >> /Contents {own + 1} 0 R >>"
        )
        objects[own + 1] = f"<< /Length {len(content)} >>\nstream\n{content}\nendstream"
    objects[2] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>"
    body, offsets = "%PDF-1.4\n", {}
    for number in sorted(objects):
        offsets[number] = len(body)
        body += f"{number} 0 obj\n{objects[number]}\nendobj\n"
    table = "".join(f"{offsets[number]:010d} 00000 n \n" for number in sorted(objects))
    return (
        f"{body}xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}"
        f"trailer << /Root 1 0 R /Size {len(objects) + 1} >>\nstartxref\n{len(body)}\n%%EOF\n"
    ).encode()


def encrypted(content: bytes, cipher: str, **passwords: str) -> bytes:
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(content))
    writer.encrypt(algorithm=cipher, **passwords)
    written = io.BytesIO()
    writer.write(written)
    return written.getvalue()


@pytest.fixture
def write(tmp_path):
    def written(content: bytes):
        path = tmp_path / "report.pdf"
        path.write_bytes(content)
        return path

    return written


def test_pages_are_joined_by_a_blank_line(write):
    assert read_document(write(pdf_of("Rye bread", "Wheat bread"))) == "Rye bread\n\nWheat bread"


def test_an_empty_page_among_others_leaves_no_gap(write):
    assert read_document(write(pdf_of("one", "", "three"))) == "one\n\nthree"


def test_hyphens_at_line_ends_are_left_alone(write):
    assert read_document(write(pdf_of("a sour-\ndough"))) == "a sour-\ndough"


def test_a_scan_without_text_gets_the_hint(write):
    with pytest.raises(InputError, match=r"report\.pdf.*2 pages") as caught:
        read_document(write(pdf_of("", "")))
    assert "ocrmypdf" in caught.value.hint


@pytest.mark.parametrize("cipher", CIPHERS)
def test_a_file_that_needs_a_password_gets_the_hint(write, cipher):
    with pytest.raises(InputError) as caught:
        read_document(write(encrypted(pdf_of("secret"), cipher, user_password="u", owner_password="o")))
    assert "qpdf --decrypt" in caught.value.hint


@pytest.mark.parametrize("cipher", CIPHERS)
def test_a_file_that_only_its_owner_protects_is_read(write, cipher):
    content = encrypted(pdf_of("open to readers"), cipher, user_password="", owner_password="o")
    assert pypdf.PdfReader(io.BytesIO(content)).is_encrypted
    assert b"open to readers" not in content
    assert read_document(write(content)) == "open to readers"


@pytest.mark.slow
@pytest.mark.parametrize(("cipher", "password"), [("AES-128", ""), ("AES-256", ""), ("AES-256", "u")])
def test_without_the_package_for_its_cipher_a_file_is_not_called_damaged(write, cipher, password):
    path = write(encrypted(pdf_of("secret"), cipher, user_password=password, owner_password="o"))
    reads = f"from equipoise.io.documents import read_document; read_document({str(path)!r})"
    lacking = "import sys; sys.modules.update({'cryptography': None, 'Crypto': None}); "
    call = [sys.executable, "-c", lacking + reads]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert "MissingExtraError" in done.stderr
    assert "report.pdf cannot be read without a further package: cryptography" in done.stderr


@pytest.mark.parametrize("damage", [lambda pdf: pdf[:60], lambda pdf: b"%PDF-1.4\n" + bytes(range(256))])
def test_a_damaged_file_is_explained_and_nothing_is_printed(write, damage, capfd):
    with pytest.raises(FormatError, match=r"report\.pdf.*PDF"):
        read_document(write(damage(pdf_of("text"))))
    assert capfd.readouterr() == ("", "")


def test_the_text_of_a_pdf_is_extracted_once_per_content(tmp_path: Path) -> None:
    file, cache = tmp_path / "page.pdf", tmp_path / "cache"
    file.write_bytes(pdf_of("wheat and rye"))
    extracted = read_document(file, cache=cache)
    assert extracted == read_document(file)
    (stored,) = cache.iterdir()
    stored.write_text("from the cache", encoding="utf-8")
    assert [document.text for document in read_documents(file, cache=cache)] == ["from the cache"]
    file.write_bytes(pdf_of("barley"))
    assert read_document(file, cache=cache) == "barley"


def test_a_damaged_or_unwritable_cache_does_not_matter(tmp_path: Path) -> None:
    file, cache = tmp_path / "page.pdf", tmp_path / "cache"
    file.write_bytes(pdf_of("wheat and rye"))
    read_document(file, cache=cache)
    (stored,) = cache.iterdir()
    stored.write_bytes(b"\xff\xfe\xff")
    assert read_document(file, cache=cache) == "wheat and rye"
    assert stored.read_text(encoding="utf-8") == "wheat and rye"
    assert read_document(file, cache=file / "not a folder") == "wheat and rye"


def test_page_numbers_and_running_heads_do_not_interrupt_a_sentence(write):
    """The words are hyphenated at line ends, and one of them at the end of a page."""
    pages = [
        "The baker of the old town begins his work with a sour-\ndough of rye and wheat before the sun rises and\n"
        "then he kneads it by hand for a long quarter of an\nhour until it is smooth and does not stick to the ta-\n"
        "ble any more, which is the moment for the first\nrest of the dough",
        "in a warm place.\nThen comes the oven.",
        "Bread is sold from six.",
    ]
    text = read_document(write(pdf_of(*(f"{page}\n{number}" for number, page in enumerate(pages, 41)))))
    assert "rest of the dough\nin a warm place." in text
    assert not any(str(number) in text for number in (41, 42, 43))
    assert text.endswith("oven.\n\nBread is sold from six.")


def test_lines_with_numbers_that_do_not_count_pages_are_kept(write):
    text = read_document(write(pdf_of("Invoice 7301\nrye", "Invoice 7999\noats", "Invoice 8120\nwheat", "Notes")))
    assert [line for line in text.splitlines() if "Invoice" in line] == ["Invoice 7301", "Invoice 7999", "Invoice 8120"]


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
