"""``eq phenotypes query`` (retrieve terms for a text) and ``eq phenotypes similarity`` (compare terms)."""

from __future__ import annotations

import re
from dataclasses import asdict
from itertools import combinations
from typing import TYPE_CHECKING, Any

import click

from equipoise.checks.base import pluralize
from equipoise.cli import options, output
from equipoise.cli.output import Output, pass_output
from equipoise.domains.phenotypes.cli import (
    annotations_option,
    check_strategy_applies,
    index_dir_option,
    model_option,
    multi_vector_option,
    ontology_option,
    open_with_progress,
    strategy_option,
    translate_option,
    translations_option,
    weights_option,
)
from equipoise.domains.phenotypes.defaults import DEFAULT_MODEL
from equipoise.errors import InputError, ParameterError
from equipoise.progress import report_share

if TYPE_CHECKING:
    from equipoise.domains.phenotypes.index.retriever import TermHits, TermRetriever
    from equipoise.domains.phenotypes.ontology import Ontology, ResolvedId
    from equipoise.domains.phenotypes.query import TermMatch
    from equipoise.domains.phenotypes.similarity import TermSimilarity

ENGLISH_ONLY_MODELS = ("minilm", "glove", "wordllama")
"""Short names of models that support English only."""
SURFACE_FORM_MODELS = {"tfidf": "letters", "bm25": "words", "hash": "words"}
"""Kinds that compare surface forms, and their units."""
MULTILINGUAL_MODELS = '"use" and "sum:use+tfidf"'
"""Models that support further languages."""
USE_LANGUAGES = {
    "ar": "ara", "de": "deu ger", "en": "eng", "es": "spa", "fr": "fra fre", "it": "ita", "ja": "jpn",
    "ko": "kor", "nl": "nld dut", "pl": "pol", "pt": "por", "ru": "rus", "th": "tha", "tr": "tur",
    "zh": "zho chi",
}  # fmt: skip
"""The languages that ``use`` was trained on, with their codes of three letters; Chinese is two of the 16."""

_CODE = re.compile(r"([a-z]{2,3})(?:[-_][a-z0-9]{2,8})*", re.IGNORECASE)
_SHORT = {code: short for short, long in USE_LANGUAGES.items() for code in long.split()}


def validate_language_code(language: str | None) -> str | None:
    """Raise an error if the language is not a code: two or three letters, with or without a region."""
    if language is not None and _CODE.fullmatch(language) is None:
        raise ParameterError(
            f"{language!r} is not a language code", hint="write two or three letters, such as en or de"
        )
    return language


def language_notes(kinds: dict[str, str], language: str | None) -> list[str]:
    """Notes on the limits of a system in this language; ``kinds`` maps its parts to their kinds.

    There are no notes about models whose languages are unknown, such as those of the hub.
    """
    known = [_named(spec, kind) for spec, kind in kinds.items()]
    if language is None or primary_subtag(language) == "en" or not all(known):
        return []
    if primary_subtag(language) not in USE_LANGUAGES:
        return [f"no installed model supports {language}; only terms that share letters with the text are found"]
    english = [name for name in known if name in ENGLISH_ONLY_MODELS]
    if "use" in known:
        return []
    if english:
        verb = "supports" if len(english) == 1 else "support"
        return [f"{', '.join(english)} {verb} only English; models for {language}: {MULTILINGUAL_MODELS}"]
    units = SURFACE_FORM_MODELS[known[0]]
    verb = "matches" if len(known) == 1 else "match"
    return [f"{', '.join(known)} {verb} only shared {units}; models for {language}: {MULTILINGUAL_MODELS}"]


def primary_subtag(language: str) -> str:
    """A language without its region, by its shorter code."""
    code = re.split("[-_]", language.casefold())[0]
    return _SHORT.get(code, code)


