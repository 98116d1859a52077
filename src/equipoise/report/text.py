"""Reports as plain text, for whoever asks for a string or has no command line."""

from __future__ import annotations

import sys
from io import StringIO
from typing import Any

from equipoise.report.inert import inert
from equipoise.report.terminal import ROOMY, console


def plain_text(*parts: Any) -> str:
    """Tables and paragraphs as text, whatever screen there is: tables whole, paragraphs folded, no colours.

    >>> from equipoise.report.terminal import heading
    >>> plain_text(heading("Results"))
    'Results\\n'
    """
    stream = StringIO()
    console(stream, ROOMY).print(*parts, sep="\n", crop=False)
    return stream.getvalue()


def show(text: str) -> None:
    """Write a text to standard output."""
    sys.stdout.write(inert(text if text.endswith("\n") else f"{text}\n"))
