"""Tables that fit: when the terminal is narrow, names are shortened and lesser columns give way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from equipoise.report.terminal import Paragraph

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

GAP = 2
ELLIPSIS = "…"
SHORTEST = {"middle": 10, "end": 16}
"""How short a column may become that loses the middle of names, or the end of texts."""


@dataclass(frozen=True, slots=True)
class Column:
    """A head and its cells. ``rank`` 0 always stays; of the others the largest goes first.

    A column that ``shortens`` may lose the "middle" of its names or the "end" of its texts; one that is
    an ``extra`` is shown only where there is room without shortening the others.
    """

    head: str
    cells: Sequence[str]
    right: bool = False
    rank: int = 0
    shortens: Literal["", "middle", "end"] = ""
    extra: bool = False

    @property
    def width(self) -> int:
        """How wide its widest entry is on a screen."""
        return max(map(cell_width, (self.head, *self.cells)))

    @property
    def slack(self) -> int:
        """By how much it may be shortened; different names stay different."""
        if not self.shortens:
            return 0
        least = max(SHORTEST[self.shortens], cell_width(self.head))
        if self.shortens == "middle":
            different = len(set(self.cells))
            fits = range(least, self.width)
            least = next((at for at in fits if len(set(self.narrowed(at).cells)) == different), self.width)
        return max(0, self.width - least)

    def narrowed(self, width: int) -> Column:
        """The same column with its cells cut to a width."""
        return replace(self, cells=[shortened(cell, width, self.shortens) for cell in self.cells])


@dataclass(frozen=True, slots=True)
class FittedTable:
    """Columns side by side under their heads; never folded.

    ``otherwise`` says how to see what a narrow terminal leaves out.
    """

    columns: Sequence[Column]
    otherwise: str = "widen the terminal or use --json"

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw what fits, and name what does not."""
        from rich.text import Text

        shown, left_out = fit(self.columns, options.max_width)
        widths = [column.width for column in shown]
        rule = "-" if options.ascii_only else "─"
        lines = [
            Text(_line([column.head for column in shown], shown, widths), style="bold"),
            Text(rule * total_width(shown)),
            *(
                Text(_line(cells, shown, widths))
                for cells in zip(*(each.cells for each in shown), strict=True)
            ),
        ]
        for line in lines:
            line.no_wrap, line.overflow = True, "ellipsis"
            yield line
        if left_out:
            heads = ", ".join(column.head for column in left_out)
            yield Paragraph(f"(too narrow for: {heads}; {self.otherwise})", style="dim")


def _line(cells: Sequence[str], columns: Sequence[Column], widths: Sequence[int]) -> str:
    """The cells of a row, each as wide as its column; nothing trails."""
    from rich.cells import cell_len

    padded = []
    for cell, column, width in zip(cells, columns, widths, strict=True):
        blanks = " " * (width - cell_len(cell))
        padded.append(blanks + cell if column.right else cell + blanks)
    return (" " * GAP).join(padded).rstrip()


def fit(columns: Sequence[Column], width: int) -> tuple[list[Column], list[Column]]:
    """The columns that fit into the width, names shortened if need be, and those to be missed.

    >>> wide = Column("system", ["a-very-long-name-indeed"], shortens="middle")
    >>> shown, left_out = fit([wide, Column("n", ["12"]), Column("rank", ["1"], rank=1)], 16)
    >>> [column.head for column in shown], shown[0].cells, [column.head for column in left_out]
    (['system', 'n'], ['a-very…ndeed'], ['rank'])
    """
    shown, dropped = list(columns), []
    while True:
        excess = total_width(shown) - width
        droppable = [column for column in shown if column.rank]
        extras = [column for column in droppable if column.extra]
        # Extras may be shortened for their own sake, never the others for the sake of an extra.
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


def total_width(columns: Sequence[Column]) -> int:
    """The width of the table that these columns make."""
    return sum(column.width for column in columns) + GAP * (len(columns) - 1)


def _narrowed(columns: list[Column], excess: int) -> list[Column]:
    """Take the excess away from the columns that can be shortened, extras first, then the widest."""
    slack = [column.slack for column in columns]
    widths = [column.width for column in columns]
    while excess > 0 and any(slack):
        at = max(
            (at for at, left in enumerate(slack) if left), key=lambda at: (columns[at].extra, widths[at])
        )
        slack[at] -= 1
        widths[at] -= 1
        excess -= 1
    return [
        column if column.width == width else column.narrowed(width)
        for column, width in zip(columns, widths, strict=True)
    ]


def cell_width(text: str) -> int:
    """How many columns of a screen a text takes."""
    from rich.cells import cell_len

    return cell_len(text)


def shortened(text: str, width: int, what: str = "middle") -> str:
    """A name without its middle, since beginnings and ends tell names apart; or a text without its end.

    >>> shortened("all-MiniLM-L6-v2", 11), shortened("mean reciprocal rank", 11, "end")
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