def _named(spec: str, kind: str) -> str:
    """The short name of a model whose languages are known; otherwise an empty string."""
    if kind in SURFACE_FORM_MODELS or kind == "use":
        return kind
    return next((name for name in ENGLISH_ONLY_MODELS if name in spec.casefold()), "")


QUERY_HELP = """
\b
  eq phenotypes query "seizures"
  eq phenotypes query "Kleinwuchs" "Krampfanfälle" -k 1
  eq phenotypes query --file findings.csv -o terms.csv

Retrieve the terms that match one text or several: --file reads one text per line, or the column "text" of a table.
Every term is scored exactly, unless --store limits the candidates. --aggregation-strategy combines the scores of a
term's label, synonyms and definition: label_only, label_synonyms_min, label_synonyms_max, all_max, all_min,
all_weighted, or an expression such as "0.6*label + 0.4*max(synonyms)". With --single-vector, they are embedded
together as one text.

The default model, sum:use+tfidf, adds the cosine similarities of a multilingual model and of character n-grams, and
works offline for English and German. For a text with German words, the search is repeated with its English translation;
--translations adds translated labels (babelon tables of the Human Phenotype Ontology), in any language. The
first query with a dense model builds its index, which takes a few minutes; tfidf and bm25 need none.
"""

N_TERMS, N_TERMS_OF_SEVERAL = 10, 3


@options.command(help=QUERY_HELP, short_help="Retrieve the ontology terms that match a text.")
@click.argument("texts", nargs=-1, metavar="[TEXT]...")
@click.option(
    "--file", "file", metavar="FILE", type=click.Path(), help="Read texts from this file; - is standard input."
)
@model_option(DEFAULT_MODEL)
@multi_vector_option
@strategy_option
@weights_option
@translate_option
@translations_option
@click.option(
    "--language",
    metavar="CODE",
    help="The language of the text, such as en or de. Used only to warn about unsuitable models.",
)
@click.option(
    "-k",
    "--top-k",
    cls=options.AliasOption,
    aliases=("--num-results",),
    type=click.IntRange(min=1),
    help=f"Number of terms per text.  [default: {N_TERMS}; {N_TERMS_OF_SEVERAL} for several texts]",
)
@ontology_option
@index_dir_option
@click.option("--store", metavar="STORE", help="Take candidates from a store, such as faiss:hnsw or duckdb:FILE.")
@options.threads_option
@options.model_device_option
@options.table_options()
@options.output_options
@pass_output
def query(
    out: Output,
    /,
    texts: tuple[str, ...],
    file: str | None,
    model: str | None,
    multi_vector: bool,
    aggregation_strategy: str | None,
    weights: list[float] | None,
    language: str | None,
    top_k: int | None,
    ontology: str,
    store: str | None,
    threads: int,
    device: str | None,
    **choices: Any,
) -> int:
    """See ``QUERY_HELP``."""
    from equipoise.domains.phenotypes.index.aggregation import DEFAULT_STRATEGY, parse_strategy
    from equipoise.domains.phenotypes.ontology import load_ontology

    queries = _read_texts(texts, file)
    validate_language_code(language)
    check_strategy_applies(multi_vector, aggregation_strategy, weights)
    strategy = DEFAULT_STRATEGY if aggregation_strategy is None else aggregation_strategy
    parse_strategy(strategy, weights)
    spec = model or DEFAULT_MODEL
    with out.working(f"reading the ontology {ontology}"):
        terms = load_ontology(ontology)
    system = open_with_progress(
        out, spec, terms, threads, device, multi_vector=multi_vector, strategy=strategy, weights=weights, **choices
    )
    several = file is not None or len(queries) > 1
    depth = min(top_k or (N_TERMS_OF_SEVERAL if several else N_TERMS), len(terms))
    if store is None:
        with out.working(f"searching {pluralize(len(queries), 'text')}"):
            hits = system.search(queries, depth, report_share)
    else:
        hits = _search_store(out, system, store, queries, depth)
    _show(out, queries, system, hits, language, several=several)
    return output.DONE


