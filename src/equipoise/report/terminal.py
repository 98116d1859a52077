"""Parts of a terminal report: paragraphs, status lines, findings, and tables that fit the width of the terminal."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import StringIO
from itertools import zip_longest
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Literal, TextIO, TypeAlias

from equipoise.checks.base import join_names, reasons
from equipoise.redaction import inert
from equipoise.types import Finding, Severity, with_label

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

    from equipoise.report.view import StatusLine

# The screen: how wide it is, whether it has colours, and paragraphs for it.

PIPE_WIDTH = 10_000
"""The width of a pipe: one sentence stays one line there."""

MAX_TEXT_WIDTH = 100
"""Paragraphs are not wider than this, however wide the screen is."""

WIDE = PIPE_WIDTH - 1
"""A width at which no table has to shorten anything, and paragraphs are folded."""


def console(stream: TextIO, width: int | None = None) -> Console:
    """A console for the stream: plain if it is not a terminal or ``NO_COLOR`` is set."""
    from rich.console import Console
    from rich.segment import Segment

    class InertConsole(Console):
        """A console that shows control characters in names and texts instead of obeying them."""

        def render(self, *args: Any, **options: Any) -> Iterator[Segment]:
            """The segments of a renderable; control segments of rich are kept."""
            for segment in super().render(*args, **options):
                yield segment if segment.control else Segment(inert(segment.text), segment.style)

    folded = stream.isatty() or os.environ.get("COLUMNS", "").isdigit()
    return InertConsole(
        file=stream,
        width=width or (None if folded else PIPE_WIDTH),
        color_system=None if os.environ.get("NO_COLOR") else "auto",
        highlight=False,
        markup=False,
        emoji=False,
    )


_UNBROKEN = re.compile(r"(?<=\d) (?=%)|(?<=\bp) (?=[=<] \d)|(?<=\bp [=<]) (?=\d)")
"""Blanks at which no line ends: those of ``95 %`` and ``p = 0.02``."""
_BLANK = "\ue000"
"""Replaces such a blank while a text is folded."""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Text that is folded between words, further lines indented under the first.

    ``style`` is that of the text, ``mark`` that of the ``lead`` before it. With ``overflow="end"`` it is one line that
    loses its end if the terminal is too narrow, with ``overflow="ignore"`` one line in full, such as code to be copied.
    """

    text: str
    indent: int = 0
    lead: str = ""
    style: str = ""
    mark: str = ""
    overflow: Literal["fold", "end", "ignore"] = "fold"

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The lead, then the text as an indented block."""
        from rich.cells import cell_len
        from rich.text import Text

        width = min(options.max_width, PIPE_WIDTH if options.max_width >= PIPE_WIDTH else MAX_TEXT_WIDTH)
        text_width = max(20, width - self.indent - cell_len(self.lead))
        first = Text(f"{' ' * self.indent}{self.lead}", style=self.mark)
        if self.overflow == "ignore":
            yield Text.assemble(first, self.text, no_wrap=True, overflow="ignore")
            return
        text = shorten(self.text, text_width, "end") if self.overflow == "end" else self.text
        for number, line in enumerate(Text(_UNBROKEN.sub(_BLANK, text), style=self.style).wrap(console, text_width)):
            line.plain = line.plain.replace(_BLANK, " ").rstrip()
            yield Text.assemble(first if number == 0 else " " * cell_len(first.plain), line)


def heading(text: str) -> Paragraph:
    """The title of a part of a report."""
    return Paragraph(text, style="bold")


GAP = 2
ELLIPSIS = "…"
SHORTEST = {"middle": 10, "end": 16, "fold": 16}
"""How narrow a column may become that loses the middle of names or the end of texts, or folds its texts."""


@dataclass(frozen=True, slots=True)
class ReportColumn:
    """A head and its cells. ``rank`` 0 always stays; of the others the largest is dropped first.

    A column that ``shortens`` may lose the "middle" of its names or the "end" of its texts, or "fold" them into several
    lines; one that is an ``extra`` is shown only if the others need not be shortened. The ``note`` explains the column,
    and is shown below the table if the column is. ``values`` are the columns of a CSV file in its place, by head:
    unrounded numbers, percent as fractions, NaN or None where unknown.
    """

    head: str
    cells: Sequence[str]
    right: bool = False
    rank: int = 0
    shortens: Literal["", "middle", "end", "fold"] = ""
    extra: bool = False
    note: str = ""
    values: Mapping[str, Sequence[float | str | None]] = field(default_factory=dict)

    @property
    def width(self) -> int:
        """How wide its widest entry is on a screen."""
        return max(display_width(line) for text in (self.head, *self.cells) for line in text.split("\n"))

    @property
    def slack(self) -> int:
        """The number of characters that can be removed; different names stay different."""
        if not self.shortens:
            return 0
        least = max(SHORTEST[self.shortens], display_width(self.head))
        if self.shortens == "middle":
            different = len(set(self.cells))
            fits = range(least, self.width)
            least = next((at for at in fits if len(set(self.narrowed(at).cells)) == different), self.width)
        return max(0, self.width - least)

    def narrowed(self, width: int) -> ReportColumn:
        """The same column with its cells cut or folded to a width."""
        if self.shortens == "fold":
            return replace(self, cells=["\n".join(wrap(cell, width)) for cell in self.cells])
        return replace(self, cells=[shorten(cell, width, self.shortens) for cell in self.cells])


@dataclass(frozen=True, slots=True)
class TerminalTable:
    """Columns side by side under their heads.

    ``otherwise`` says how to see the columns that a narrow terminal leaves out; if it is empty, they are not named. A
    terminal shows the first ``max_rows`` rows (0: all) and the number of others; files have all rows.
    """

    columns: Sequence[ReportColumn]
    otherwise: str = "widen the terminal or use --json"
    max_rows: int = 0

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw what fits, and name what does not."""
        from rich.text import Text

        columns, n_more = self.columns, max((len(column.cells) for column in self.columns), default=0) - self.max_rows
        if self.max_rows and n_more > 1:
            columns = [replace(column, cells=column.cells[: self.max_rows]) for column in columns]
        shown, left_out = fit_columns(columns, options.max_width)
        widths = [column.width for column in shown]
        rule = "-" if options.ascii_only else "─"
        lines = [
            Text(_line([column.head for column in shown], shown, widths), style="bold"),
            Text(rule * total_width(shown)),
            *(
                Text(_line(line, shown, widths))
                for cells in zip(*(column.cells for column in shown), strict=True)
                for line in zip_longest(*(cell.split("\n") for cell in cells), fillvalue="")
            ),
        ]
        for line in lines:
            line.no_wrap, line.overflow = True, "ellipsis"
            yield line
        if self.max_rows and n_more > 1:
            yield Paragraph(f"{n_more:,} more: add -v.")
        if left_out and self.otherwise:
            heads = ", ".join(column.head for column in left_out)
            yield Paragraph(f"(not shown: {heads}; {self.otherwise})", style="dim")
        yield from (Paragraph(column.note) for column in shown if column.note)


