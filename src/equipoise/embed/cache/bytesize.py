"""Amounts of bytes as people write them."""

from __future__ import annotations

import re

from equipoise.errors import ParameterError

_UNITS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?b)?", re.IGNORECASE)


def parse_bytes(text: str) -> int:
    """A number of bytes: ``500 MB`` is 500,000,000 and ``2 GiB`` is 2 * 1024**3.

    >>> parse_bytes("500MB"), parse_bytes("2 GiB"), parse_bytes("4096")
    (500000000, 2147483648, 4096)
    """
    match = _AMOUNT.fullmatch(text.strip())
    if match is None:
        raise ParameterError(f"{text!r} is no amount of bytes", hint="write it like 500MB or 2GiB")
    number, unit, suffix = match.groups()
    base = 1024 if (suffix or "").casefold() == "ib" else 1000
    return int(float(number) * base ** _UNITS[unit.casefold()])


def bytes_text(amount: int) -> str:
    """An amount in the largest unit that leaves a number of at least one.

    >>> bytes_text(999), bytes_text(1_540_000), bytes_text(16 * 1024**3)
    ('999 B', '1.5 MB', '17.2 GB')
    """
    size = float(amount)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 999.5:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"
