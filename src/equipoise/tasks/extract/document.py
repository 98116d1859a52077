"""A text to find terms in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from equipoise.embed.chunk.tokens import checked_text
from equipoise.errors import DuplicateError, InputError
from equipoise.ontology.assertion.language import checked_language, guessed_language


@dataclass(frozen=True)
class Document:
    """A text with an id. Its language is guessed from its small words, unless it is given (en, de).

    >>> Document("note", "The boy has no fever.").spoken, Document("n", "Der Junge hat kein Fieber.").spoken
    ('en', 'de')
    """

    id: str
    text: str
    language: str | None = None

    def __post_init__(self) -> None:
        checked_text(self.text, f"document {self.id}")
        if self.language is not None:
            object.__setattr__(self, "language", checked_language(self.language))

    @cached_property
    def spoken(self) -> str:
        """The language, given or guessed."""
        return self.language or guessed_language(self.text)


def documents_of(documents: Iterable[Document] | Mapping[str, str]) -> tuple[Document, ...]:
    """Documents with distinct ids; a mapping from id to text will do.

    >>> documents_of({"a": "No fever."})[0].id
    'a'
    """
    if isinstance(documents, Mapping):
        documents = [Document(name, text) for name, text in documents.items()]
    listed = tuple(documents)
    if not listed:
        raise InputError("there is no document", hint="give at least one text")
    seen: set[str] = set()
    for document in listed:
        if document.id in seen:
            raise DuplicateError(f"two documents are called {document.id}", hint="give each its own id")
        seen.add(document.id)
    return listed
