"""Markdown tables, parsed with markdown-it."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from equipoise.redaction import inert
from equipoise.report.build_view import compare_runs
from equipoise.report.export import export
from equipoise.report.export.paper_table import as_markdown, escape_markdown
from stored_runs import ranks, synthetic_runs


class TableCells(HTMLParser):
    """The cells of all tables as text, and the bold texts."""

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


def parse_markdown(text: str) -> TableCells:
    """Render Markdown and collect the cells."""
    cells = TableCells()
    cells.feed(MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(text))
    return cells


def test_names_round_trip(make_runs, hostile) -> None:
    exported = make_runs(hostile)
    cells = parse_markdown(export(exported.runs, exported.comparison, "md"))
    names = [row[0] for row in cells.rows[1:-1]]
    assert names == [" ".join(name.split()) for name in exported.comparison.order]
    assert {len(row) for row in cells.rows} == {4}
    assert set(cells.tags) == {"table", "thead", "tbody", "tr", "th", "td", "p", "strong", "sup", "em"}
    assert cells.tags.count("em") == 1  # the word chance


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0")))
def test_escaped_text_is_shown_unchanged(text: str) -> None:
    visible_text = inert(" ".join(text.split()))
    cells = parse_markdown(f"| head |\n| --- |\n| {escape_markdown(text)} |\n")
    assert cells.rows[1:] == [[visible_text.strip()]] or not visible_text
    paragraph = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(escape_markdown(text))
    assert not visible_text or (paragraph.startswith("<p>") and paragraph.count("<") == 2)


def test_the_best_value_is_bold_in_both_directions(make_runs) -> None:
    exported = make_runs(["low", "high"], primary="MR")
    cells = parse_markdown(export(exported.runs, exported.comparison, "md"))
    assert cells.rows[0] == ["system", "MRR ↑", "MR ↓", "HR@1 ↑"]
    assert [row[0] for row in cells.rows[1:]] == ["low", "high", "chance"]
    best = min(run.result["MR"].value for run in exported.runs)
    # Both systems have the same printed HR@1, so both are bold.
    assert cells.bold == ["0.554", f"{best:.2f}", "0.25", "0.25"]


def test_verdict_and_caption_follow_the_table(make_runs) -> None:
    exported = make_runs(["one", "two"])
    text = export(exported.runs, exported.comparison, "md")
    assert exported.comparison.verdict().split()[0] in text
    assert "one pair on each metric, so no correction" in text
    assert "on 40 queries" in export(exported.runs[:1], None, "md")


@pytest.mark.parametrize("name", ["1. list", "- list", "+ list", "# head", "> quote"])
def test_a_system_name_does_not_turn_the_verdict_into_a_list(make_runs, name: str) -> None:
    exported = make_runs([name, "two", "three"])
    assert not {"ol", "ul", "h1", "blockquote"} & set(
        parse_markdown(export(exported.runs, exported.comparison, "md")).tags
    )


def test_equal_gaps_are_stated_once(tmp_path: Path) -> None:
    values = 1 / ranks(3, 30)
    values[:, :2] = np.nan
    other = np.where(np.isnan(values), 0.0, values)
    other[0, 0] = np.nan
    runs = synthetic_runs(tmp_path / "a", ["a", "b", "c"], {"MRR": values, "nDCG@10": values})
    assert "2 units without a value are excluded for all systems." in as_markdown(runs, compare_runs(runs))
    runs = synthetic_runs(tmp_path / "b", ["a", "b", "c"], {"MRR": values, "nDCG@10": other})
    text = as_markdown(runs, compare_runs(runs))
    assert "Undefined values are excluded: MRR of all systems (2 units) and nDCG@10 of all systems (1 unit)." in text
