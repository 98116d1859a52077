"""Tables fit the terminal at any width."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from equipoise.report.terminal import Paragraph, ReportColumn, TerminalTable, fit_columns, shorten, total_width

NAMES = ["all-MiniLM-L6-v2", "bm25", "a-system-with-a-really-long-name", "日本語モデル"]
COLUMNS = [
    ReportColumn("system", NAMES, shortens="middle"),
    ReportColumn("estimate", ["0.412"] * 4, right=True),
    ReportColumn("interval", ["[0.371, 0.452]"] * 4, right=True, rank=1),
    ReportColumn("rank", ["1-3"] * 4, right=True, rank=2),
    ReportColumn("remarks", ["a remark that is longer than its column"] * 4, rank=3, shortens="end", extra=True),
]


def render_lines(columns: list[ReportColumn], width: int, encoding: str = "utf-8") -> list[str]:
    """The lines of the table on a terminal of this width."""
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding)
    Console(file=stream, width=width).print(TerminalTable(columns))
    stream.flush()
    return raw.getvalue().decode(encoding).splitlines()


@given(st.integers(12, 200))
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    assert all(cell_len(line) <= width for line in render_lines(COLUMNS, width))


@given(st.integers(12, 200))
def test_every_row_is_one_line(width: int) -> None:
    lines = render_lines(COLUMNS, width)
    note_rows = [index for index, line in enumerate(lines) if line.startswith("(not shown")]
    assert (note_rows[0] if note_rows else len(lines)) == 2 + len(NAMES)


@given(st.integers(30, 200))
def test_numbers_are_complete_or_absent(width: int) -> None:
    for line in render_lines(COLUMNS, width)[2:6]:
        assert "0.412" in line
        assert "[0.371, 0.452]" in line or "[" not in line


@given(st.integers(12, 200))
def test_the_note_of_a_column_is_shown_if_the_column_is(width: int) -> None:
    columns = [*COLUMNS[:2], replace(COLUMNS[2], note="of the score")]
    lines = render_lines(columns, width)
    assert ("of the score" in lines) == ("interval" in lines[0])


def test_less_important_columns_are_dropped_before_names_are_truncated() -> None:
    visible, left_out = fit_columns(COLUMNS, 30)
    assert [column.head for column in visible] == ["system", "estimate"]
    assert [column.head for column in left_out] == ["interval", "rank", "remarks"]
    assert visible[0].cells[1] == "bm25"


def test_extra_columns_are_shortened_and_dropped_before_names_are_truncated() -> None:
    full_width = total_width(COLUMNS)
    visible, left_out = fit_columns(COLUMNS, full_width - 5)
    assert visible[-1].cells[0].endswith("…")
    assert list(visible[0].cells) == NAMES
    visible, left_out = fit_columns(COLUMNS, total_width(COLUMNS[:-1]))
    assert "remarks" not in [column.head for column in visible]
    assert [column.head for column in left_out] == ["remarks"]
    assert list(visible[0].cells) == NAMES


def test_columns_are_aligned_without_trailing_spaces() -> None:
    lines = render_lines(COLUMNS[:2], 80)
    assert lines[0].endswith("estimate")
    assert all(line == line.rstrip() for line in lines)
    assert {cell_len(line) for line in lines[2:]} == {cell_len(lines[0])}


def test_without_unicode_the_rule_is_ascii() -> None:
    lines = render_lines([ReportColumn("n", ["1"])], 80, encoding="ascii")
    assert lines == ["n", "-", "1"]


@pytest.mark.parametrize("position", ["middle", "end"])
@given(st.text(st.characters(categories=["L", "N"]), max_size=30), st.integers(3, 30))
def test_a_shortened_text_fits_the_width(position: str, text: str, width: int) -> None:
    shortened = shorten(text, width, position)
    assert cell_len(shortened) <= max(width, 0)
    assert shortened == text or "…" in shortened


@given(st.integers(12, 200))
def test_every_column_is_shown_or_listed(width: int) -> None:
    visible, left_out = fit_columns(
        [*COLUMNS[:2], ReportColumn("n", ["12,345"] * 4), ReportColumn("hybrid", ["0.1"] * 4)], width
    )
    assert [column.head for column in visible if column in left_out] == []
    assert {column.head for column in (*visible, *left_out)} == {"system", "estimate", "n", "hybrid"}
    assert total_width(visible) <= width or len(visible) == 1


@given(st.integers(12, 60))
def test_shortened_names_are_unique(width: int) -> None:
    names = [f"tfidf: ({mode})" for mode in ("label_synonyms_max", "all_max", "label_only", "label_synonyms_min")]
    visible, _ = fit_columns(
        [ReportColumn("system", names, shortens="middle"), ReportColumn("MRR", ["0.5"] * 4)], width
    )
    assert len(set(visible[0].cells)) == 4


@given(st.integers(24, 80))
def test_folded_texts_are_complete(width: int) -> None:
    details = ["works if its server is running", "ok"]
    columns = [ReportColumn("what", ["vllm", "numpy"]), ReportColumn("detail", details, shortens="fold")]
    lines = render_lines(columns, width)
    assert all(cell_len(line) <= width for line in lines)
    assert " ".join(" ".join(lines[2:]).split()) == "vllm works if its server is running numpy ok"


@given(st.integers(20, 60))
def test_p_values_and_percentages_are_not_broken(width: int) -> None:
    stream = io.StringIO()
    Console(file=stream, width=width).print(
        Paragraph("by 0.08, 95 % interval [0.01, 0.16], adjusted p = 0.023 and p < 0.001")
    )
    text = stream.getvalue()
    assert all(part in text for part in ("95 %", "p = 0.023", "p < 0.001"))
