"""A document: its name and its text."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Document:
    """A text and what to call it: a file's name, or its path below the folder that was read.

    Lines end with a line feed. Headings that the format marks stand as Markdown headings.
    """

    name: str
    text: str = field(repr=False)
