"""The next command to type, on one line, ready to be copied."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from equipoise.types import Finding


def next_command(places: Sequence[str], truth: Sequence[str], primary: str) -> str:
    """After scoring: compare, when there is something to compare; else learn what the figure means."""
    if len(places) > 1:
        return suggestion(["eq", "compare", *places, *truth, "--primary", primary])
    return suggestion(["eq", "explain", primary])


def after_comparison(findings: Sequence[Finding], primary: str) -> str:
    """After comparing: the gravest finding is worth a look, else the metric."""
    return suggestion(["eq", "explain", findings[0].code if findings else primary])


def suggestion(words: Sequence[str]) -> str:
    """A command line to be copied."""
    return f"\nNext: {shlex.join(words)}"
