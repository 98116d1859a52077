"""Word files, written by python-docx."""

import io
import zipfile

import pytest

from equipoise.errors import FormatError, InputError
from equipoise.io.documents import read_document

docx = pytest.importorskip("docx")


@pytest.fixture
def save_document(tmp_path):
    def save(document) -> object:
        path = tmp_path / "report.docx"
        document.save(path)
        return path

    return save


def test_headings_and_paragraphs_are_in_order(save_document):
    document = docx.Document()
    document.add_heading("Bread", 0)
    document.add_heading("Rye", 1)
    document.add_paragraph("Dark and sour.")
    document.add_heading("Loaves", 2)
    document.add_paragraph("")
    document.add_paragraph("Round\nor long.")
    assert (
        read_document(save_document(document)) == "# Bread\n\n# Rye\n\nDark and sour.\n\n## Loaves\n\nRound\nor long."
    )


def test_tables_are_read_row_by_row_in_document_order(save_document):
    document = docx.Document()
    document.add_paragraph("before")
    table = document.add_table(rows=2, cols=3)
    for cell, text in zip((*table.rows[0].cells, *table.rows[1].cells), "abcdef", strict=True):
        cell.text = text
    table.cell(1, 0).merge(table.cell(1, 1))
    inner = table.cell(0, 2).add_table(rows=1, cols=1)
    inner.cell(0, 0).text = "nested"
    document.add_paragraph("after")
    assert read_document(save_document(document)) == "before\n\na | b | c nested\nd e | f\n\nafter"


def test_a_style_based_on_a_heading_is_a_heading(save_document):
    document = docx.Document()
    style = document.styles.add_style("Chapter", docx.enum.style.WD_STYLE_TYPE.PARAGRAPH)
    style.base_style = document.styles["Heading 3"]
    document.add_paragraph("One", style="Chapter")
    document.add_paragraph("text")
    assert read_document(save_document(document)) == "### One\n\ntext"


def test_insertions_content_controls_and_links_are_read_and_deletions_are_not(save_document):
    document = docx.Document()
    namespace = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    body = document.element.body
    for xml in (
        f"<w:p {namespace}><w:r><w:t>kept </w:t></w:r><w:ins><w:r><w:t>added </w:t></w:r></w:ins>"
        "<w:del><w:r><w:delText>gone</w:delText></w:r></w:del><w:hyperlink><w:r><w:t>link</w:t></w:r></w:hyperlink></w:p>",
        f"<w:sdt {namespace}><w:sdtContent><w:p><w:r><w:t>in a control</w:t></w:r></w:p></w:sdtContent></w:sdt>",
    ):
        body.insert_element_before(docx.oxml.parse_xml(xml), "w:sectPr")
    assert read_document(save_document(document)) == "kept added link\n\nin a control"


def test_a_document_without_text_is_an_input_error(save_document):
    with pytest.raises(InputError, match=r"report\.docx"):
        read_document(save_document(docx.Document()))


def test_other_archives_raise_format_error(tmp_path):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("a.txt", "text")
    path = tmp_path / "a.docx"
    path.write_bytes(content.getvalue())
    with pytest.raises(FormatError):
        read_document(path)


def test_truncated_files_raise_format_error(save_document):
    document = docx.Document()
    document.add_paragraph("text")
    path = save_document(document)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(FormatError):
        read_document(path)


def test_encrypted_files_raise_format_error(tmp_path):
    path = tmp_path / "a.docx"
    path.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512))
    with pytest.raises(FormatError):
        read_document(path)