def _read_texts(texts: tuple[str, ...], file: str | None) -> list[str]:
    from equipoise.domains.phenotypes.query import read_queries

    if texts and file is not None:
        raise ParameterError("texts and --file are both given", hint="omit one of them")
    if file is not None:
        return read_queries(file)
    if not texts or not all(text.strip() for text in texts):
        raise InputError("there is no text to search for", hint='for example: eq phenotypes query "seizures"')
    return list(texts)


def _search_store(out: Output, system: TermRetriever, store: str, texts: list[str], depth: int) -> TermHits:
    from equipoise.domains.phenotypes.query import fill_store, search_with_store
    from equipoise.models.dense import DenseRetriever

    if not isinstance(system.system, DenseRetriever) or not system.indexes:
        raise ParameterError(
            f"{system.card.spec} has no index whose vectors a store could hold",
            hint="choose one embedding model, or omit --store",
        )
    with out.count("filling the store", len(system.components)) as count:
        filled = fill_store(system.indexes[0], system.system, store, count)
    try:
        with out.count("searching", len(texts)) as count:
            return search_with_store(system, filled, texts, depth, count)
    finally:
        filled.store.close()


def _show(
    out: Output, texts: list[str], system: TermRetriever, hits: TermHits, language: str | None, *, several: bool
) -> None:
    from equipoise.domains.phenotypes.query import term_matches

    matches = term_matches(system, hits)
    if out.json:
        out.data(_query_record(texts, system, matches, language, several=several))
        return
    if any(matches):
        out.show(_table(system, texts, matches, several=several, verbose=out.verbose))
    unmatched = [text for text, text_matches in zip(texts, matches, strict=True) if not text_matches]
    if unmatched and not several:
        out.text("no term shares words or letters with the text")
    elif unmatched:
        out.note(f"no term shares words or letters with: {', '.join(unmatched)}")
    if not several and (english := system.translation(texts[0])):
        out.note(f"also searched, translated into English: {english}")
    for line in _notes(system, language):
        out.note(line)


def _query_record(
    texts: list[str],
    system: TermRetriever,
    matches: list[list[TermMatch]],
    language: str | None,
    *,
    several: bool,
) -> dict[str, Any]:
    queries = [
        {"query": text, "translation": system.translation(text), "results": [asdict(match) for match in text_matches]}
        for text, text_matches in zip(texts, matches, strict=True)
    ]
    return {
        **({"queries": queries} if several else queries[0]),
        "language": language,
        "model": system.card.spec,
        "multi_vector": system.multi_vector,
        "aggregation_strategy": system.strategy if system.multi_vector else None,
        "ontology": {"name": system.ontology.name, "release": system.ontology.release},
        "citation": system.ontology.citation,
    }


def _table(
    system: TermRetriever, texts: list[str], matches: list[list[TermMatch]], *, several: bool, verbose: bool
) -> Any:
    """The terms, best first, with the best component if there are several per term."""
    from equipoise.report.terminal import ReportColumn, TerminalTable
    from equipoise.stats.formatting import format_value

    rows = [(text, match) for text, text_matches in zip(texts, matches, strict=True) for match in text_matches]
    columns = []
    if several:
        columns = [
            ReportColumn("text", [text for text, _ in rows], shortens="end"),
            ReportColumn("rank", [str(match.rank) for _, match in rows], right=True),
        ]
    columns += [
        ReportColumn("term", [match.id for _, match in rows]),
        ReportColumn("label", [match.label for _, match in rows], shortens="end"),
        ReportColumn("score", [format_value(match.score, 3) for _, match in rows], right=True),
    ]
    if system.multi_vector:
        matched = [f"{match.component}: {match.text}" for _, match in rows]
        columns.append(ReportColumn("best match", matched, rank=1, shortens="end"))
    if verbose:
        ontology = system.ontology
        definitions = [ontology.definitions[ontology.index_of(match.id)] for _, match in rows]
        columns.append(ReportColumn("definition", definitions, rank=2, shortens="end"))
    return TerminalTable(columns)


