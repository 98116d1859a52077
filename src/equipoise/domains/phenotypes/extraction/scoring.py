"""Scores of extraction: metrics, error kinds, and the gold-span oracle.

The oracle runs the pipeline with the annotated spans as chunks, which separates losses of the splitter and the
model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.checks.base import ScoredResult, run_checks
from equipoise.domains.phenotypes.config import ExtractionConfig, extraction_metrics, metric_label, primary_metrics
from equipoise.domains.phenotypes.extraction.candidates import Candidates, TextSpan
from equipoise.domains.phenotypes.extraction.predict import Predictions, predict
from equipoise.evidence.sets import Sets
from equipoise.runs.evaluate import evaluate
from equipoise.runs.manifest import STATUS_SETTINGS, Status
from equipoise.runs.unit_table import RetrievedItem, UnitContent
from equipoise.stats.estimate import result_from_values
from equipoise.stats.intervals import Interval
from equipoise.stats.result import DATA

if TYPE_CHECKING:
    from equipoise.domains.phenotypes.extraction.annotated_corpus import Annotation, GoldAnnotations
    from equipoise.domains.phenotypes.extraction.extractor import TermExtractor
    from equipoise.domains.phenotypes.ontology import Ontology
    from equipoise.domains.phenotypes.similarity import TermSimilarity
    from equipoise.stats.result import Estimate, Result
    from equipoise.types import Bools, Finding, Floats, Ids

NO_INTERVAL = "not asked for"


def prediction_sets(gold: GoldAnnotations, predictions: Predictions) -> Sets:
    """The evidence: gold and predicted entries of each document."""
    return Sets.of(gold.sets(), predictions.sets())


def with_similarity_credit(sets: Sets, similarity: TermSimilarity) -> Sets:
    """The same sets with partial credit for terms that are similar to a gold term; unknown terms have none."""
    resolver = similarity.ontology.id_resolver

    def credit(gold: Ids, predicted: Ids) -> Floats:
        resolved = [[resolver.find(str(term)) for term in side] for side in (gold, predicted)]
        rows, columns = (np.array([match.term if match else 0 for match in side], dtype=np.int64) for side in resolved)
        credit: Floats = np.clip(similarity.between(rows, columns), 0.0, 1.0)
        credit[:, [match is None for match in resolved[1]]] = 0.0
        return credit

    return sets.with_credit(credit)


def extraction_result(sets: Sets, system: str, gold: GoldAnnotations, settings: ExtractionConfig) -> Result:
    """All metrics; the settings have what must be equal for runs to be comparable."""
    result = evaluate(
        sets,
        extraction_metrics(settings.averaging, settings.mode),
        system=system,
        config=settings.interval_config,
    )
    result = without_intervals(result, settings)
    result = replace(result, findings=_primary_findings(result, settings))
    return replace(result, settings={**result.settings, **comparability_settings(gold, settings)})


def _primary_findings(result: Result, settings: ExtractionConfig) -> tuple[Finding, ...]:
    """The findings about the primary metrics, under the names of the report; all 36 would repeat each other."""
    metrics = {metric.name: metric for metric in primary_metrics(settings.averaging, settings.mode)}
    primary = replace(
        result,
        estimates={name: result.estimates[name] for name in metrics},
        per_unit={name: values for name, values in result.per_unit.items() if name in metrics},
    )

    def renamed(text: str) -> str:
        for name in metrics:
            text = text.replace(name, metric_label(name))
        return text

    return tuple(
        replace(finding, message=renamed(finding.message), evidence=tuple(map(renamed, finding.evidence)))
        for finding in run_checks(ScoredResult(primary, metrics))
    )


def without_intervals(result: Result, settings: ExtractionConfig) -> Result:
    """The result without intervals, if none were requested."""
    if settings.bootstrap:
        return result
    estimates = {
        name: replace(
            estimate, interval=Interval.unknown(NO_INTERVAL, confidence_level=estimate.interval.confidence_level)
        )
        for name, estimate in result.estimates.items()
    }
    return replace(result, estimates=estimates)


def comparability_settings(gold: GoldAnnotations, settings: ExtractionConfig) -> dict[str, Any]:
    """Settings that must be equal for runs to be comparable: documents, terms, mode and average."""
    terms: dict[str, Any] = {
        DATA: {"documents": gold.annotated.fingerprint, "ontology": gold.ontology.fingerprint},
        "mode": settings.mode,
        "averaging": settings.averaging,
        "measure": settings.measure,
    }
    if gold.lost:
        terms |= dict(zip(STATUS_SETTINGS, (str(Status.PARTIAL), gold.lost_message), strict=True))
    return terms


def document_details(gold: GoldAnnotations, predictions: Predictions) -> dict[str | int, UnitContent]:
    """The text of every document, its gold, and the extracted terms with their evidence."""
    ontology = gold.ontology
    label_of = dict(zip(ontology.ids, ontology.labels, strict=True))
    details: dict[str | int, UnitContent] = {}
    for document, (_, terms) in zip(gold.annotated.documents, predictions, strict=True):
        entries = {(annotation.term, annotation.assertion) for annotation in document.annotations}
        retrieved = [
            RetrievedItem(
                term.term,
                f"{label_of[term.term]}, {term.assertion}",
                term.score,
                (term.term, str(term.assertion)) in entries,
                where="; ".join(document.text[start:end] for start, end in term.spans),
            )
            for term in terms
        ]
        details[document.id] = UnitContent(
            document.text,
            tuple(f"{entry.term} {label_of[entry.term]}, {entry.assertion}" for entry in document.annotations),
            {name: value for name, value in (("language", document.language), ("dataset", document.dataset)) if value},
            tuple(retrieved),
        )
    return details


class ErrorKind(StrEnum):
    """The relation of an entry to the entries of the other side; the first that applies."""

    RIGHT = "right"
    ASSERTION = "wrong assertion"
    PARENT = "parent"
    """A term directly above a gold term was found."""
    CHILD = "child"
    """A term directly below a gold term was found."""
    SIBLING = "sibling"
    """A term with a parent in common with a gold term was found."""
    OTHER = "other"


@dataclass(frozen=True)
class ErrorCounts:
    """The number of predicted and gold entries per kind.

    The kind of a gold entry is that of the nearest predicted entry of its document.
    """

    predicted: Mapping[ErrorKind, int]
    gold: Mapping[ErrorKind, int]

    def to_dict(self) -> dict[str, Any]:
        sides = {"predicted": self.predicted, "gold": self.gold}
        return {name: {str(kind): side[kind] for kind in ErrorKind} for name, side in sides.items()}


def count_errors(
    gold: Mapping[str, Iterable[tuple[str, str]]],
    predicted: Mapping[str, Iterable[tuple[str, str]]],
    ontology: Ontology,
) -> ErrorCounts:
    """Count every predicted and gold entry by its relation to the other side of its document."""
    family = _ParentCache(ontology)
    of_predicted: Counter[ErrorKind] = Counter()
    of_gold: Counter[ErrorKind] = Counter()
    for document, truth in gold.items():
        gold_entries, predicted_entries = set(truth), set(predicted.get(document, ()))
        of_predicted.update(family.kind(entry, gold_entries, is_predicted=True) for entry in predicted_entries)
        of_gold.update(family.kind(entry, predicted_entries, is_predicted=False) for entry in gold_entries)
    return ErrorCounts(
        {kind: of_predicted[kind] for kind in ErrorKind},
        {kind: of_gold[kind] for kind in ErrorKind},
    )


class _ParentCache:
    """The parents of terms, computed once per term."""

    def __init__(self, ontology: Ontology) -> None:
        self._ontology = ontology
        self._parents: dict[str, frozenset[str]] = {}

    def parents(self, term: str) -> frozenset[str]:
        if term not in self._parents:
            parents = self._ontology.parents[self._ontology.index_of(term)]
            self._parents[term] = frozenset(self._ontology.ids[parent] for parent in parents.tolist())
        return self._parents[term]

    def kind(self, entry: tuple[str, str], others: set[tuple[str, str]], *, is_predicted: bool) -> ErrorKind:
        """The kind of an entry; ``is_predicted``: a predicted entry, otherwise a gold entry."""
        if entry in others:
            return ErrorKind.RIGHT
        term, terms = entry[0], {other for other, _ in others}
        if term in terms:
            return ErrorKind.ASSERTION
        above = bool(self.parents(term) & terms)
        below = any(term in self.parents(other) for other in terms)
        if below if is_predicted else above:
            return ErrorKind.PARENT
        if above if is_predicted else below:
            return ErrorKind.CHILD
        if any(self.parents(term) & self.parents(other) for other in terms):
            return ErrorKind.SIBLING
        return ErrorKind.OTHER


FIRST_HIT = "share of gold spans whose term ranks first"
IN_TOP = "share of gold spans whose term ranks in the top"


@dataclass(frozen=True)
class GoldSpanOracle:
    """The pipeline with the annotated spans as chunks.

    ``retrieval`` has one unit per gold entry with a span; ``extraction`` has the primary metrics of the pipeline
    with gold spans as chunks, on entries with spans. ``n_lost_by_chunking`` and ``n_lost_by_model`` count gold
    entries that the pipeline misses: those that their own span would retrieve, and the others.
    """

    retrieval: Result
    extraction: Result
    n_found: int
    n_lost_by_chunking: int
    n_lost_by_model: int

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        scored = [
            replace(estimate, metric=f"{metric_label(name)} with gold spans as phrases")
            for name, estimate in self.extraction.estimates.items()
        ]
        return (*self.retrieval.estimates.values(), *scored)

    def to_dict(self) -> dict[str, Any]:
        return {
            "estimates": [estimate.to_dict() for estimate in self.estimates],
            "found_by_the_pipeline": self.n_found,
            "lost_by_chunking": self.n_lost_by_chunking,
            "lost_by_the_model": self.n_lost_by_model,
        }


def evaluate_gold_spans(
    gold: GoldAnnotations, extractor: TermExtractor, predictions: Predictions, settings: ExtractionConfig
) -> GoldSpanOracle | None:
    """Evaluate the pipeline on all gold spans; None if there are none."""
    annotations = [
        (index, annotation)
        for index, document in enumerate(gold.annotated.documents)
        for annotation in document.annotations
        if annotation.spans
    ]
    if not annotations:
        return None
    positions = sorted({(index, span) for index, annotation in annotations for span in annotation.spans})
    documents = gold.documents
    chunks = [TextSpan(index, *span, documents[index].text[slice(*span)]) for index, span in positions]
    depth = settings.pipeline.num_results
    candidates = extractor.candidates_for_spans(documents, chunks, num_results=depth)
    ranks = _ranks(candidates, annotations)
    names = [documents[index].id for index, _ in annotations]
    retrieval = result_from_values(
        "gold spans",
        [
            f"{name} {annotation.term} {annotation.assertion}"
            for name, (_, annotation) in zip(names, annotations, strict=True)
        ],
        {FIRST_HIT: ranks <= 1} | ({f"{IN_TOP} {depth}": ranks <= depth} if depth > 1 else {}),
        config=replace(settings.interval_config, clusters=names),
    )

    def found_in(predicted: Predictions) -> Bools:
        terms = {name: {term.term for term in extracted} for name, extracted in predicted}
        return np.array(
            [annotation.term in terms[name] for name, (_, annotation) in zip(names, annotations, strict=True)]
        )

    by_span = predict(candidates, **settings.pipeline.record())
    hit, reachable = found_in(predictions), found_in(by_span)
    return GoldSpanOracle(
        without_intervals(retrieval, settings),
        without_intervals(_oracle_result(gold, by_span, settings), settings),
        int(hit.sum()),
        int((~hit & reachable).sum()),
        int((~hit & ~reachable).sum()),
    )


def _oracle_result(gold: GoldAnnotations, by_span: Predictions, settings: ExtractionConfig) -> Result:
    truth = {
        name: [(annotation.term, annotation.assertion) for annotation in terms if annotation.spans]
        for name, terms in gold.annotations.items()
    }
    return evaluate(
        Sets.of(truth, by_span.sets()),
        primary_metrics(settings.averaging, settings.mode),
        system="gold spans",
        config=settings.interval_config,
    )


def _ranks(candidates: Candidates, annotations: list[tuple[int, Annotation]]) -> Floats:
    """The best rank of each gold term for any of its spans; infinity if none retrieves it."""
    row = {
        at: number
        for number, at in enumerate(
            zip(candidates.document.tolist(), candidates.start.tolist(), candidates.end.tolist(), strict=True)
        )
    }
    code = {term: number for number, term in enumerate(candidates.term_ids)}
    ranks = np.full(len(annotations), np.inf)
    for number, (index, annotation) in enumerate(annotations):
        rows = [row[index, *span] for span in annotation.spans if (index, *span) in row]
        is_gold = (candidates.terms[rows] == code.get(annotation.term, -1)) & np.isfinite(candidates.scores[rows])
        slots = np.nonzero(is_gold)[1]
        if len(slots):
            ranks[number] = slots.min() + 1
    return ranks
