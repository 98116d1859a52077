"""``eq phenotypes query``: the terms that a text speaks of, best first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from equipoise.cli import exits, options
from equipoise.cli.output import Output, pass_output
from equipoise.cli.phenotypes.choices import (
    index_dir_option,
    multi_vector_option,
    ontology_option,
    refuse_idle,
    strategy_option,
    threads_option,
    weights_of,
    weights_option,
)
from equipoise.cli.phenotypes.indexes import stored_indexes
from equipoise.cli.phenotypes.language import checked_language, language_notes
from equipoise.errors import InputError, ParameterError

if TYPE_CHECKING:
    from equipoise.ontology.index.search import Found, TermSystem

HELP = """
\b
  eq phenotypes query "seizures" --multi-vector
  eq phenotypes query "Kleinwuchs" --multi-vector --language de --aggregation-strategy all_max

Find the terms that a text speaks of. The score of a term is exact: with --multi-vector it is aggregated
over its label, all its synonyms and its definition, by a strategy (label_only, label_synonyms_min,
label_synonyms_max, all_max, all_min, all_weighted) or by an expression of your own, such as
"0.6*label + 0.4*max(synonyms)". The default model adds the cosines of a multilingual model and of
character n-grams: of what works offline it finds most, in English and in German. A model that
embeds gets an index at the first question, which takes a minute or more; tfidf: and bm25: need none.
"""


@click.command(help=HELP, short_help="Find the terms that a text speaks of.")
@click.argument("text")
@click.option("--model-name", metavar="MODEL", help="The model, such as use, minilm, tfidf: or sum:a+b.")
@multi_vector_option
@strategy_option
@weights_option
@click.option(
    "--language",
    metavar="CODE",
    help="The language of the text, such as en or de: changes no score, only decides a warning.",
)
@click.option(
    "--num-results", type=click.IntRange(min=1), default=10, show_default=True, help="How many terms."
)
@ontology_option
@index_dir_option
@click.option(
    "--store", metavar="STORE", help="Let a store propose the terms: faiss:hnsw, chroma:FOLDER, ..."
)
@threads_option
@options.output_options
@pass_output
def query(
    out: Output,
    text: str,
    model_name: str | None,
    multi_vector: bool,
    aggregation_strategy: str | None,
    weights: str | None,
    language: str | None,
    num_results: int,
    ontology: str,
    index_dir: str | None,
    store: str | None,
    threads: int,
) -> int:
    """See ``HELP``."""
    from equipoise.embed.retriever import retriever
    from equipoise.ontology.index.aggregate import DEFAULT_STRATEGY, strategy_of
    from equipoise.ontology.index.search import TermSystem
    from equipoise.ontology.load import load_ontology
    from equipoise.recipes.phenotypes.settings import DEFAULT_MODEL

    if not text.strip():
        raise InputError("the text is empty", hint='write what was seen: eq phenotypes query "seizures"')
    checked_language(language)
    refuse_idle(multi_vector, aggregation_strategy, weights)
    strategy = DEFAULT_STRATEGY if aggregation_strategy is None else aggregation_strategy
    strategy_of(strategy, weights_of(weights))
    spec = model_name or DEFAULT_MODEL
    terms = load_ontology(ontology)
    model = retriever(spec, threads=threads)
    system = TermSystem(
        model,
        terms,
        multi=multi_vector,
        strategy=strategy,
        weights=weights_of(weights),
        index=stored_indexes(out, model, index_dir, terms, multi_vector),
    )
    depth = min(num_results, len(terms))
    found = system.search([text], depth) if store is None else _by_store(system, store, text, depth)
    _show(out, text, system, found, language)
    return exits.DONE


def _by_store(system: TermSystem, store: str, text: str, depth: int) -> Found:
    from equipoise.embed.dense import DenseRetriever
    from equipoise.ontology.index.candidates import put_into_store, search_by_store

    if not isinstance(system.system, DenseRetriever) or not system.indexes:
        raise ParameterError(
            f"{system.card.spec} has no index whose vectors a store could hold",
            hint="name one model that embeds, or leave --store out",
        )
    held = put_into_store(system.indexes[0], system.system, store)
    try:
        return search_by_store(system, held, [text], depth)
    finally:
        held.store.close()


def _show(out: Output, text: str, system: TermSystem, found: Found, language: str | None) -> None:
    rows = _rows(system, found)
    if out.json:
        out.data(
            {
                "query": text,
                "language": language,
                "model": system.card.spec,
                "multi_vector": system.multi,
                "aggregation_strategy": system.strategy if system.multi else None,
                "ontology": {"name": system.ontology.name, "release": system.ontology.release},
                "citation": system.ontology.citation,
                "results": rows,
            }
        )
        return
    if rows:
        out.show(_table(system, rows, verbose=out.verbose))
    else:
        out.text("no term shares words or letters with the text")
    for line in _notes(system, language):
        out.note(line)


def _table(system: TermSystem, rows: list[dict[str, Any]], *, verbose: bool) -> Any:
    """The terms, best first; with which of its texts each was found, where it has several."""
    from equipoise.report.table import Column, FittedTable
    from equipoise.stats.numbers import figure

    columns = [
        Column("term", [row["id"] for row in rows]),
        Column("label", [row["label"] for row in rows], shortens="end"),
        Column("score", [figure(row["score"], 3) for row in rows], right=True),
    ]
    if system.multi:
        matched = [f"{row['component']}: {row['text']}" for row in rows]
        columns.append(Column("agrees most", matched, rank=1, shortens="end"))
    if verbose:
        said = [system.ontology.definitions[system.ontology.place(row["id"])] for row in rows]
        columns.append(Column("definition", said, rank=2, shortens="end"))
    return FittedTable(columns)


def _rows(system: TermSystem, found: Found) -> list[dict[str, Any]]:
    from equipoise.ontology.index.components import Kind

    """The terms that were found; what has no word of the text scores 0, and is not found by its words."""
    from equipoise.ontology.index.fitting import models_of

    lexical = not models_of(system.system)
    texts, kinds, ontology = system.components.texts, system.components.kind, system.ontology
    rows = zip(found.terms[0].tolist(), found.scores[0].tolist(), found.component[0].tolist(), strict=True)
    return [
        {
            "rank": rank,
            "id": ontology.ids[term],
            "label": ontology.labels[term],
            "score": score,
            "component": Kind(int(kinds[component])).name.lower(),
            "text": texts[component],
        }
        for rank, (term, score, component) in enumerate(rows, start=1)
        if score or not lexical
    ]


def _notes(system: TermSystem, language: str | None) -> list[str]:
    """What made the scores, what cannot be expected of the model, and whose terms these are."""
    from equipoise.embed.retriever import kind_of
    from equipoise.ontology.index.fitting import parts_of

    how = f"multi-vector, {system.strategy}" if system.multi else "single-vector"
    notes = [f"{system.card.name}; {how}; {len(system.ontology):,} terms"]
    kinds = {part.card.spec: kind_of(part.card.spec) for part in parts_of(system.system)}
    return [*notes, *language_notes(kinds, language), system.ontology.citation]
