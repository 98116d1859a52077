"""What a file of an ontology says, term by term, before anything is made of it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True, slots=True)
class OboTerm:
    """One term of the file, obsolete ones too; ids and texts as they stand there."""

    id: str
    name: str = ""
    synonyms: tuple[str, ...] = ()
    definition: str = ""
    parents: tuple[str, ...] = ()
    alternatives: tuple[str, ...] = ()
    obsolete: bool = False
    replaced_by: tuple[str, ...] = ()
    consider: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OboFile:
    """A whole ontology file: what its header says, and its terms in the order of the file.

    ``release`` is the date of the version where it has one, else the version as it is written; each of
    the words of the header is empty where the file does not say it.
    """

    source: str
    ontology: str = ""
    title: str = ""
    version: str = ""
    licence: str = ""
    terms: tuple[OboTerm, ...] = field(default=(), repr=False)

    @property
    def release(self) -> str:
        """The date of the version, or the version itself.

        >>> OboFile("hp.obo", version="hp/releases/2025-01-16").release
        '2025-01-16'
        """
        date = _DATE.search(self.version)
        return date.group() if date else self.version
