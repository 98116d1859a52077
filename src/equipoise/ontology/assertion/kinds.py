"""What a text says of a finding: that it is there, that it is not, or something between."""

from __future__ import annotations

from enum import StrEnum


class Assertion(StrEnum):
    """Who has a finding, and how sure the text is of it."""

    AFFIRMED = "affirmed"
    """The patient has it, or had it."""
    NEGATED = "negated"
    """The patient does not have it."""
    UNCERTAIN = "uncertain"
    """The patient may have it."""
    FAMILY_HISTORY = "family_history"
    """The text speaks of a relative, who may have it or not."""
    HYPOTHETICAL = "hypothetical"
    """It may come, is looked for, or is to be prevented."""


ASSERTIONS: tuple[Assertion, ...] = tuple(Assertion)
"""All of them, ``affirmed`` first."""
