"""Lines with a status symbol: passed, acceptable, failed, unknown."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from equipoise.report.terminal import Paragraph

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult


class ThresholdStatus(StrEnum):
    """Good, acceptable, not good enough, or unknown."""

    GOOD = "✓"
    FAIR = "~"
    BAD = "✗"
    UNKNOWN = "?"


_ASCII = {ThresholdStatus.GOOD: "+", ThresholdStatus.BAD: "x"}


_STYLES = {
    ThresholdStatus.GOOD: "green",
    ThresholdStatus.FAIR: "yellow",
    ThresholdStatus.BAD: "bold red",
    ThresholdStatus.UNKNOWN: "yellow",
}


@dataclass(frozen=True, slots=True)
class StatusLine:
    """A sentence behind its mark; plain letters stand for the marks where the screen has no others."""

    mark: ThresholdStatus
    text: str
    indent: int = 2

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The mark, then the sentence as an indented block."""
        sign = _ASCII.get(self.mark, str(self.mark)) if options.ascii_only else str(self.mark)
        yield Paragraph(self.text, indent=self.indent, lead=f"{sign} ", mark=_STYLES[self.mark])