def _line(cells: Sequence[str], columns: Sequence[ReportColumn], widths: Sequence[int]) -> str:
    """The cells of a row, each as wide as its column; nothing trails."""
    from rich.cells import cell_len

    padded = []
    for cell, column, width in zip(cells, columns, widths, strict=True):
        blanks = " " * (width - cell_len(cell))
        padded.append(blanks + cell if column.right else cell + blanks)
    return (" " * GAP).join(padded).rstrip()


def fit_columns(columns: Sequence[ReportColumn], width: int) -> tuple[list[ReportColumn], list[ReportColumn]]:
    """The columns that fit into the width, names shortened if need be, and those to be missed.

    >>> wide = ReportColumn("system", ["a-very-long-name-indeed"], shortens="middle")
    >>> shown, left_out = fit_columns([wide, ReportColumn("n", ["12"]), ReportColumn("rank", ["1"], rank=1)], 16)
    >>> [column.head for column in shown], shown[0].cells, [column.head for column in left_out]
    (['system', 'n'], ['a-very…ndeed'], ['rank'])
    """
    shown, dropped = list(columns), []
    while True:
        excess = total_width(shown) - width
        droppable = [column for column in shown if column.rank]
        extras = [column for column in droppable if column.extra]
        # Extras may be shortened to fit; other columns are never shortened for an extra.
        slack = sum(column.slack for column in extras or shown)
        if excess <= slack or len(shown) == 1:
            break
        # What always stays gives way from the right when there is nothing else to drop: a column that is
        # named as missing serves better than half a figure.
        least = max(extras or droppable, key=lambda column: column.rank) if droppable else shown[-1]
        shown.remove(least)
        dropped.append(least)
    missed = [column for column in columns if column in dropped]
    return _narrowed(shown, total_width(shown) - width), missed


def total_width(columns: Sequence[ReportColumn]) -> int:
    """The width of the table that these columns make."""
    return sum(column.width for column in columns) + GAP * (len(columns) - 1)


def _narrowed(columns: list[ReportColumn], excess: int) -> list[ReportColumn]:
    """Take the excess away from the columns that can be shortened, extras first, then the widest."""
    slack = [column.slack for column in columns]
    widths = [column.width for column in columns]
    while excess > 0 and any(slack):
        at = max((at for at, left in enumerate(slack) if left), key=lambda at: (columns[at].extra, widths[at]))
        slack[at] -= 1
        widths[at] -= 1
        excess -= 1
    return [
        column if column.width == width else column.narrowed(width)
        for column, width in zip(columns, widths, strict=True)
    ]


def display_width(text: str) -> int:
    """The number of terminal columns of a text."""
    from rich.cells import cell_len

    return cell_len(text)


