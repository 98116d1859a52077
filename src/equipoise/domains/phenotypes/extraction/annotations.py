"""Gold annotations with ids resolved to the live terms of an ontology."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from equipoise.checks.base import join_names, pluralize
from equipoise.domains.phenotypes.extraction.annotated_corpus import (
    AnnotatedCorpus,
    AnnotatedDocument,
    Annotation,
    AnnotationIssue,
)
from equipoise.domains.phenotypes.extraction.candidates import ClinicalText
from equipoise.domains.phenotypes.language import LANGUAGES, validate_language
from equipoise.domains.phenotypes.ontology import Ontology, Resolutions, ResolvedId
from equipoise.errors import InputError, UnknownNameError


@dataclass(frozen=True)
class GoldAnnotations:
    """Documents with gold annotations of live terms, and the problems of reading and resolving them."""

    annotated: AnnotatedCorpus
    ontology: Ontology
    resolutions: Resolutions
    problems: tuple[AnnotationIssue, ...]

    @property
    def annotations(self) -> Mapping[str, tuple[Annotation, ...]]:
        """The annotations by document."""
        return {document.id: document.annotations for document in self.annotated.documents}

    @cached_property
    def documents(self) -> tuple[ClinicalText, ...]:
        """The texts as inputs of the pipeline."""
        return tuple(
            ClinicalText(
                document.id, document.text, document.language if supports_assertions(document.language) else None
            )
            for document in self.annotated.documents
        )

    def sets(self) -> dict[str, list[tuple[str, str]]]:
        """The (term, assertion) pairs by document."""
        return {
            name: [(entry.term, entry.assertion) for entry in entries] for name, entries in self.annotations.items()
        }

    @property
    def lost(self) -> tuple[AnnotationIssue, ...]:
        """The documents that could not be read."""
        return tuple(problem for problem in self.problems if problem.lost)

    @property
    def problem_messages(self) -> tuple[str, ...]:
        """All problems as text; those of lost documents are last."""
        return tuple(map(str, sorted(self.problems, key=lambda problem: problem.lost)))

    @property
    def lost_message(self) -> str:
        """Which documents could not be read; empty if none."""
        if not self.lost:
            return ""
        names = join_names([problem.where for problem in self.lost])
        return f"{pluralize(len(self.lost), 'document')} could not be read: {names}"

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes about the documents for the report."""
        bare = self.annotated.without_gold
        odd = [problem for problem in self.problems if not problem.lost]
        notes = [self.lost_message] if self.lost else []
        if bare:
            notes.append(f"{pluralize(len(bare), 'document')} without gold (recall undefined): {join_names(bare)}")
        if self.resolutions.moved:
            notes.append(f"ids resolved to live terms: {self.resolutions}")
        other_languages = sorted({document.language for document in self.annotated.documents} - {""})
        other_languages = [code for code in other_languages if not supports_assertions(code)]
        if other_languages:
            languages = " or ".join(LANGUAGES)
            notes.append(f"no rules for assertions in {join_names(other_languages)}: those of {languages} are used")
        if odd:
            notes.append(f"{pluralize(len(odd), 'mismatch', 'mismatches')} in the gold")
        return tuple(notes)


def supports_assertions(language: str) -> bool:
    """Whether there are assertion rules for a language.

    >>> supports_assertions("de"), supports_assertions("fr"), supports_assertions("")
    (True, False, False)
    """
    try:
        validate_language(language)
    except UnknownNameError:
        return False
    return True


def resolve_annotations(annotated: AnnotatedCorpus, ontology: Ontology) -> GoldAnnotations:
    """Resolve every id; ids without a live term are listed as problems and left out.

    A document without any resolvable id is dropped: it would count as a document without gold, and every
    predicted term would be wrong.
    """
    problems = list(annotated.problems)
    resolved: list[ResolvedId] = []
    resolved_documents = [_resolve_document(document, ontology, problems, resolved) for document in annotated.documents]
    documents = tuple(document for document in resolved_documents if document is not None)
    if annotated.documents and resolved == [] and len(problems) > len(annotated.problems):
        raise InputError(
            f"none of the gold ids of {annotated.source or 'the documents'} is a term of {ontology.title}: "
            f"{problems[len(annotated.problems)]}",
            hint="name the ontology of these ids with --ontology",
        )
    if not resolved:
        source, number = annotated.source or "the list", pluralize(len(documents), "document")
        raise InputError(
            f"no document of {source} has gold ({number} without any)",
            hint="for texts without annotations, use eq phenotypes extract",
        )
    moved = tuple(resolution for resolution in resolved if resolution.how != "live")
    live = replace(annotated, documents=documents)
    return GoldAnnotations(live, ontology, Resolutions(len(resolved), moved), tuple(problems))


def _resolve_document(
    document: AnnotatedDocument,
    ontology: Ontology,
    problems: list[AnnotationIssue],
    resolved: list[ResolvedId],
) -> AnnotatedDocument | None:
    spans: dict[tuple[str, str], set[tuple[int, int]]] = {}
    for annotation in document.annotations:
        try:
            resolution = ontology.resolve(annotation.term)
        except UnknownNameError as error:
            problems.append(AnnotationIssue(f"document {document.id}", f"{error.message}; left out", False, error.hint))
            continue
        resolved.append(resolution)
        # Two ids of one term are one entry of the gold.
        spans.setdefault((ontology.ids[resolution.term], annotation.assertion), set()).update(annotation.spans)
    if document.annotations and not spans:
        sentence = f"has no gold id that is a term of {ontology.title}"
        hint = "correct its ids, or name their ontology with --ontology"
        problems.append(AnnotationIssue(f"document {document.id}", sentence, True, hint))
        return None
    live = tuple(Annotation(*entry, tuple(sorted(positions))) for entry, positions in spans.items())
    return replace(document, annotations=live)
