"""Fit the confidence of extracted terms on gold annotations, and report its calibration on held-out documents.

    PYTHONPATH=src python scripts/fit_confidence.py english=CORPUS german=CASES.json...

CORPUS is a folder of annotated documents, as eq phenotypes extraction run reads it. CASES are German names with their
term ids; they become notes of three names between sentences that name no finding. The weights are printed as they
are in extraction/extractor.py.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from equipoise.domains.phenotypes.config import ExtractionConfig
from equipoise.domains.phenotypes.defaults import DEFAULT_EXTRACTOR
from equipoise.domains.phenotypes.extraction import extractor
from equipoise.domains.phenotypes.extraction.annotated_corpus import (
    AnnotatedCorpus,
    AnnotatedDocument,
    Annotation,
    resolve_annotations,
)
from equipoise.domains.phenotypes.extraction.dictionary import Mention
from equipoise.domains.phenotypes.extraction.experiment import read_gold_annotations
from equipoise.domains.phenotypes.ontology import load_ontology

LEADS = ("Es besteht {}.", "Befund: {}.", "Auffällig war {}.", "Es fand sich {}.", "Diagnose: {}.")
FILLERS = (
    "Der Patient stellt sich zur Kontrolle vor.",
    "Die Untersuchung erfolgte in unserer Ambulanz.",
    "Die Schwangerschaft verlief unkompliziert.",
    "Die Eltern sind gesund und nicht verwandt.",
    "Die Therapie wurde mit Ibuprofen begonnen.",
    "Im Alter von drei Jahren wurde eine genetische Diagnostik durchgeführt.",
    "Die Vorstellung erfolgt zur weiteren Abklärung.",
    "Der Befund wurde mit der Familie besprochen.",
    "Die Laborwerte waren im Normbereich.",
    "Die Entlassung erfolgte in gutem Allgemeinzustand nach Hause.",
    "Wir bitten um eine Wiedervorstellung in sechs Monaten.",
    "Das Geburtsgewicht betrug 3200 Gramm.",
)
N_FOLDS = 10


def fit_logistic(features: Any, labels: Any, *, ridge: float = 1.0, n_iterations: int = 50) -> extractor.LogisticModel:
    """Fit a logistic regression by Newton's method; ``ridge`` penalises all weights but the intercept."""
    design = np.column_stack([np.ones(len(features)), features])
    penalty = np.diag([1e-9, *([ridge] * features.shape[1])])
    weights = np.zeros(design.shape[1])
    for _ in range(n_iterations):
        probability = 1.0 / (1.0 + np.exp(-design @ weights))
        gradient = design.T @ (labels - probability) - penalty @ weights
        hessian = (design * (probability * (1.0 - probability))[:, None]).T @ design + penalty
        step = np.linalg.solve(hessian, gradient)
        weights += step
        if np.abs(step).max() < 1e-10:
            break
    return extractor.LogisticModel(tuple(weights.tolist()))


def german_notes(paths: list[str]) -> Iterator[AnnotatedDocument]:
    """Notes of three names each; the same files give the same notes."""
    cases = [case for path in paths for case in json.loads(Path(path).read_text(encoding="utf-8"))]
    rng = random.Random(1)
    rng.shuffle(cases)
    for number in range(0, len(cases), 3):
        cases_of_note = cases[number : number + 3]
        sentences = [
            sentence
            for case in cases_of_note
            for sentence in (rng.choice(LEADS).format(case["text"]), rng.choice(FILLERS))
        ]
        gold = {term for case in cases_of_note for term in case["expected_hpo_ids"]}
        yield AnnotatedDocument(f"note {number}", " ".join(sentences), tuple(map(Annotation, sorted(gold))), "de")


def main(arguments: list[str]) -> None:
    """Fit both models and print them."""
    ontology = load_ontology()
    english = [path for kind, _, path in (argument.partition("=") for argument in arguments) if kind == "english"]
    german = [path for kind, _, path in (argument.partition("=") for argument in arguments) if kind == "german"]
    corpora = [read_gold_annotations(path, ontology) for path in english]
    corpora.append(resolve_annotations(AnnotatedCorpus(tuple(german_notes(german)), source="cases"), ontology))
    rows: dict[str, list[tuple[np.ndarray, bool, int]]] = {"mention": [], "span": []}
    with extractor.open_term_extractor(DEFAULT_EXTRACTOR, ontology, ExtractionConfig()) as terms:
        number = 0
        for corpus in corpora:
            documents = corpus.documents
            mentions = [terms.mentions(document) for document in documents]
            gold = [
                {ontology.index_of(annotation.term) for annotation in corpus.annotations[document.id]}
                for document in documents
            ]
            for index, document_mentions in enumerate(mentions):
                features = extractor.mention_features(document_mentions)
                for mention, row in zip(document_mentions, features, strict=True):
                    rows["mention"].append((row, mention.terms[0] in gold[index], number + index))
            rows["span"] += [
                (row, term in gold[index], number + index) for row, term, index in span_rows(terms, documents, mentions)
            ]
            number += len(documents)
    for name, examples in rows.items():
        report(name, *map(np.array, zip(*examples, strict=True)))


def span_rows(
    terms: extractor.TermExtractor, documents: tuple, mentions: list[list[Mention]]
) -> Iterator[tuple[np.ndarray, int, int]]:
    """The features of the best term of every phrase that the dictionary leaves free."""
    spans = terms.spans(documents, mentions)
    assert terms.system is not None
    hits = extractor.search_chunks(spans, terms.system, num_results=2, allowed=terms.allowed)
    rows = np.flatnonzero(np.isfinite(hits.scores[:, 0]))
    features = terms.hit_features(documents, spans, hits, rows, np.zeros(len(rows), dtype=np.int64))
    for row, of_row in zip(rows.tolist(), features, strict=True):
        yield of_row, int(hits.terms[row, 0]), spans[row].document


def report(name: str, features: np.ndarray, labels: np.ndarray, documents: np.ndarray) -> None:
    """Print the weights, and the calibration on held-out documents by predicted probability."""
    fold = np.random.default_rng(0).permutation(documents.max() + 1) % N_FOLDS
    predicted = np.empty(len(labels))
    for fold_number in range(N_FOLDS):
        held_out = fold[documents] == fold_number
        model = fit_logistic(features[~held_out], labels[~held_out])
        predicted[held_out] = model.probability(features[held_out])
    brier, base = np.mean((predicted - labels) ** 2), labels.mean() * (1 - labels.mean())
    print(f"{name}: {len(labels)} candidates, {labels.mean():.3f} right; Brier score {brier:.4f}, base rate {base:.4f}")
    for low in np.arange(0.0, 1.0, 0.1):
        in_bin = (predicted >= low) & (predicted < low + 0.1)
        if in_bin.any():
            print(f"  {low:.1f}-{low + 0.1:.1f}: predicted {predicted[in_bin].mean():.3f}, "
                  f"right {labels[in_bin].mean():.3f}, n {in_bin.sum()}")  # fmt: skip
    print("  ", tuple(round(weight, 3) for weight in fit_logistic(features, labels).weights))


if __name__ == "__main__":
    main(sys.argv[1:])