def shorten(text: str, width: int, what: str = "middle") -> str:
    """A name without its middle, since beginnings and ends tell names apart; or a text without its end.

    >>> shorten("all-MiniLM-L6-v2", 11), shorten("mean reciprocal rank", 11, "end")
    ('all-M…L6-v2', 'mean recip…')
    """
    from rich.cells import cell_len, set_cell_size

    if cell_len(text) <= width:
        return text
    tail = (width - 1) // 2 if what == "middle" else 0
    end = text[len(text) - tail :]
    while cell_len(end) > tail:
        end = end[1:]
    return f"{set_cell_size(text, width - 1 - tail).rstrip()}{ELLIPSIS}{end}"


# Reports as plain text.


def render_text(*parts: Part) -> str:
    """Tables and paragraphs as text, independent of the terminal: whole tables, folded paragraphs, no colours.

    >>> from equipoise.report.terminal import heading
    >>> render_text(heading("Results"))
    'Results\\n'
    """
    stream = StringIO()
    console(stream, WIDE).print(*parts, sep="\n", crop=False)
    return stream.getvalue()


def print_text(text: str) -> None:
    """Write a text to standard output."""
    sys.stdout.write(inert(text if text.endswith("\n") else f"{text}\n"))


Part: TypeAlias = "Paragraph | TerminalTable | StatusLine"
"""The parts of a terminal report."""


# Findings: severity, code, subject, message and hint.


MARKS = {Severity.ISSUE: "!", Severity.TIP: "+", Severity.NOTE: "-"}
STYLES = {Severity.ISSUE: "bold red", Severity.TIP: "yellow", Severity.NOTE: "dim"}
SEVERITY_ORDER = list(Severity)


def sort_by_severity(findings: Iterable[Finding]) -> list[Finding]:
    """Every finding once, issues before tips before notes."""
    return sorted(dict.fromkeys(findings), key=lambda finding: SEVERITY_ORDER.index(finding.severity))


def at_least_severity(findings: Iterable[Finding], severity: str) -> list[Finding]:
    """The findings of this severity or higher."""
    included = SEVERITY_ORDER[: SEVERITY_ORDER.index(Severity(severity)) + 1]
    return [finding for finding in findings if finding.severity in included]


def grouped_findings(findings: Iterable[Finding]) -> list[list[Finding]]:
    """Findings of one code and hint together, most severe first; those that differ only in their subject are merged."""
    groups: dict[tuple[str, str], dict[tuple[str, tuple[str, ...]], list[Finding]]] = {}
    for finding in sort_by_severity(findings):
        group = groups.setdefault((finding.code, finding.hint), {})
        group.setdefault((finding.message, finding.evidence), []).append(finding)
    return [
        [replace(same[0], subject=join_names([finding.subject for finding in same])) for same in group.values()]
        for group in groups.values()
    ]


SHORT_DETAIL = 24
"""Details up to this length, such as ids, are listed in one paragraph."""


def _detail_lines(finding: Finding) -> tuple[str, ...]:
    """The details of a finding, one per line, or all in one if they are short."""
    details = finding.details
    if all(len(line) <= SHORT_DETAIL for line in details):
        return (", ".join(details),) if details else ()
    more = len(details) - MAX_DETAILS
    return (*details[:MAX_DETAILS], f"and {more:,} more") if more > 1 else details


MAX_SIMILAR = 2
"""The findings of one code that are printed in full; of the others only the subjects."""
MAX_DETAILS = 5
"""The details of a finding that are printed."""


def findings_section(findings: Sequence[Finding], *, verbose: bool = False) -> list[Paragraph]:
    """The findings for the terminal; nothing if there are none. Reason and hint are printed once per group."""
    if not findings:
        return []
    parts = [Paragraph(""), heading("Findings")]
    for group in grouped_findings(findings):
        severity, hint = group[0].severity, group[0].hint
        mark = f"{MARKS[severity]} {severity:<5} {group[0].code}  "
        n_shown = len(group) if len(group) <= MAX_SIMILAR + 1 else MAX_SIMILAR
        for number, finding in enumerate(group[:n_shown]):
            lead = mark if number == 0 else " " * len(mark)
            text = with_label(finding.subject, finding.message) if finding.subject else finding.message
            parts.append(Paragraph(text, lead=lead, mark=STYLES[severity]))
            if verbose:
                parts += [Paragraph(line, indent=len(mark) + 2, style="dim") for line in _detail_lines(finding)]
        if others := [finding.subject for finding in group[n_shown:]]:
            parts.append(Paragraph(f"and {len(others):,} more: {join_names(others)}", indent=len(mark)))
        if verbose and (reason := reasons().get(group[0].code)):
            parts.append(Paragraph(reason, indent=len(mark)))
        if hint:
            parts.append(Paragraph(hint, indent=len(mark), lead="-> "))
    return parts
