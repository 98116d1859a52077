"""What every published table comes to: records, one a system, of labelled figures as they are printed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

Known = Callable[[str], bool]
"""Whether a label names a figure; what that is, the readers need not know."""


class Cell(NamedTuple):
    """A label and what is printed beside it; ``n`` is the number of units that stands at the figure itself.

    ``exact`` says that this program wrote the figure: every digit is there, and shares are fractions.
    """

    label: str
    text: str
    n: str = ""
    exact: bool = False


class Said(NamedTuple):
    """A fact that a sentence states, and the words of the sentence."""

    label: str
    text: str
    quote: str


@dataclass(frozen=True, slots=True)
class Record:
    """The figures of one system on one set of data, and whatever else stands in its row.

    ``said`` is what the text around the table says of all its figures, as facts with the words that say so.
    """

    name: str
    cells: tuple[Cell, ...]
    place: str = ""
    said: tuple[Said, ...] = ()


@dataclass(frozen=True, slots=True)
class System:
    """All numbers of a system as they are printed, each under the labels that lead to it."""

    name: str
    numbers: Mapping[tuple[str, ...], str]


@dataclass(frozen=True, slots=True)
class Published:
    """All records of a source; ``labels`` are those of numbers, read or not.

    ``systems`` are all numbers of the file by system, and ``formulas`` lines that may define a score.
    """

    name: str
    records: tuple[Record, ...]
    labels: tuple[str, ...] = ()
    systems: tuple[System, ...] = ()
    formulas: tuple[str, ...] = ()
