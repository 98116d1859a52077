"""Pages of facts: a title, a definition, and a list of what is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from equipoise.report.terminal import Paragraph, Verbatim, heading


@dataclass(frozen=True)
class Page:
    """What ``eq explain`` shows, for people and as data."""

    title: str
    text: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    blocks: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def parts(self) -> list[Any]:
        """The page as paragraphs."""
        parts: list[Any] = [heading(self.title)]
        for paragraph in filter(None, self.text.split("\n\n")):
            parts += [Paragraph(""), Paragraph(" ".join(paragraph.split()))]
        known = {name: fact for name, fact in self.facts.items() if fact}
        if known:
            width = max(map(len, known)) + 2
            parts.append(Paragraph(""))
            parts += [Paragraph(fact, lead=f"{name:<{width}}", mark="bold") for name, fact in known.items()]
        for title, lines in self.blocks.items():
            if lines:
                parts += [Paragraph(""), heading(title), *map(Verbatim, lines)]
        return parts

    def to_dict(self) -> dict[str, Any]:
        """The page as data."""
        return {
            "title": self.title,
            "text": self.text,
            "facts": dict(self.facts),
            **{name.lower(): list(lines) for name, lines in self.blocks.items()},
        }
