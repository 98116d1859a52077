"""Where the sections of a Markdown document begin, in one pass over its lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Section:
    """A stretch of a document below one heading; ``title`` holds the headings above it too."""

    start: int
    title: str


def markdown_sections(text: str) -> list[Section]:
    """The sections of a Markdown document in order; each ends where the next begins, the first begins at 0.

    Headings are lines that begin with one to six ``#``, or that are underlined with ``=`` or ``-``; lines in
    fenced code are none. A heading with nothing below it but a deeper one belongs to the latter's section.

    >>> [(section.start, section.title) for section in markdown_sections("# A\\n## B\\ntext\\n# C\\ntext")]
    [(0, 'A > B'), (14, 'C')]
    """
    path: list[tuple[int, str]] = []
    sections = [Section(0, "")]
    body_since = 0
    for start, after, level, title in _headings(text):
        follows = bool(path) and level > path[-1][0] and not text[body_since:start].strip()
        path = [*(above for above in path if above[0] < level), (level, title)]
        section = Section(start, " > ".join(name for _, name in path if name))
        if follows or not text[sections[-1].start : start].strip():
            sections[-1] = Section(sections[-1].start, section.title)
        else:
            sections.append(section)
        body_since = after
    return sections


def _headings(text: str) -> Iterator[tuple[int, int, int, str]]:
    """Start, end, level and title of each heading."""
    fence = ""
    above: tuple[int, str] | None = None
    for start, end, line in _lines_after_front_matter(text):
        bare = line.strip()
        indent = len(line) - len(line.lstrip(" "))
        mark = _fence(bare) if indent < 4 else ""
        if fence:
            fence = "" if mark[:1] == fence[:1] and len(mark) >= len(fence) and bare == mark else fence
        elif mark:
            fence, above = mark, None
        elif indent < 4 and (level := _hash_level(bare)):
            yield start, end, level, _hash_title(bare[level:])
            above = None
        elif above is not None and indent < 4 and bare and not bare.strip(bare[0]) and bare[0] in "=-":
            yield above[0], end, "=-".index(bare[0]) + 1, above[1]
            above = None
        else:
            above = (start, bare) if bare and indent < 4 and bare[0] not in "-*+>|" else None


def _lines_after_front_matter(text: str) -> Iterator[tuple[int, int, str]]:
    """Start, end and content of each line; settings between two ``---`` at the top are skipped."""
    lines = _lines(text)
    if text.startswith("---\n"):
        close = text.find("\n---\n", 3)
        lines = (line for line in lines if line[0] > close + 1) if close >= 0 else lines
    return iter(lines)


def _lines(text: str) -> Iterator[tuple[int, int, str]]:
    start = 0
    while start < len(text):
        found = text.find("\n", start)
        end = len(text) if found < 0 else found + 1
        yield start, end, text[start:end]
        start = end


def _fence(bare: str) -> str:
    """The run of three or more backticks or tildes that a line begins with."""
    if not bare.startswith(("```", "~~~")):
        return ""
    run = bare[: len(bare) - len(bare.lstrip(bare[0]))]
    return "" if bare[0] == "`" and "`" in bare[len(run) :] else run


def _hash_level(bare: str) -> int:
    level = len(bare) - len(bare.lstrip("#"))
    return level if 1 <= level <= 6 and bare[level : level + 1] in ("", " ", "\t") else 0


def _hash_title(rest: str) -> str:
    title = rest.strip()
    opened = title.rstrip("#")
    return opened.rstrip() if not opened or opened[-1] in " \t" else title