def _notes(system: TermRetriever, language: str | None) -> list[str]:
    """The system, limits of the model in this language, and the citation of the ontology."""
    from equipoise.domains.phenotypes.index.retriever import fusion_parts
    from equipoise.models.registry import spec_kind

    representation = f"multi-vector, {system.strategy}" if system.multi_vector else "single-vector"
    notes = [f"{system.card.name}; {representation}; {len(system.ontology):,} terms"]
    kinds = {part.card.spec: spec_kind(part.card.spec) for part in fusion_parts(system.system)}
    return [*notes, *language_notes(kinds, language), system.ontology.citation]


SIMILARITY_HELP = """
\b
  eq phenotypes similarity HP:0001250 HP:0002069
  eq phenotypes similarity HP:0001250 HP:0002069 HP:0000252 --measure resnik --measure edge

Show the similarity of all pairs of terms and their most informative common ancestor. The measures are lin (the
default), resnik, resnik-normalised, jiang-conrath, edge and hybrid; eq explain MaxOntSim describes their use. The
information content is computed from the graph alone, or with --annotations from annotation counts: hpo means the
disease annotations of the Human Phenotype Ontology.

Alternative and replaced ids are resolved, with a note. --ontology takes any OBO or OBO-graph JSON file.
"""


@options.command(help=SIMILARITY_HELP, short_help="Show the similarity of ontology terms.")
@click.argument("terms", nargs=-1, metavar="TERM TERM...")
@click.option(
    "--measure",
    "measures",
    type=options.ChoiceWithHint("similarity", options.names_in("equipoise.domains.phenotypes.similarity", "MEASURES")),
    multiple=True,
    default=("lin",),
    show_default=True,
    help="Similarity measure; may be repeated.",
)
@click.option(
    "--information-content",
    type=options.ChoiceWithHint(
        "information content",
        options.names_in("equipoise.domains.phenotypes.similarity", "INFORMATION_CONTENT_KINDS"),
    ),
    help="How information content is computed from the graph.  [default: descendants]",
)
@annotations_option
@click.option(
    "--as-published", is_flag=True, help="Compute the hybrid measure as published; it can be 1.0 for distinct terms."
)
@ontology_option
@options.table_options()
@options.output_options
@pass_output
def similarity(
    out: Output,
    terms: tuple[str, ...],
    measures: tuple[str, ...],
    information_content: str | None,
    annotations: str | None,
    as_published: bool,
    ontology: str,
) -> None:
    from equipoise.domains.phenotypes import similarity as arithmetic
    from equipoise.domains.phenotypes.ontology import load_ontology

    if len(terms) < 2:
        raise ParameterError(
            f"a similarity needs two terms; there {'is' if len(terms) == 1 else 'are'} {len(terms)}",
            hint="eq phenotypes similarity HP:0001250 HP:0002069",
        )
    if as_published and "hybrid" not in measures:
        raise ParameterError("--as-published applies to the hybrid measure only", hint="add --measure hybrid")
    if annotations is not None and information_content is not None:
        raise ParameterError("--annotations and --information-content are both given", hint="omit one of them")
    with out.working(f"reading the ontology {ontology}"):
        loaded = load_ontology(ontology)
        information = information_content or arithmetic.information_values(loaded, annotations)
    resolved = [loaded.resolve(term) for term in terms]
    similarities = [
        arithmetic.term_similarity(
            loaded, name, information=information, as_published=as_published and name == "hybrid"
        )
        for name in dict.fromkeys(measures)
    ]
    rows = [_pair_record(similarities, left, right) for left, right in combinations(resolved, 2)]
    if out.json:
        kind = f"annotations {annotations}" if annotations else similarities[0].information
        out.data(_similarity_record(loaded, kind, resolved, rows))
    else:
        source = f", computed from the {annotations} annotations" if annotations else ""
        out.show(*_similarity_report(loaded, similarities, resolved, rows, source))


