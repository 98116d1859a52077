"""``eq phenotypes extract``: the terms of a note, what is asserted of them, and where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from equipoise.cli import exits, options
from equipoise.cli.output import Output, pass_output
from equipoise.cli.phenotypes.choices import (
    index_dir_option,
    model_option,
    ontology_option,
    threads_option,
)
from equipoise.cli.phenotypes.indexes import stored_indexes
from equipoise.errors import InputError

if TYPE_CHECKING:
    from equipoise.ontology.ontology import Ontology
    from equipoise.tasks.extract import Candidates, Document, Extracted, Predictions

HELP = """
\b
  eq phenotypes extract note.txt
  eq phenotypes extract arztbrief.txt --model tfidf: --chunk-threshold 0.6 --json

Find the terms that a note speaks of, and what it says of each: affirmed, negated, uncertain, of a
relative (family_history), or hypothetical. The text is cut into pieces, the terms of all pieces are found
at once, and evidence for the same term is put together. --all-terms lists every term above the threshold
instead of the best of each piece. English and German are told apart; a dash reads standard input. A
model that embeds gets an index at the first note, which takes a minute or more; tfidf: needs none.

By default the best term of each piece counts, from 0.5 on. eq phenotypes extraction run looks at ten terms
of each from 0.7 on; with --chunk-threshold 0.5 --top-term-only it measures what this command does.
"""


@click.command(help=HELP, short_help="Find the terms of a note, and who has them.")
@click.argument("note", type=click.Path())
@model_option
@click.option(
    "--chunkers",
    metavar="NAMES",
    help="How to cut; usual: paragraph,sentence,punctuation,conjunction,cue. Also semantic, phrase.",
)
@click.option(
    "--num-results", type=click.IntRange(min=1), default=10, show_default=True, help="Terms of each piece."
)
@click.option("--chunk-threshold", type=float, help="Least score in a piece.  [default: 0.5]")
@click.option(
    "--min-confidence", type=float, default=0.0, show_default=True, help="Least mean score in the note."
)
@click.option(
    "--top-term-only/--all-terms", default=True, show_default=True, help="Only the best term of each piece."
)
@click.option("--assertions/--no-assertions", default=True, help="Or take everything as affirmed.")
@click.option("--language", metavar="CODE", help="en or de; guessed where it is not given.")
@ontology_option
@index_dir_option
@threads_option
@options.output_options
@pass_output
def extract(
    out: Output,
    /,
    note: str,
    model: str | None,
    chunkers: str | None,
    language: str | None,
    ontology: str,
    index_dir: str | None,
    threads: int,
    **choices: Any,
) -> int:
    """See ``HELP``."""
    from equipoise.embed.retriever import retriever
    from equipoise.ontology.index.fitting import models_of
    from equipoise.ontology.index.search import TermSystem
    from equipoise.ontology.load import load_ontology
    from equipoise.recipes.phenotypes.settings import DEFAULT_MODEL
    from equipoise.tasks.extract import DEFAULT_CHUNKERS, Document, candidates, predict
    from equipoise.tasks.extract.cut.named import cutters
    from equipoise.tasks.extract.settings import FOR_NOTES

    document = Document("standard input" if note == "-" else note, _text_of(note), language)
    system = retriever(model or DEFAULT_MODEL, threads=threads)
    names = chunkers.split(",") if chunkers else DEFAULT_CHUNKERS
    stages = cutters([name.strip() for name in names], next(iter(models_of(system)), None))
    terms = load_ontology(ontology)
    indexes = stored_indexes(out, system, index_dir, terms, multi=True)
    finder = TermSystem(system, terms, index=indexes)
    found = candidates([document], finder, chunkers=stages, num_results=choices["num_results"])
    if choices["chunk_threshold"] is None:
        choices["chunk_threshold"] = FOR_NOTES.chunk_threshold
    predicted = predict(found, **choices | {"num_results": found.depth})
    _show(out, document, terms, found, predicted)
    return exits.DONE


def _text_of(note: str) -> str:
    from equipoise.data.text import read_text, shown

    text = read_text(note)
    if not text.strip():
        raise InputError(f"{shown(note)} is empty", hint="give a text to read")
    return text


def _show(
    out: Output, document: Document, terms: Ontology, found: Candidates, predicted: Predictions
) -> None:
    (extracted,) = predicted.found
    if out.json:
        out.data(
            {
                "document": document.id,
                "language": document.spoken,
                "model": found.system,
                "chunkers": found.chunkers,
                "chunks": len(found),
                "settings": predicted.settings.record(),
                "ontology": {"name": terms.name, "release": terms.release},
                "citation": terms.citation,
                "terms": [_row(each, document, terms) for each in extracted],
            }
        )
        return
    from equipoise.report.table import Column, FittedTable
    from equipoise.stats.numbers import figure

    if extracted:
        columns = [
            Column("term", [each.term for each in extracted]),
            Column("label", [_label(each, terms) for each in extracted], shortens="end"),
            Column("assertion", [str(each.assertion) for each in extracted]),
            Column("score", [figure(each.score, 2) for each in extracted], right=True),
            Column("at", [_places(each) for each in extracted], rank=2),
            Column("evidence", [_evidence(each, document) for each in extracted], rank=1, shortens="end"),
        ]
        out.show(FittedTable(columns))
    for line in _notes(document, terms, found, predicted):
        out.note(line)


def _row(each: Extracted, document: Document, terms: Ontology) -> dict[str, Any]:
    from equipoise.ontology.assertion.detect import judged

    judgements = judged(document.text, each.spans, document.spoken)
    return {
        "id": each.term,
        "label": _label(each, terms),
        "assertion": each.assertion,
        "score": each.score,
        "evidence": [
            {
                "start_char": start,
                "end_char": end,
                "text": document.text[start:end],
                "cues": [document.text[first:last] for first, last in judgement.cues],
            }
            for (start, end), judgement in zip(each.spans, judgements, strict=True)
        ],
    }


def _label(each: Extracted, terms: Ontology) -> str:
    return terms.labels[terms.place(each.term)]


def _places(each: Extracted) -> str:
    return ", ".join(f"{start}-{end}" for start, end in each.spans)


def _evidence(each: Extracted, document: Document) -> str:
    return " | ".join(" ".join(document.text[start:end].split()) for start, end in each.spans)


def _notes(document: Document, terms: Ontology, found: Candidates, predicted: Predictions) -> list[str]:
    """What was read and how, what would show more, and whose terms these are."""
    from equipoise.stats.numbers import figure

    (extracted,) = predicted.found
    threshold = predicted.settings.chunk_threshold
    notes = [f"{len(extracted)} terms in {len(found)} pieces; {document.spoken}; {found.system}"]
    if not extracted and len(found):
        best = float(found.scores[:, 0].max())
        notes.append(f"the best score is {figure(best, 3)}, and --chunk-threshold is {threshold:g}")
    measured = " ".join(["eq phenotypes extraction run DIR", predicted.settings.flags]).strip()
    return [*notes, f"how good this is on documents with gold: {measured}", terms.citation]
