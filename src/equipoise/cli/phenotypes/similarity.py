"""``eq phenotypes similarity``: how alike terms of an ontology are, and where they meet."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli import options
from equipoise.cli.output import Output, pass_output
from equipoise.errors import ParameterError

if TYPE_CHECKING:
    from equipoise.ontology.ids import Resolved
    from equipoise.ontology.ontology import Ontology
    from equipoise.ontology.similarity import Similarity

HELP = """
\b
  eq phenotypes similarity HP:0001250 HP:0002069
  eq phenotypes similarity HP:0001250 HP:0002069 HP:0000252 --measure resnik --measure edge

Say how alike terms are, every one with every other, and in which common ancestor they meet. The measures are
lin (the default), resnik, resnik-normalised, jiang-conrath, edge and hybrid; eq explain MaxOntSim says where
they count. What a term says, its information content, comes from the graph alone.

Alternative and replaced ids are followed, and it is said. --ontology takes any OBO or OBO-graph JSON file.
"""

_SIDE_BY_SIDE = 3
"""So many measures fit side by side."""


@click.command(help=HELP, short_help="How alike terms are.")
@click.argument("terms", nargs=-1, metavar="TERM TERM...")
@click.option(
    "--measure",
    "measures",
    type=options.OneOf("similarity", options.names_in("equipoise.ontology.measures", "MEASURES")),
    multiple=True,
    default=("lin",),
    show_default=True,
    help="How to measure; may be given again.",
)
@click.option(
    "--information",
    type=options.OneOf("information content", options.names_in("equipoise.ontology.information", "KINDS")),
    default="descendants",
    show_default=True,
    help="How much a term says.",
)
@click.option(
    "--parity", is_flag=True, help="The hybrid with 1.0 for distinct terms too, as it was published."
)
@click.option(
    "--ontology", "source", default="hpo", show_default=True, metavar="PATH", help="Or an OBO file."
)
@options.output_options
@pass_output
def similarity(
    out: Output,
    terms: tuple[str, ...],
    measures: tuple[str, ...],
    information: str,
    parity: bool,
    source: str,
) -> None:
    """See ``HELP``."""
    from equipoise.ontology import similarity as arithmetic
    from equipoise.ontology.load import load_ontology

    if len(terms) < 2:
        raise ParameterError(
            f"two terms are compared, and {len(terms)} {'was' if len(terms) == 1 else 'were'} given",
            hint="eq phenotypes similarity HP:0001250 HP:0002069",
        )
    if parity and "hybrid" not in measures:
        raise ParameterError("--parity is a matter of the hybrid", hint="add --measure hybrid")
    ontology = load_ontology(source)
    given = [ontology.resolve(term) for term in terms]
    bound = [
        arithmetic.similarity(ontology, name, information=information, parity=parity and name == "hybrid")
        for name in dict.fromkeys(measures)
    ]
    rows = [_row(bound, left, right) for left, right in combinations(given, 2)]
    if out.json:
        out.data(_facts(ontology, information, given, rows))
    else:
        out.show(*_parts(ontology, bound, given, rows))


def _row(bound: list[Similarity], left: Resolved, right: Resolved) -> dict[str, Any]:
    """One pair: its ids, how alike they are, how far apart, and where they meet by the first measure."""
    import numpy as np

    from equipoise.ontology.similarity import common_ancestor, path_lengths

    ontology = bound[0].ontology
    a, b = np.array([left.term]), np.array([right.term])
    edges = path_lengths(ontology, a, b)[0]
    meet = common_ancestor(bound[0], left.term, right.term)
    return {
        "a": ontology.ids[left.term],
        "b": ontology.ids[right.term],
        "similarity": {each.measure.name: float(each.pairs(a, b)[0]) for each in bound},
        "edges": int(edges) if np.isfinite(edges) else None,
        "ancestor": None if meet is None else {"id": ontology.ids[meet], "label": ontology.labels[meet]},
    }


def _facts(
    ontology: Ontology, information: str, given: list[Resolved], rows: list[dict[str, Any]]
) -> dict[str, Any]:
    return {
        "ontology": {
            "name": ontology.name,
            "release": ontology.release,
            "citation": ontology.citation,
        },
        "information": information,
        "terms": [
            {
                "given": each.id,
                "id": ontology.ids[each.term],
                "label": ontology.labels[each.term],
                "how": each.how,
            }
            for each in given
        ],
        "pairs": rows,
    }


def _parts(
    ontology: Ontology, bound: list[Similarity], given: list[Resolved], rows: list[dict[str, Any]]
) -> list[Any]:
    from equipoise.report.table import FittedTable
    from equipoise.report.terminal import Paragraph

    terms = [Paragraph(_introduced(ontology, each)) for each in given]
    columns = _by_measure(bound, rows) if len(bound) > _SIDE_BY_SIDE else _by_pair(bound, rows)
    formulas = [Paragraph(f"{each.measure.name}: {each.measure.formula}") for each in bound]
    return [
        *terms,
        Paragraph(""),
        FittedTable(columns),
        Paragraph(""),
        *formulas,
        Paragraph(ontology.citation),
    ]


def _by_pair(bound: list[Similarity], rows: list[dict[str, Any]]) -> list[Any]:
    """A row a pair, a column a measure."""
    from equipoise.report.table import Column
    from equipoise.stats.numbers import figure

    columns = [Column("term", [row["a"] for row in rows]), Column("with", [row["b"] for row in rows])]
    for each in bound:
        cells = [figure(row["similarity"][each.measure.name], 3) for row in rows]
        columns.append(Column(each.measure.name, cells, right=True))
    return [*columns, *_where(rows)]


def _by_measure(bound: list[Similarity], rows: list[dict[str, Any]]) -> list[Any]:
    """A row a pair and measure: many measures side by side would not fit."""
    from equipoise.report.table import Column
    from equipoise.stats.numbers import figure

    again = [{"a": "", "b": "", "edges": "", "ancestor": ""}] * (len(bound) - 1)
    pairs = [each for row in rows for each in (row, *again)]
    cells = [figure(row["similarity"][each.measure.name], 3) for row in rows for each in bound]
    return [
        Column("term", [row["a"] for row in pairs]),
        Column("with", [row["b"] for row in pairs]),
        Column("measure", [each.measure.name for _ in rows for each in bound]),
        Column("similarity", cells, right=True),
        *_where(pairs),
    ]


def _where(rows: list[dict[str, Any]]) -> list[Any]:
    """How far apart the terms are, and where they meet."""
    from equipoise.report.table import Column

    edges = ["none" if row["edges"] is None else str(row["edges"]) for row in rows]
    return [
        Column("edges", edges, right=True),
        Column("meet in", [_meeting(row["ancestor"]) for row in rows], shortens="end", rank=1),
    ]


def _introduced(ontology: Ontology, given: Resolved) -> str:
    """The id with its label, and what the given id was where it is another one."""
    term = f"{ontology.ids[given.term]} {ontology.labels[given.term]}"
    how = {"live": "", "alternative": ", an alternative id", "replaced": ", obsolete and replaced"}[given.how]
    return f"{term} (given as {given.id}{how})" if how else term


def _meeting(ancestor: dict[str, str] | str | None) -> str:
    if isinstance(ancestor, str):
        return ancestor
    return "nowhere" if ancestor is None else f"{ancestor['label']} ({ancestor['id']})"
