"""The screen: how wide it is, whether it has colours, and paragraphs for it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

from equipoise.report.inert import inert

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

UNFOLDED = 10_000
"""The width of a pipe: one sentence stays one line there."""

READABLE = 100
"""Paragraphs are not wider than this, however wide the screen is."""

ROOMY = UNFOLDED - 1
"""A width at which no table has to shorten anything, and paragraphs are folded."""


def console(stream: TextIO, width: int | None = None) -> Console:
    """A console for the stream: plain where nobody watches or ``NO_COLOR`` is set."""
    from rich.console import Console
    from rich.segment import Segment

    class InertConsole(Console):
        """A console that shows control characters in names and texts instead of obeying them."""

        def render(self, *args: Any, **options: Any) -> Iterator[Segment]:
            """The segments of a renderable; those that rich itself made to control the terminal stay."""
            for segment in super().render(*args, **options):
                yield segment if segment.control else Segment(inert(segment.text), segment.style)

    folded = stream.isatty() or os.environ.get("COLUMNS", "").isdigit()
    return InertConsole(
        file=stream,
        width=width or (None if folded else UNFOLDED),
        color_system=None if os.environ.get("NO_COLOR") else "auto",
        highlight=False,
        markup=False,
        emoji=False,
    )


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Text that is folded between words, further lines indented under the first.

    ``style`` is that of the text, ``mark`` that of the ``lead`` before it.
    """

    text: str
    indent: int = 0
    lead: str = ""
    style: str = ""
    mark: str = ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The lead, then the text as a block beside it."""
        from rich.cells import cell_len
        from rich.text import Text

        width = min(options.max_width, UNFOLDED if options.max_width >= UNFOLDED else READABLE)
        room = max(20, width - self.indent - cell_len(self.lead))
        first = Text(f"{' ' * self.indent}{self.lead}", style=self.mark)
        lines = Text(self.text, style=self.style).wrap(console, room)
        for number, line in enumerate(lines):
            line.rstrip()
            yield Text.assemble(first if number == 0 else " " * cell_len(first.plain), line)


@dataclass(frozen=True, slots=True)
class Verbatim:
    """A line that must stay one line, such as code to be copied; the terminal may fold it, we do not."""

    text: str
    indent: int = 2

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The line as it is."""
        from rich.text import Text

        yield Text(f"{' ' * self.indent}{self.text}", no_wrap=True, overflow="ignore")


def heading(text: str) -> Paragraph:
    """The title of a part of a report."""
    return Paragraph(text, style="bold")
