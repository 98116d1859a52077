"""Where else a page can lead: only a server has other pages, so a page on its own has none of these."""

from __future__ import annotations

from dataclasses import dataclass

Link = tuple[str, str]
"""What it is called, and its address."""


@dataclass(frozen=True, slots=True)
class Links:
    """The way back, the same page ordered by other metrics, and files to take away."""

    home: str
    orders: tuple[Link, ...] = ()
    files: tuple[Link, ...] = ()
