"""The view of an experiment has the same content in the terminal, on the page and in every table format."""

from __future__ import annotations

import html
import io
import json
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.errors import FormatError
from equipoise.report.answer import Answer
from equipoise.report.build_view import build_view
from equipoise.report.charts.bars import rank_histogram_chart
from equipoise.report.export.tables import format_parts
from equipoise.report.html.render import render_html
from equipoise.report.terminal import WIDE, ReportColumn, console
from equipoise.report.view import ReportTable, Section, View
from equipoise.types import Finding, Severity
from stored_runs import ranks, synthetic_runs

WORDS = st.text(string.ascii_letters, min_size=3, max_size=12)


@st.composite
def columns(draw: st.DrawFn) -> tuple[ReportColumn, ...]:
    """One to three columns of the same length."""
    n_rows = draw(st.integers(1, 3))
    cells = st.lists(WORDS, min_size=n_rows, max_size=n_rows)
    column = st.builds(ReportColumn, head=WORDS, cells=cells, right=st.booleans(), rank=st.integers(0, 2), note=WORDS)
    return tuple(draw(st.lists(column, min_size=1, max_size=3)))


TABLES = st.builds(ReportTable, columns(), st.lists(WORDS, max_size=2).map(tuple))
SECTIONS = st.builds(
    Section,
    title=WORDS,
    tables=st.lists(TABLES, min_size=1, max_size=2).map(tuple),
    notes=st.lists(WORDS, max_size=2).map(tuple),
    always=st.booleans(),
)
FINDINGS = st.builds(Finding, st.just("EQ301"), st.sampled_from(Severity), WORDS, WORDS, WORDS)
ANSWERS = st.builds(
    Answer,
    headline=WORDS,
    columns=columns(),
    notes=st.lists(WORDS, max_size=2).map(tuple),
    findings=st.lists(FINDINGS, max_size=2).map(tuple),
)
VIEWS = st.builds(View, ANSWERS, st.lists(SECTIONS, max_size=3).map(tuple), title=WORDS, citation=WORDS)


def texts_of(sections: tuple[Section, ...]) -> set[str]:
    """Every title, header, cell and note."""
    tables = [table for section in sections for table in section.tables]
    cells = {text for table in tables for column in table.columns for text in (column.head, *column.cells)}
    notes = {note for owner in (*sections, *tables) for note in owner.notes}
    notes |= {column.note for table in tables for column in table.columns}
    return cells | notes | {section.title for section in sections}


def printed(view: View, **options: bool) -> str:
    """The view printed on a wide terminal."""
    stream = io.StringIO()
    console(stream, WIDE).print(*view.parts(**options), sep="\n", crop=False)
    return stream.getvalue()


@given(VIEWS)
def test_verbose_prints_every_text_and_the_default_permanent_sections(view: View) -> None:
    always = tuple(section for section in view.sections if section.always)
    verbose_text = printed(view, verbose=True)
    assert all(text in verbose_text for text in texts_of(view.sections) | {view.answer.headline, view.citation})
    assert all(finding.hint in verbose_text for finding in view.answer.findings)
    default_text = printed(view)
    assert all(text in default_text for text in texts_of(always) | {view.answer.headline})
    assert len(default_text.splitlines()) <= len(verbose_text.splitlines())


@given(VIEWS)
def test_views_round_trip_through_json(view: View) -> None:
    serialised = json.dumps(view.to_dict())
    assert json.dumps(View.from_dict(json.loads(serialised)).to_dict()) == serialised


@given(VIEWS)
def test_markdown_and_latex_have_every_text_and_csv_every_cell(view: View) -> None:
    parts = view.parts(verbose=True)
    for format_name in ("md", "latex"):
        assert all(text in format_parts(parts, format_name) for text in texts_of(view.sections))
    csv_text = format_parts(parts, "csv")
    for section in view.sections:
        for table in section.tables:
            assert all(cell in csv_text for column in table.columns for cell in column.cells)


def test_the_page_shows_tables_notes_and_charts_and_escapes_them(tmp_path: Path) -> None:
    table = ReportTable.of([ReportColumn("<b>head", ["<script>cell"], right=True, note="c < d")], "* a & b")
    chart = rank_histogram_chart(["1", "2-10"], {"one": [0.4, 0.6]})
    view = View(
        Answer("The decision.", (ReportColumn("system", ["one"]),), ("A note.",)),
        (Section("More & more", (table,), ("Below.",), (chart,)),),
        citation="Data of <someone>.",
    )
    view.write(tmp_path)
    stored = View.read(tmp_path)
    assert stored is not None
    runs = synthetic_runs(tmp_path / "runs", ["one"], {"MRR": 1 / ranks(1, 20)})
    page = render_html(build_view(runs, experiment=stored), charts=False)
    details = page.split('<section id="details"')[1].split("</section>")[0]
    assert '<p class="verdict">The decision.</p>' in page
    expected = ("A note.", "More & more", "<b>head", "<script>cell", "* a & b", "c < d", "Below.")
    assert all(html.escape(text) in details for text in (*expected, "Data of <someone>."))
    assert "<script>cell" not in page


def test_a_folder_without_a_view_has_none_and_a_damaged_one_is_an_error(tmp_path: Path) -> None:
    assert View.read(tmp_path) is None
    (tmp_path / "view.json").write_text('{"answer": {}}')
    with pytest.raises(FormatError) as error:
        View.read(tmp_path)
    assert error.value.code == "E204"
