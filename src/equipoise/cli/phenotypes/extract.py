"""``eq phenotypes extract``: the terms of a note, what is asserted of them, and where."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli import exits, options
from equipoise.cli.output import Output, pass_output
from equipoise.cli.phenotypes.choices import index_dir_option, ontology_option, threads_option
from equipoise.cli.phenotypes.query import term_indexes
from equipoise.errors import InputError

if TYPE_CHECKING:
    from equipoise.ontology.ontology import Ontology
    from equipoise.tasks.extract import Candidates, Predictions

HELP = """
\b
  eq phenotypes extract note.txt
  eq phenotypes extract arztbrief.txt --model use --top-term-only --json

Find the terms that a note speaks of, with what it asserts of each: affirmed, negated, uncertain, of a relative
(family_history), or hypothetical. The text is cut (--chunkers, each cuts the pieces of the one before it),
the terms of all pieces are found at once, and evidence for the same term is put together. English and German
are told apart by themselves. A dash reads standard input.
"""

DEFAULT_MODEL = "tfidf:"
"""Needs no index and no other package, so that the first note is read at once."""


@click.command(help=HELP, short_help="Find the terms of a note, and who has them.")
@click.argument("note", type=click.Path())
@click.option("--model", metavar="MODEL", help="The model, such as use, tfidf: or sum:use+tfidf:.")
@click.option(
    "--chunkers", metavar="NAMES", help="Of paragraph, sentence, punctuation, conjunction, semantic, phrase."
)
@click.option("--num-results", type=click.IntRange(min=1), help="Terms that are looked at for each piece.")
@click.option("--chunk-threshold", type=float, help="The least score of a term in a piece.")
@click.option("--min-confidence", type=float, help="The least mean score of a term in the note.")
@click.option("--top-term-only/--all-terms", default=None, help="Only the first term of each piece.")
@click.option("--no-assertions", is_flag=True, help="Take everything as affirmed.")
@click.option("--language", metavar="CODE", help="en or de; by default it is guessed.")
@ontology_option
@index_dir_option
@threads_option
@options.output_options
@pass_output
def extract(
    out: Output,
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
    from equipoise.ontology.index.search import TermSystem
    from equipoise.ontology.load import load_ontology
    from equipoise.tasks.extract import DEFAULT_CHUNKERS, Document, Settings, candidates, predict
    from equipoise.tasks.extract.cut.named import cutters

    text = _text_of(note)
    document = Document("standard input" if note == "-" else note, text, language)
    names = [name.strip() for name in chunkers.split(",")] if chunkers else list(DEFAULT_CHUNKERS)
    settings = _settings(Settings(), choices)
    cutters([name for name in names if name != "semantic"] or ["sentence"])  # a wrong name, before a long wait
    terms = load_ontology(ontology)
    system = retriever(model or DEFAULT_MODEL, threads=threads)
    finder = TermSystem(system, terms, index=term_indexes(system, index_dir, terms, multi=True))
    found = candidates([document], finder, chunkers=names, num_results=min(settings.num_results, len(terms)))
    predicted = predict(found, **settings.record() | {"num_results": found.depth})
    _show(out, document.spoken, terms, found, predicted)
    return exits.DONE
