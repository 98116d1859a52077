"""The text of PDF pages: spaces at font changes, running heads, and sentences that continue on the next page."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

MIN_REPEATED = 3
"""A first or last line that this many pages share is a running head."""

MIN_LINES, FULL_LINE = 5, 0.75
"""On a page of at least that many lines, a last line with this share of the longest length ends no paragraph."""

_NUMBER = re.compile(r"\d+")
_SENTENCE_END = re.compile(r"[.!?:;][\"'”“»«)\]]*$")


def restore_spaces(plain: str, layout: str) -> str:
    r"""The lines of ``plain`` with the spaces that only ``layout`` has.

    Extraction in the order of the file, which keeps columns apart, loses spaces where the font changes. Extraction by
    position has them. A line is looked up in the layout without white space.

    >>> restore_spaces("Each option of theoption list\nfollows.", "Each  option of the option list     [1]\nfollows.")
    'Each option of the option list\nfollows.'
    """
    words = layout.split()
    characters, gaps = "".join(words), set(accumulate(map(len, words)))
    return "\n".join(_with_spaces(line, characters, gaps) for line in plain.split("\n"))


def _with_spaces(line: str, characters: str, gaps: set[int]) -> str:
    words = line.split()
    bare = "".join(words)
    start = characters.find(bare) if bare else -1
    if start < 0:
        return line
    own = set(accumulate(map(len, words)))
    added = [at for at in range(1, len(bare)) if start + at in gaps and at not in own]
    for at in added:
        borders = sorted({0, len(bare)} | own | {*added})
        here = borders.index(at)
        if _is_word(bare[borders[here - 1] : at]) and _is_word(bare[at : borders[here + 1]]):
            own.add(at)
    return " ".join(bare[first:last] for first, last in pairwise([0, *sorted(own)])) if added else line


def _is_word(text: str) -> bool:
    """Whether the text may be a separate word: not a sign, and not a kerned capital as in a logo."""
    return len(text) > 1 and any(map(str.isalnum, text)) and not text.startswith("_") and not text.endswith("_")


def without_running_heads(pages: Sequence[str]) -> list[str]:
    r"""The pages without the first and last lines that several pages share, except for the page number.

    A line without a page number stays on the first page that has it.

    >>> without_running_heads(["1 Mills\nRye.", "2 Mills\nOats.", "3 Mills\nWheat."])
    ['Rye.', 'Oats.', 'Wheat.']
    """
    lines = [page.split("\n") for page in pages]
    for position in (0, -1):
        keys = [list(_head_keys(page[position].strip() if page else "", index)) for index, page in enumerate(lines)]
        counts = Counter(key for page_keys in keys for key in page_keys)
        kept: set[str] = set()
        for page, (exact, *numbered) in zip(lines, keys, strict=True):
            if any(counts[key] >= MIN_REPEATED for key in numbered):
                del page[position]
            elif exact and counts[exact] >= MIN_REPEATED:
                if exact in kept:
                    del page[position]
                kept.add(exact)
    return ["\n".join(page).strip() for page in lines]


def _head_keys(line: str, index: int) -> Iterator[str]:
    """The line, and for each number in it the line with that number counted from the index of the page."""
    yield line
    for number in _NUMBER.finditer(line):
        if len(number.group()) < 6:
            yield f"{line[: number.start()]}\0{int(number.group()) - index}\0{line[number.end() :]}"


def join_pages(pages: Sequence[str]) -> str:
    r"""The pages, a blank line between two, or only a line end where a sentence continues on the next page.

    >>> join_pages(["Rye is\nsown by\nhand on\nall\nfields", "and cut in summer.", "Oats follow."])
    'Rye is\nsown by\nhand on\nall\nfields\nand cut in summer.\n\nOats follow.'
    """
    text = previous = ""
    for page in filter(None, pages):
        separator = "\n\n" if text else ""
        if text and not _SENTENCE_END.search(text) and _may_continue(previous, page):
            separator = "\n"
        text, previous = f"{text}{separator}{page}", page
    return text


def _may_continue(page: str, following: str) -> bool:
    """Whether the next page begins in lower case, or the last line of this page is about as long as the others."""
    lengths = [len(line) for line in page.split("\n")]
    return len(lengths) >= MIN_LINES and (following[0].islower() or lengths[-1] >= FULL_LINE * max(lengths))
