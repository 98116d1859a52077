"""First lines of edge lists: whether they name the two columns, and which of them is the parent's."""

from __future__ import annotations

import re
from collections.abc import Iterable

Roles = tuple[str, str]

_KNOWN = {
    **dict.fromkeys(("child", "child_id", "node", "id", "source", "id1"), "child"),
    **dict.fromkeys(("parent", "parent_id", "target", "id2"), "parent"),
}
_ABOVE = {"parent", "parents", "above", "ancestor", "belongs", "super", "broader", "hypernym", "target"}
_BELOW = {"child", "below", "descendant", "sub", "narrower", "hyponym", "source", "account", "id", "code"}
_PLAIN = {"node", "guid", "uuid", "key", "number", "no", "nr", "name", "item", "term", "category", "group"}
_FILLERS = {"of", "to", "in", "the", "is", "a"}
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_]+|\d+")


def known_roles(fields: list[str]) -> Roles | None:
    """The roles of two columns that bear the usual names; None where they do not.

    >>> known_roles(["Parent", "id"]), known_roles(["till", "cash"])
    (('parent', 'child'), None)
    """
    roles = tuple(_KNOWN.get(each.strip().casefold(), "") for each in fields)
    return (roles[0], roles[1]) if sorted(roles) == ["child", "parent"] else None


def likely_roles(fields: list[str], others: Iterable[str]) -> Roles | None:
    """The same where two cells are made of words that name columns, and stand nowhere else in the file.

    >>> likely_roles(["child_account", "ParentAccount"], ["b", "a"])
    ('child', 'parent')
    >>> likely_roles(["Bank account", "Asset account"], ["b", "a"])
    >>> likely_roles(["account", "belongs_to"], ["account", "a"])
    """
    cells = [each.strip() for each in fields]
    rest = set(others)
    if len(cells) != 2 or cells[0] == cells[1] or not rest or not rest.isdisjoint(cells):
        return None
    words = [{word.casefold() for word in _WORD.findall(cell)} - _FILLERS for cell in cells]
    if not all(each and each <= _ABOVE | _BELOW | _PLAIN for each in words):
        return None
    if not (words[0] | words[1]) & (_ABOVE | _BELOW):
        return None
    upside_down = bool(words[0] & _ABOVE) and not words[1] & _ABOVE
    return ("parent", "child") if upside_down else ("child", "parent")
