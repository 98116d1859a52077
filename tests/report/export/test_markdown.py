"""Tables for GitHub, read back by a parser of Markdown."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from equipoise.redaction import inert
from equipoise.report.export import export
from equipoise.report.export.paper_table import escape_markdown


class Cells(HTMLParser):
    """The cells of all tables as text, and what is bold."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.bold: list[str] = []
        self.tags: list[str] = []
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._open.append(tag)
        self.tags.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        self._open.remove(tag)

    def handle_data(self, data: str) -> None:
        if "td" in self._open or "th" in self._open:
            self.rows[-1][-1] += data
        if "strong" in self._open:
            self.bold.append(data)


def read(text: str) -> Cells:
    """What a reader of the page would see."""
    cells = Cells()
    cells.feed(MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(text))
    return cells


def test_names_come_back_from_the_table_as_they_were(stored, hostile) -> None:
    made = stored(hostile)
    cells = read(export(made.runs, made.comparison, "md"))
    names = [row[0] for row in cells.rows[1:-1]]
    assert names == [" ".join(name.split()) for name in made.comparison.order]
    assert {len(row) for row in cells.rows} == {4}
    assert set(cells.tags) == {"table", "thead", "tbody", "tr", "th", "td", "p", "strong", "sup", "em"}
    assert cells.tags.count("em") == 1  # the word chance


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0")))
def test_escaped_text_is_shown_as_it_is(text: str) -> None:
    shown = inert(" ".join(text.split()))
    cells = read(f"| head |\n| --- |\n| {escape_markdown(text)} |\n")
    assert cells.rows[1:] == [[shown.strip()]] or not shown
    paragraph = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(escape_markdown(text))
    assert not shown or (paragraph.startswith("<p>") and paragraph.count("<") == 2)


def test_the_best_is_bold_also_where_smaller_is_better(stored) -> None:
    made = stored(["low", "high"], primary="MR")
    cells = read(export(made.runs, made.comparison, "md"))
    assert cells.rows[0] == ["system", "MRR ↑", "MR ↓", "HR@1 ↑"]
    assert [row[0] for row in cells.rows[1:]] == ["low", "high", "chance"]
    best = min(run.result["MR"].value for run in made.runs)
    # The two print the same HR@1, so that both are the best to a reader.
    assert cells.bold == ["0.554", f"{best:.2f}", "0.25", "0.25"]


def test_verdict_and_caption_stand_below(stored) -> None:
    made = stored(["one", "two"])
    text = export(made.runs, made.comparison, "md")
    assert made.comparison.verdict().split()[0] in text
    assert "one pair on each metric, so no correction" in text
    assert "on 40 queries" in export(made.runs[:1], None, "md")


@pytest.mark.parametrize("name", ["1. list", "- list", "+ list", "# head", "> quote"])
def test_a_leader_whose_name_begins_a_list_leaves_the_verdict_a_sentence(stored, name: str) -> None:
    made = stored([name, "two", "three"])
    assert not {"ol", "ul", "h1", "blockquote"} & set(read(export(made.runs, made.comparison, "md")).tags)
