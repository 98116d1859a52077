"""What is asked of what: the documents and the questions, checked before any work begins."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from equipoise.data.documents import Document
from equipoise.data.fixture import Question, questions
from equipoise.errors import InputError
from equipoise.recipes.fair.twins import answer_groups

_SHORT = 16


@dataclass(frozen=True)
class Material:
    """Documents and questions; ``absent`` holds the questions whose answers no document holds."""

    documents: tuple[Document, ...]
    questions: tuple[Question, ...]
    absent: tuple[Question, ...] = ()
    skipped: int = 0

    @property
    def texts(self) -> list[str]:
        """The questions as they are asked."""
        return [question.question for question in self.questions]

    @property
    def ids(self) -> list[str]:
        """The units."""
        return [question.id for question in self.questions]

    @cached_property
    def groups(self) -> list[int]:
        """The questions of one answer, or nearly one, belong together: they have the same number."""
        return answer_groups([question.answer for question in self.questions])

    @cached_property
    def fingerprints(self) -> dict[str, str]:
        """The SHA-256 of the documents, in order, and of the questions."""
        documents = [part for each in self.documents for part in (each.name, each.text)]
        asked = [
            part
            for each in self.questions
            for part in (each.id, each.question, each.answer, each.category, each.difficulty)
        ]
        return {"document": _digest(documents), "questions": _digest(asked)}

    @cached_property
    def identity(self) -> dict[str, str]:
        """The same of what is read and asked alone: file names and kinds of questions do not change units."""
        asked = [part for each in self.questions for part in (each.id, each.question, each.answer)]
        digests = {"document": _digest([each.text for each in self.documents]), "questions": _digest(asked)}
        return {part: digest[:_SHORT] for part, digest in digests.items()}


def material(doc_content: Any, qa_pairs: Any) -> Material:
    """The documents and questions, when something can be asked of them.

    >>> material("Rye and wheat.", [{"question": "What?", "answer": "rye"}]).ids
    ['q1']
    """
    return Material(_documents(doc_content), questions(qa_pairs))


def _documents(content: Any) -> tuple[Document, ...]:
    given = [content] if isinstance(content, str | Document) else content
    if not isinstance(given, Sequence) or isinstance(given, bytes):
        raise InputError(
            f"the document is a {type(content).__name__}, and not a text",
            hint="give a str, or a list of them",
        )
    found = []
    for place, each in enumerate(given, start=1):
        if not isinstance(each, str | Document):
            raise InputError(
                f"document {place} is a {type(each).__name__}, and not a text",
                hint="give a str, or read it with equipoise.data.documents.read_document",
            )
        found.append(each if isinstance(each, Document) else Document(f"document {place}", each))
    if not any(document.text.strip() for document in found):
        raise InputError(
            "the document is empty", hint="a scanned PDF has no text of its own: run it through OCR first"
        )
    return tuple(document for document in found if document.text.strip())


def _digest(parts: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()
