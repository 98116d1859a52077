"""Names that fit beside a plot and still differ."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from equipoise.report.table import ELLIPSIS, shortened

LONGEST_NAME = 36
_SEPARATOR = re.compile(r"[/_:\s-]")


def short(name: str, longest: int = LONGEST_NAME) -> str:
    """One name without its middle where it is too long; white space of any kind becomes a blank."""
    return shortened(" ".join(name.split()), longest)


def short_names(names: Sequence[str], longest: int = LONGEST_NAME) -> list[str]:
    """Names that differ after they were shortened: what all begin with goes first, then numbers help.

    >>> short_names(["team/model-small-en-v1", "team/model-large-en-v1"], 12)
    ['…small-en-v1', '…large-en-v1']
    >>> short_names(["same", "same"])
    ['same', 'same (2)']
    """
    whole = [" ".join(name.split()) for name in names]
    brief = [shortened(name, longest) for name in whole]
    if len(set(brief)) < len(set(whole)):
        common = _common_beginning(whole)
        brief = [shortened(f"{ELLIPSIS}{name[common:]}", longest) if common else name for name in whole]
        brief = [shortened(name, longest) for name in brief]
    return _numbered(brief)


def _common_beginning(names: Sequence[str]) -> int:
    """How many characters all names share at their beginning, up to a separator."""
    first, last = min(names), max(names)
    same = next(
        (at for at, pair in enumerate(zip(first, last, strict=False)) if len(set(pair)) > 1), len(first)
    )
    ends = [match.end() for match in _SEPARATOR.finditer(first[:same])]
    return ends[-1] if ends else 0


def _numbered(names: Sequence[str]) -> list[str]:
    seen: Counter[str] = Counter()
    numbered = []
    for name in names:
        seen[name] += 1
        numbered.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return numbered
