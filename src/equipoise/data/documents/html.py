"""HTML as text: paragraphs, Markdown headings, a line for each table row; no scripts, no styles."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from equipoise.data.documents.charset import read_page
from equipoise.data.text import PathLike

_SILENT = frozenset({"script", "style", "template", "title", "noscript", "svg", "iframe", "object", "select"})
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_SECTIONS = {"address", "article", "aside", "body", "footer", "header", "html", "main", "nav", "section"}
_LISTS = {"dd", "dl", "dt", "li", "menu", "ol", "ul"}
_TABLES = {"caption", "table", "tbody", "tfoot", "thead", "tr"}
_PARAGRAPHS = {"blockquote", "center", "div", "figcaption", "figure", "hr", "p", "pre"}
_FORMS = {"details", "dialog", "fieldset", "form", "legend", "summary"}
_BLOCKS = _SECTIONS | _LISTS | _TABLES | _PARAGRAPHS | _FORMS | set(_HEADINGS)
_CELLS = frozenset({"td", "th"})
_BREAK = "\n"
_SPACE = re.compile(r"[ \t\n\r\f\v]+")


def html_text(path: PathLike) -> str:
    """The text of an HTML file."""
    return text_of_html(read_page(path))


def text_of_html(page: str) -> str:
    r"""The text of a page.

    Block elements part paragraphs, ``h1`` to ``h6`` become ``#`` to ``######``, list items begin with ``-``,
    the cells of a table row are parted by ``|``, and preformatted text stands between code fences.

    >>> text_of_html("<h2>Salt &amp; water</h2><p>A <b>pinch</b>.<p>Boil<br>it.")
    '## Salt & water\n\nA pinch.\n\nBoil\nit.'
    """
    parser = _Reader()
    parser.feed(page)
    parser.close()
    parser.end_block()
    return "\n".join(parser.lines).strip("\n")


class _Reader(HTMLParser):
    """Collects lines; a blank line stands between blocks, but not between the rows of a table."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.lines: list[str] = []
        self._pieces: list[str] = []
        self._silent: list[str] = []
        self._mark = ""
        self._preformatted = False
        self._rows: list[int] = []
        """For each open table: how many cells its open row has had, -1 between rows."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._silent or tag in _SILENT:
            if tag in _SILENT:
                self._silent.append(tag)
        elif tag == "br":
            self._pieces.append(" " if self._in_cell else _BREAK)
        elif tag in _CELLS:
            self._begin_cell()
        elif tag in _BLOCKS:
            self._begin_block(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _SILENT:  # <script/> in XHTML has no content that could be skipped
            self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if self._silent:
            if tag in self._silent:
                del self._silent[self._silent.index(tag) :]
        elif tag in _BLOCKS:
            self._end(tag)

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self._pieces.append(data if self._preformatted else _SPACE.sub(" ", data))

    @property
    def _in_cell(self) -> bool:
        return bool(self._rows) and self._rows[-1] > 0

    def _begin_cell(self) -> None:
        if self._rows:
            if self._rows[-1] > 0:
                self._pieces.append(" | ")
            self._rows[-1] = max(self._rows[-1], 0) + 1

    def _begin_block(self, tag: str) -> None:
        if tag == "table":
            self.end_block()
            self._rows.append(-1)
        elif not self._stays_in_table(tag):
            self.end_block()
            self._preformatted = tag == "pre"
            if tag in _HEADINGS or tag == "li":  # the mark of an item waits for the paragraph inside it
                self._mark = f"{'#' * _HEADINGS[tag]} " if tag in _HEADINGS else "- "

    def _end(self, tag: str) -> None:
        if tag == "table" and self._rows:
            self._end_row()
            self._rows.pop()
            self._part()
        elif not self._stays_in_table(tag):
            self.end_block()
            self._mark = ""

    def _stays_in_table(self, tag: str) -> bool:
        """Whether the tag parts no more than the rows of a table, or the words of a cell."""
        if tag == "tr" and self._rows:
            self._end_row()
            return True
        if self._in_cell and tag not in _HEADINGS:
            self._pieces.append(" ")
            return True
        return False

    def _end_row(self) -> None:
        row = self._collapsed().replace(_BREAK, " ").strip()
        if row.replace("|", "").strip():
            self.lines.append(row)
        self._rows[-1] = -1

    def end_block(self) -> None:
        """Close the paragraph that is open, if it has any text."""
        if self._preformatted:
            self._end_preformatted()
            return
        text = self._collapsed()
        if self._in_cell:
            text = text.strip(" |")
        if text:
            self._part()
            single = text.replace(_BREAK, " ") if self._mark.startswith("#") else text
            self.lines += [*f"{self._mark}{single}".split(_BREAK), ""]
            self._mark = ""

    def _end_preformatted(self) -> None:
        code = "".join(self._pieces).strip("\n").rstrip()
        self._pieces.clear()
        self._preformatted = False
        if code:
            fence = "```"
            while fence in code:
                fence += "`"
            self._part()
            self.lines += [fence, *code.split("\n"), fence, ""]

    def _part(self) -> None:
        if self.lines and self.lines[-1]:
            self.lines.append("")

    def _collapsed(self) -> str:
        text = "".join(self._pieces)
        self._pieces.clear()
        return _BREAK.join(filter(None, (_SPACE.sub(" ", line).strip() for line in text.split(_BREAK))))
