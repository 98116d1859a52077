"""Terminal report of a score difference, of a search for conventions, and of emulated scores."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, isnan, log10
from typing import TYPE_CHECKING

from equipoise.checks.base import pluralize
from equipoise.evidence.ranking import Ranking
from equipoise.metrics.parser import parse_metrics
from equipoise.report.terminal import Paragraph, Part, ReportColumn, TerminalTable, heading
from equipoise.reproduce.presets import Conventions, differences_from_default
from equipoise.stats.formatting import MOST_DECIMALS, format_count, format_difference, format_ranks, format_value

if TYPE_CHECKING:
    from equipoise.reproduce.difference import ConventionPair, LibraryScore, Place, ScoreDifference, WorkedExample
    from equipoise.reproduce.published import ConventionMatch, ConventionSearch
    from equipoise.stats.result import Result

FEWEST_DECIMALS = 4
SHOWN_UNITS = 5
SHOWN_MATCHES = 12
LEFT_OUT = "left out"


def difference_report(difference: ScoreDifference, *, quiet: bool = False, verbose: bool = False) -> list[Part]:
    """The two scores and the causes of their difference; unless quiet, also the units and an example."""
    decimals = _decimals(difference.value)
    parts: list[Part] = [heading(_title(difference, decimals)), Paragraph("")]
    for side in (difference.one, difference.other):
        parts.append(Paragraph(_side(side, decimals), indent=2))
        if not quiet:
            parts.append(Paragraph(side.entry, indent=4, lead="call: "))
    parts += [Paragraph(""), *_changes(difference, decimals)]
    if quiet:
        return parts
    return [*parts, *_details(difference, decimals, verbose=verbose)]


def _details(difference: ScoreDifference, decimals: int, *, verbose: bool) -> list[Part]:
    """What the two do differently, on which units, and one of these worked out."""
    parts = _meanings(difference)
    parts += _unused_conventions(difference, verbose=verbose)
    parts += _units(difference, decimals, verbose=verbose)
    if difference.example is not None:
        parts += _example(difference.example, difference, decimals)
    notes = [note for side in (difference.one, difference.other) for note in side.notes]
    return [*parts, *_notes(notes)]


def search_report(search: ConventionSearch, *, quiet: bool = False, verbose: bool = False) -> list[Part]:
    """The conventions that reproduce a published score, or a note that none of the tried ones does."""
    printed = search.printed
    decimals = max(FEWEST_DECIMALS, _decimals(printed.high - printed.low))
    band = f"{format_value(printed.low, MOST_DECIMALS)} and {format_value(printed.high, MOST_DECIMALS)}"
    parts: list[Part] = [heading(f"{search.metric} published as {printed.text}"), Paragraph("")]
    read = "Read as percent: before" if printed.percent else "Before"
    parts.append(Paragraph(f"{read} rounding, the value is between {band}.", indent=2))
    parts.append(Paragraph(""))
    if search.matches:
        parts += _matches(search, decimals, verbose=verbose)
    else:
        parts += [
            Paragraph("None of the conventions that were tried gives this score."),
            Paragraph(
                f"The nearest score is {format_value(search.nearest.value, decimals)}: {_candidate(search.nearest)}."
            ),
        ]
    if quiet:
        return parts
    parts += [Paragraph(""), Paragraph(_search_summary(search))]
    if search.skipped:
        parts.append(Paragraph(f"Not tried: {'; '.join(search.skipped.values())}."))
    if search.difference is not None:
        parts += _difference_parts(search, search.difference, verbose=verbose)
    return parts


def _difference_parts(search: ConventionSearch, difference: ScoreDifference, *, verbose: bool) -> list[Part]:
    """The steps from the requested preset to the score."""
    decimals = _decimals(difference.value)
    target = "the first of these" if search.matches else "the nearest score"
    title = f"From {difference.one.name} to {target}: {_title(difference, decimals).partition(': ')[2]}"
    return [
        Paragraph(""),
        heading(title),
        Paragraph(""),
        *_changes(difference, decimals),
        *_details(difference, decimals, verbose=verbose),
    ]


def emulation_notes(results: Sequence[Result], *, quiet: bool = False) -> list[Part]:
    """Notes on scoring as another library, below the table of scores."""
    settings = results[0].settings
    title = f"Scored as {settings['like']} {settings['like_version']}".rstrip()
    parts: list[Part] = [Paragraph(""), heading(title)]
    if quiet:
        return parts
    parts += [Paragraph(settings["like_entry"], lead="call: ")] if settings.get("like_entry") else []
    rules = {name: Conventions().with_values(changes) for name, changes in settings["conventions"].items()}
    differences = {
        name: differences_from_default(conventions, parse_metrics(name, evidence=Ranking)[0])
        for name, conventions in rules.items()
    }
    if any(differences.values()):
        parts.append(Paragraph("Unlike equipoise:"))
    for sentence in dict.fromkeys(sentence for statement in differences.values() for sentence in statement):
        names = [name for name, lines in differences.items() if sentence in lines]
        lead = "- " if len(names) == len(differences) else f"- {', '.join(names)}: "
        parts.append(Paragraph(sentence, indent=2, lead=lead))
    return [*parts, *_notes([note for result in results for note in result.settings["notes"]])]


def _title(difference: ScoreDifference, decimals: int) -> str:
    one, other = difference.one, difference.other
    if abs(difference.value) < 10.0**-12:
        return f"{difference.metric}: {one.name} and {other.name} agree on {format_value(one.value, decimals)}"
    return (
        f"{difference.metric}: {format_value(one.value, decimals)} in {one.name}, "
        f"{format_value(other.value, decimals)} in {other.name}, "
        f"a difference of {format_difference(difference.value, decimals)}"
    )


def _side(side: LibraryScore, decimals: int) -> str:
    units = pluralize(side.n, "query", "queries")
    return f"{side.title}: {side.call} = {format_value(side.value, decimals)} over {units}"


def _changes(difference: ScoreDifference, decimals: int) -> list[Part]:
    """The table of parts with the sum in the last row."""
    rows = difference.changes
    if not rows:
        return [Paragraph("Their conventions differ only in ways that do not affect this metric on this data.")]
    parts = [*(row.share for row in rows), sum(row.share for row in rows)]
    units = [*(row.units for row in rows), difference.changed_units]
    table = TerminalTable(
        [
            ReportColumn("convention", [*(row.convention.title for row in rows), "together"], shortens="end"),
            ReportColumn("part", [format_difference(part, decimals) for part in parts], right=True),
            ReportColumn("alone", [*(format_difference(row.alone, decimals) for row in rows), ""], right=True, rank=2),
            ReportColumn("queries", [format_count(unit) for unit in units], right=True, rank=1),
        ]
    )
    if len(rows) == 1:
        return [table]
    method = (
        f"Part is {difference.method}; the parts add up to the difference. Alone is the effect of one change on "
        f"{difference.one.name}'s score with all other conventions unchanged."
    )
    return [table, Paragraph(""), Paragraph(method)]


def _meanings(difference: ScoreDifference) -> list[Part]:
    """What each side does, convention by convention."""
    if not difference.changes:
        return []
    parts: list[Part] = [Paragraph(""), heading("What they do differently")]
    for change in difference.changes:
        parts += _pair_lines(change.convention, difference)
    return parts


def _pair_lines(pair: ConventionPair, difference: ScoreDifference) -> list[Part]:
    width = max(len(difference.one.name), len(difference.other.name)) + 2
    return [
        Paragraph(pair.title, indent=2),
        Paragraph(pair.one_says, indent=4, lead=f"{difference.one.name}:".ljust(width)),
        Paragraph(pair.other_says, indent=4, lead=f"{difference.other.name}:".ljust(width)),
    ]


def _unused_conventions(difference: ScoreDifference, *, verbose: bool) -> list[Part]:
    if not difference.idle:
        return []
    parts: list[Part] = [Paragraph(""), heading("Other differences (no effect here)")]
    for convention in difference.idle:
        parts.append(Paragraph(f"{convention.convention.title}: {convention.reason}", indent=2, lead="- "))
        if verbose:
            parts += _pair_lines(convention.convention, difference)[1:]
    return parts


def _units(difference: ScoreDifference, decimals: int, *, verbose: bool) -> list[Part]:
    units = difference.units if verbose else difference.units[:SHOWN_UNITS]
    if not units:
        return []
    n_more = difference.changed_units - len(units)
    parts: list[Part] = [
        Paragraph(""),
        heading("Where it happens"),
        TerminalTable(
            [
                ReportColumn("query", [unit.unit for unit in units], shortens="middle"),
                ReportColumn(difference.one.name, [_value(unit.one, decimals) for unit in units], right=True),
                ReportColumn(difference.other.name, [_value(unit.other, decimals) for unit in units], right=True),
                ReportColumn("because of", [", ".join(unit.because) for unit in units], shortens="end", rank=1),
            ]
        ),
    ]
    return [*parts, Paragraph(f"and {pluralize(n_more, 'more query', 'more queries')}")] if n_more > 0 else parts


def _value(value: float, decimals: int) -> str:
    return LEFT_OUT if isnan(value) else format_value(value, decimals)


def _example(example: WorkedExample, difference: ScoreDifference, decimals: int) -> list[Part]:
    """The worked unit: score, gain and rank of each document that matters."""
    one, other = difference.one.name, difference.other.name
    title = (
        f"For example {example.unit}: {_value(example.one, decimals)} in {one}, "
        f"{_value(example.other, decimals)} in {other}"
    )
    rows = example.rows
    parts: list[Part] = [Paragraph(""), heading(title)]
    width = max(len(one), len(other)) + 2
    sums = [
        Paragraph(text, indent=2, lead=f"{name}:".ljust(width))
        for name, text in zip((one, other), example.sums, strict=True)
    ]
    if not rows:
        return [*parts, *sums]
    parts.append(
        TerminalTable(
            [
                ReportColumn("document", [row.item for row in rows], shortens="middle"),
                ReportColumn("score", [_score(row.score) for row in rows], right=True, rank=1),
                ReportColumn("gain", [f"{row.gain:g}" for row in rows], right=True),
                ReportColumn(f"rank ({one})", [_format_position(row.one) for row in rows], right=True),
                ReportColumn(f"rank ({other})", [_format_position(row.other) for row in rows], right=True),
            ]
        )
    )
    more = [Paragraph(f"and {pluralize(example.more, 'more document')}")] if example.more else []
    return [*parts, *more, *sums]


def _score(score: float | None) -> str:
    return "not retrieved" if score is None else repr(score)


def _format_position(position: Place) -> str:
    return "-" if position is None else format_ranks(*position)


def _matches(search: ConventionSearch, decimals: int, *, verbose: bool) -> list[Part]:
    matches = search.matches if verbose else search.matches[:SHOWN_MATCHES]
    number = len(search.matches)
    give = "One set of conventions gives" if number == 1 else f"{number:,} sets of conventions give"
    parts: list[Part] = [Paragraph(f"{give} this score:")]
    for match in matches:
        text = (
            f"{_candidate(match)} ({format_value(match.value, decimals)} over {pluralize(match.n, 'query', 'queries')})"
        )
        parts.append(Paragraph(text, indent=2, lead="- "))
    n_more = len(search.matches) - len(matches)
    return [*parts, Paragraph(f"and {n_more:,} more (-v shows all)", indent=4)] if n_more else parts


def _candidate(candidate: ConventionMatch) -> str:
    if not candidate.changes:
        return candidate.preset
    return f"{candidate.preset}, but {' and '.join(candidate.says)}"


def _search_summary(search: ConventionSearch) -> str:
    tried = (
        f"Tried: {pluralize(search.tried, 'set')} of conventions (all presets, and one or two changes from "
        f"{search.base}), which give {pluralize(search.figures, 'different score')}."
    )
    if not search.matches:
        return tried
    return (
        f"{tried} A set that gives the score is not necessarily the one that was used. The more sets give it, the "
        "weaker the evidence for each."
    )


def _notes(notes: Sequence[str]) -> list[Part]:
    if not notes:
        return []
    return [Paragraph(""), *(Paragraph(note, lead="note: ") for note in dict.fromkeys(notes))]


def _decimals(size: float) -> int:
    """The decimals that show two significant digits of a difference."""
    if isnan(size) or size == 0:
        return FEWEST_DECIMALS
    return min(max(1 - floor(log10(abs(size))), FEWEST_DECIMALS), MOST_DECIMALS)
