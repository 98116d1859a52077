"""What the columns of a table of nodes are called, in the words that people use for them."""

from __future__ import annotations

from collections.abc import Iterable

ID = ("id", "account_id", "account", "code", "account_code", "node", "node_id", "guid")
PARENT = (
    "parent",
    "parent_id",
    "parent_account",
    "parent_account_id",
    "parent_code",
    "parent_guid",
    "parent_node",
)
NAME = ("name", "account_name", "title", "label", "description", "text")


def guess(known: tuple[str, ...], columns: Iterable[str]) -> str | None:
    """The column that bears one of the known names, whatever its case; the first known name wins.

    >>> guess(PARENT, ["Account", "Parent Account", "Name"])
    'Parent Account'
    """
    spelled = {_plain(column): column for column in reversed(list(columns))}
    return next((spelled[name] for name in known if name in spelled), None)


def _plain(column: str) -> str:
    return column.strip().casefold().replace(" ", "_").replace("-", "_")
