"""Scores of predictions that other programs wrote, and their paired comparison by document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from equipoise.checks.base import join_names, pluralize
from equipoise.domains.phenotypes.extraction.config import ExtractionConfig, make_config
from equipoise.domains.phenotypes.extraction.experiment import (
    Source,
    gold_findings,
    read_gold_annotations,
    with_findings,
)
from equipoise.domains.phenotypes.extraction.extractor import DICTIONARY, TermExtractor
from equipoise.domains.phenotypes.extraction.predict import predict
from equipoise.domains.phenotypes.extraction.prediction_files import (
    PredictedTerms,
    prediction_names,
    read_predictions,
)
from equipoise.domains.phenotypes.extraction.scoring import extraction_result, with_similarity_credit
from equipoise.domains.phenotypes.ontology.similarity import term_similarity
from equipoise.errors import ParameterError
from equipoise.evidence.sets import Sets
from equipoise.runs.compare import compare

if TYPE_CHECKING:
    from equipoise.domains.phenotypes.extraction.annotations import GoldAnnotations
    from equipoise.domains.phenotypes.ontology.ontology import Ontology
    from equipoise.stats.comparison import Comparison
    from equipoise.stats.result import Result


@dataclass(frozen=True, eq=False)
class ScoredExtraction:
    """The result of every program, their comparison, and what did not fit in their files."""

    gold: GoldAnnotations
    results: tuple[Result, ...]
    comparison: Comparison
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        scores = ", ".join(f"{result.system} {result[result.names[0]].value:.3f}" for result in self.results)
        return f"<ScoredExtraction on {len(self.gold.annotated)} documents: {scores}>"


def score_predictions(
    predictions: str | Iterable[str] | Mapping[str, str],
    gold: Source,
    ontology: Ontology | str = "hpo",
    *,
    dataset: str | None = None,
    baseline: bool = True,
    **settings: Any,
) -> ScoredExtraction:
    """Score the predictions of other programs against gold annotations, and compare them by document.

    Parameters
    ----------
    predictions
        Files or folders, or a mapping from names to them. Formats: ClinPhen, PhenoBERT, FastHPOCR, PhenoTagger
        (PubTator), Phentrieve, JSON output of language models, phenopackets, and tables of document, term and
        assertion.
    gold
        Annotated documents, as ``run_extraction`` reads them.
    ontology
        The ontology, its path, or ``hpo``.
    dataset
        One dataset of the gold.
    baseline
        Whether the dictionary (``dict:``) is scored on the same documents.
    **settings
        Fields of ``ExtractionConfig``: ``averaging``, ``include_assertions``, ``measure``, ``branch``, ``config``.

    Returns
    -------
    ScoredExtraction
        All metrics of every program, and paired tests.

    Examples
    --------
    >>> score_predictions({"clinphen": "out/", "llm": "llm.json"}, "corpus/")  # doctest: +SKIP
    """
    chosen = make_config(settings)
    if isinstance(predictions, str):
        predictions = [predictions]
    named = dict(predictions) if isinstance(predictions, Mapping) else prediction_names(predictions)
    if not named:
        raise ParameterError("no predictions were named", hint="give a file or a folder with --predictions")
    annotated = read_gold_annotations(gold, ontology, dataset)
    ids = [document.id for document in annotated.documents]
    answers: dict[str, dict[str, set[tuple[str, str]]]] = {}
    notes = list(annotated.notes)
    for name, path in named.items():
        predicted = read_predictions(path, ids, name=name)
        answers[name], unresolved = _resolve(predicted, annotated.ontology)
        notes += _notes(predicted, unresolved, annotated.ontology)
    if baseline and DICTIONARY not in answers:
        answers[DICTIONARY] = _dictionary_answers(annotated, chosen)
    results = tuple(_score(name, answer, annotated, chosen) for name, answer in answers.items())
    # F1, precision and recall; all others are in the results.
    metrics = results[0].names[:3]
    comparison = compare(results, metrics, primary=metrics[0], config=chosen.config)
    return ScoredExtraction(annotated, results, comparison, tuple(notes))


def _resolve(predicted: PredictedTerms, ontology: Ontology) -> tuple[dict[str, set[tuple[str, str]]], list[str]]:
    """The predictions with live ids, and the ids without a live term, which stay as they are and are wrong."""
    unresolved: list[str] = []
    answers: dict[str, set[tuple[str, str]]] = {}
    for document, entries in predicted.terms.items():
        answers[document] = set()
        for term, assertion in entries:
            live = ontology.id_resolver.find(term)
            if live is None:
                unresolved.append(term)
            answers[document].add((term if live is None else ontology.ids[live.term], assertion))
    return answers, list(dict.fromkeys(unresolved))


def _notes(predicted: PredictedTerms, unresolved: list[str], ontology: Ontology) -> list[str]:
    notes = []
    if predicted.missing:
        number = pluralize(len(predicted.missing), "document")
        notes.append(f"{predicted.name}: {number} without predictions: {join_names(predicted.missing)}")
    if predicted.unknown:
        number = pluralize(len(predicted.unknown), "document")
        notes.append(f"{predicted.name}: {number} that the gold lacks: {join_names(predicted.unknown)}")
    if unresolved:
        number = pluralize(len(unresolved), "id")
        notes.append(f"{predicted.name}: {number} not in {ontology.title}, counted as wrong: {join_names(unresolved)}")
    if predicted.problems:
        number = pluralize(len(predicted.problems), "problem")
        notes.append(f"{predicted.name}: {number}, such as: {predicted.problems[0]}")
    return notes


def _dictionary_answers(gold: GoldAnnotations, settings: ExtractionConfig) -> dict[str, set[tuple[str, str]]]:
    extractor = TermExtractor(gold.ontology, None, branch=settings.branch_in(gold.ontology))
    predicted = predict(extractor.mention_candidates(gold.documents), num_results=1)
    return {name: set(entries) for name, entries in predicted.sets().items()}


def _score(
    name: str, answers: Mapping[str, set[tuple[str, str]]], gold: GoldAnnotations, settings: ExtractionConfig
) -> Result:
    sets = Sets.of(gold.sets(), {document: sorted(entries) for document, entries in answers.items()})
    sets = with_similarity_credit(sets, term_similarity(gold.ontology, settings.measure))
    return with_findings(extraction_result(sets, name, gold, settings), gold_findings(gold, settings))