def _pair_record(similarities: list[TermSimilarity], left: ResolvedId, right: ResolvedId) -> dict[str, Any]:
    """One pair: ids, similarities, path length, and the best common ancestor by the first measure."""
    import numpy as np

    from equipoise.domains.phenotypes.similarity import common_ancestor, path_lengths

    ontology = similarities[0].ontology
    a, b = np.array([left.term]), np.array([right.term])
    edges = path_lengths(ontology, a, b)[0]
    ancestor = common_ancestor(similarities[0], left.term, right.term)
    return {
        "a": ontology.ids[left.term],
        "b": ontology.ids[right.term],
        "similarity": {item.measure.name: float(item.pairs(a, b)[0]) for item in similarities},
        "edges": int(edges) if np.isfinite(edges) else None,
        "ancestor": None if ancestor is None else {"id": ontology.ids[ancestor], "label": ontology.labels[ancestor]},
    }


def _similarity_record(
    ontology: Ontology, information_content: str, resolved: list[ResolvedId], rows: list[dict[str, Any]]
) -> dict[str, Any]:
    return {
        "ontology": {"name": ontology.name, "release": ontology.release, "citation": ontology.citation},
        "information": information_content,
        "terms": [
            {"given": term.id, "id": ontology.ids[term.term], "label": ontology.labels[term.term], "how": term.how}
            for term in resolved
        ],
        "pairs": rows,
    }


def _similarity_report(
    ontology: Ontology,
    similarities: list[TermSimilarity],
    resolved: list[ResolvedId],
    rows: list[dict[str, Any]],
    source: str,
) -> list[Any]:
    """The terms, then one row per pair and measure; a pair is named in its first row.

    ``source`` is added to the legend of the information content.
    """
    from equipoise.report.terminal import Paragraph, ReportColumn, TerminalTable
    from equipoise.stats.formatting import format_value

    cells = [
        (
            *((row["a"], row["b"]) if item is similarities[0] else ("", "")),
            item.measure.name,
            format_value(row["similarity"][item.measure.name], 3),
            *(_path_cells(row) if item is similarities[0] else ("", "")),
        )
        for row in rows
        for item in similarities
    ]
    left, right, measures, values, edges, ancestors = zip(*cells, strict=True)
    columns = [
        ReportColumn("term", left),
        ReportColumn("with", right),
        ReportColumn("measure", measures),
        ReportColumn("similarity", values, right=True),
        ReportColumn("edges", edges, right=True),
        ReportColumn("common ancestor", ancestors, shortens="end", rank=1),
    ]
    return [
        *(Paragraph(_term_heading(ontology, term)) for term in resolved),
        Paragraph(""),
        TerminalTable(columns),
        Paragraph(""),
        *(Paragraph(f"{item.measure.name}: {item.measure.formula}") for item in similarities),
        *([Paragraph(f"IC: information content{source}")] if _uses_information(similarities) else []),
        Paragraph(ontology.citation),
    ]


def _uses_information(similarities: list[TermSimilarity]) -> bool:
    return any("IC" in item.measure.formula for item in similarities)


def _term_heading(ontology: Ontology, resolved: ResolvedId) -> str:
    """The id with its label, and the id of the command line if it is another one."""
    term = f"{ontology.ids[resolved.term]} {ontology.labels[resolved.term]}"
    note = {"live": "", "alternative": ", an alternative id", "replaced": ", obsolete and replaced"}[resolved.how]
    return f"{term} (given as {resolved.id}{note})" if note else term


def _path_cells(row: dict[str, Any]) -> tuple[str, str]:
    """The number of edges between two terms, and their common ancestor."""
    edges, ancestor = row["edges"], row["ancestor"]
    return "none" if edges is None else str(edges), f"{ancestor['label']} ({ancestor['id']})" if ancestor else "none"
