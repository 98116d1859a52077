"""Systems by metrics: the table of a paper, and its forms in Markdown and LaTeX."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import TYPE_CHECKING
from unicodedata import category, normalize

from equipoise.errors import ParameterError
from equipoise.redaction import inert
from equipoise.report.charts.chart import slug
from equipoise.report.tables import (
    bounded_systems,
    chance_bound_sign,
    chance_meaning,
    interval_methods,
    paired_test_caption,
)
from equipoise.stats.formatting import (
    capitalised,
    estimate_decimals,
    format_interval,
    format_percent,
    format_range,
    format_value,
)
from equipoise.stats.verdict import INCOMPLETE_MARK, Vocabulary, plural
from equipoise.types import Direction

if TYPE_CHECKING:
    from equipoise.runs.run_folder import StoredRun
    from equipoise.stats.comparison import Comparison
    from equipoise.stats.result import Estimate, Result


@dataclass(frozen=True, slots=True)
class ReportCell:
    """One figure as it is shown; ``letters`` are those of its tie bands on this metric."""

    value: str
    interval: str
    letters: str
    best: bool


DEFAULT_WORDS = Vocabulary()


@dataclass(frozen=True)
class PaperTable:
    """Estimates by system and metric, the systems from best to worst, and the notes that belong to them."""

    systems: tuple[str, ...]
    metrics: tuple[str, ...]
    estimates: Mapping[str, Mapping[str, Estimate]]
    bands: Mapping[str, Mapping[str, tuple[str, ...]]]
    units: int
    clusters: int | None
    cautions: Mapping[str, str]
    bounded: frozenset[str]
    comparison: Comparison | None = None
    like: str = ""
    words: Vocabulary = DEFAULT_WORDS
    dataset: str = ""
    """The data set or task, if there are tables of several."""

    @classmethod
    def of(cls, runs: Sequence[StoredRun], comparison: Comparison | None) -> PaperTable:
        """The sheet of one run, or of several and their comparison."""
        cautions = {run.result.system: run.caution for run in runs if run.caution}
        if comparison is not None:
            return cls(
                comparison.order,
                comparison.metrics,
                comparison.estimates,
                {metric: comparison.bands_on(metric) for metric in comparison.metrics},
                comparison.n,
                comparison.clusters,
                cautions,
                frozenset(bounded_systems(comparison.findings)),
                comparison,
                emulated_library(runs),
                comparison.words,
            )
        return cls.of_result(single_run(runs).result, cautions)

    @classmethod
    def of_result(cls, result: Result, cautions: Mapping[str, str] | None = None) -> PaperTable:
        """The sheet of one result."""
        bounded = frozenset(bounded_systems(result.findings))
        estimates = {result.system: result.estimates}
        units = len(result.unit_ids)
        return cls(
            *((result.system,), result.names, estimates, {}, units, result.n_clusters, cautions or {}, bounded),
            like=str(result.settings.get("like") or ""),
            words=Vocabulary.nouns([result]),
        )

    def column(self, metric: str) -> list[Estimate]:
        """What every system scores on a metric, in the order of the systems."""
        return [self.estimates[system][metric] for system in self.systems]

    def cell(self, system: str, metric: str) -> ReportCell:
        """The figure of a system on a metric."""
        places = self._places(metric)
        estimate = self.estimates[system][metric]
        value = format_value(estimate.value, places)
        return ReportCell(
            value,
            format_interval(estimate.interval, places) if estimate.interval.known else "",
            ",".join(self.letters(system, metric)),
            len(self.systems) > 1 and value == self._best(metric),
        )

    def letters(self, system: str, metric: str) -> tuple[str, ...]:
        """The tie bands of a system on a metric; none where it is not compared with another."""
        return self.bands.get(metric, {}).get(system, ())

    def chance(self, metric: str) -> str:
        """The chance level: a value, a range if it differs between the systems, or a bound."""
        known = [estimate.chance for estimate in self.column(metric) if not isnan(estimate.chance)]
        if not known:
            return "n/a"
        better, places = self.better(metric), self._places(metric)
        if self.bounded:
            return f"{chance_bound_sign(better)}{format_value(_best_of(known, better), places)}"
        return format_range(min(known), max(known), places)

    def better(self, metric: str) -> Direction:
        """Which way is better on a metric."""
        return self.column(metric)[0].better

    def _places(self, metric: str) -> int:
        return estimate_decimals(self.column(metric))

    def _best(self, metric: str) -> str:
        """The best value as printed; all equal printed values are marked as best."""
        known = [estimate.value for estimate in self.column(metric) if not isnan(estimate.value)]
        return format_value(_best_of(known, self.better(metric)), self._places(metric)) if known else ""


def emulated_library(runs: Sequence[StoredRun]) -> str:
    """The library as which the runs were scored; empty where they were scored as we do."""
    names = dict.fromkeys(str(run.result.settings.get("like") or "") for run in runs)
    return ", ".join(filter(None, names))


def single_run(runs: Sequence[StoredRun]) -> StoredRun:
    """The one run that is given; several are shown by way of their comparison."""
    if len(runs) != 1:
        raise ParameterError(
            f"{len(runs)} runs were given without their comparison",
            hint="compare them first: compare([run.result for run in runs])",
        )
    return runs[0]


def _best_of(values: Sequence[float], better: Direction) -> float:
    return max(values) if better == Direction.UP else min(values)


# The caption of a table in a paper: test, correction, n, confidence level.


def table_caption(sheet: PaperTable) -> list[str]:
    """Plain sentences, the most important first."""
    sentences = [_subject(sheet), _intervals(sheet)]
    if sheet.comparison is not None:
        sentences += [_letters(sheet.comparison), "The best value in each column is bold."]
    sentences += [
        f"Arrows show the better direction. {chance_meaning(sheet.words.unit)}",
        "A chance level with an inequality sign is only a bound: the number of candidates is not known."
        if sheet.bounded
        else "",
        _like(sheet),
        _undefined(sheet),
        _unknown(sheet),
        *_cautions(sheet),
    ]
    return [sentence for sentence in sentences if sentence]


def table_notes(sheet: PaperTable) -> list[str]:
    """The notes of an export without a table."""
    letters = [] if sheet.comparison is None else [_letters(sheet.comparison)]
    return [*filter(None, (_subject(sheet), _like(sheet))), *letters, *_cautions(sheet)]


def _cautions(sheet: PaperTable) -> list[str]:
    return [f"{INCOMPLETE_MARK} {sentence}." for sentence in sheet.cautions.values()]


def _subject(sheet: PaperTable) -> str:
    systems = sheet.systems[0] if len(sheet.systems) == 1 else f"{len(sheet.systems)} {plural(sheet.words.system)}"
    order = f", ordered by {sheet.comparison.primary}" if sheet.comparison else ""
    units = sheet.words.size(sheet.units, sheet.clusters)
    source = f" of {sheet.dataset}" if sheet.dataset else ""
    sentence = f"{_listed(sheet.metrics)} of {systems} on {units}{source}{order}."
    # A name such as nDCG@10 keeps its case.
    return capitalised(sentence) if re.match(r"[a-z-]+ ", sentence) else sentence


def _intervals(sheet: PaperTable) -> str:
    known = [estimate.interval for metric in sheet.metrics for estimate in sheet.column(metric)]
    known = [interval for interval in known if interval.known]
    if not known:
        return ""
    methods = interval_methods(estimate for metric in sheet.metrics for estimate in sheet.column(metric))
    levels = " and ".join(dict.fromkeys(format_percent(interval.confidence_level) for interval in known))
    return f"In brackets: {levels} intervals ({methods})."


def _letters(comparison: Comparison) -> str:
    """What the letters mean, and which test and correction they come from."""
    level, systems = format_percent(comparison.alpha), plural(comparison.words.system).capitalize()
    return (
        f"{systems} that share a letter on a metric do not differ significantly at the {level} level. "
        f"{paired_test_caption(comparison)}; {comparison.families_of(comparison.metrics)}."
    )


def _like(sheet: PaperTable) -> str:
    return f"Scored like {sheet.like}, by its rules for each metric." if sheet.like else ""


def _undefined(sheet: PaperTable) -> str:
    counts = {
        metric: [sheet.words.units(n) if n else "" for n in (estimate.undefined for estimate in sheet.column(metric))]
        for metric in sheet.metrics
    }
    first = sheet.column(sheet.metrics[0])[0].undefined
    if first and len({count for column in counts.values() for count in column}) == 1:
        verb = "is" if first == 1 else "are"
        return f"{sheet.words.units(first)} without a value {verb} excluded{_for_all(sheet)}."
    gaps = _grouped_gaps(sheet, counts)
    return f"Undefined values are excluded: {_listed(gaps)}." if gaps else ""


def _unknown(sheet: PaperTable) -> str:
    reasons = {
        metric: [
            (estimate.interval.reason or "undefined") if not estimate.interval.known or isnan(estimate.value) else ""
            for estimate in sheet.column(metric)
        ]
        for metric in sheet.metrics
    }
    gaps = _grouped_gaps(sheet, reasons)
    return f"Without an interval: {_listed(gaps)}." if gaps else ""


def _for_all(sheet: PaperTable) -> str:
    return f" for all {plural(sheet.words.system)}" if len(sheet.systems) > 1 else ""


def _grouped_gaps(sheet: PaperTable, texts: Mapping[str, Sequence[str]]) -> list[str]:
    """Metrics and systems with the same text, once each; ``texts`` are by metric, one per system, empty for no gap."""
    groups: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for metric, column in texts.items():
        for text in filter(None, dict.fromkeys(column)):
            systems = tuple(system for system, other in zip(sheet.systems, column, strict=True) if other == text)
            groups.setdefault((text, systems), []).append(metric)
    gaps = []
    for (text, systems), metrics in groups.items():
        named = _listed(metrics) if len(metrics) < len(sheet.metrics) or len(metrics) < 3 else "all metrics"
        everyone = len(systems) == len(sheet.systems) > 1
        gaps.append(f"{named} of {f'all {plural(sheet.words.system)}' if everyone else _listed(systems)} ({text})")
    return gaps


def _listed(names: tuple[str, ...] | list[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


# A Markdown table for GitHub: one row per system, best first, and the chance level below.

MARKDOWN_ARROWS = {Direction.UP: "↑", Direction.DOWN: "↓"}
_MARKUP = re.compile(r"[\\`*_{}\[\]<>#|~!&$^]|:(?=\S)")  # a colon may make a link or an emoji
_LIST = re.compile(r"^(\d*)([-+.)])(?=\s|$)")


def as_markdown(runs: Sequence[StoredRun], comparison: Comparison | None, dataset: str = "") -> str:
    """The table, its caption below, and the verdict if there is one."""
    return markdown_table(replace(PaperTable.of(runs, comparison), dataset=dataset))


def markdown_table(sheet: PaperTable) -> str:
    """The sheet in Markdown."""
    heads = [
        "system",
        *(f"{escape_markdown(metric)} {MARKDOWN_ARROWS[sheet.better(metric)]}" for metric in sheet.metrics),
    ]
    lines = [markdown_row(heads), markdown_row([":--", *("--:" for _ in sheet.metrics)])]
    for system in sheet.systems:
        mark = escape_markdown(INCOMPLETE_MARK) if system in sheet.cautions else ""
        cells = [_markdown_cell(sheet.cell(system, metric)) for metric in sheet.metrics]
        lines.append(markdown_row([escape_markdown(system) + mark, *cells]))
    lines.append(markdown_row(["*chance*", *(escape_markdown(sheet.chance(metric)) for metric in sheet.metrics)]))
    verdict = [] if sheet.comparison is None else ["", escape_markdown(sheet.comparison.verdict())]
    return "\n".join([*lines, *verdict, "", escape_markdown(" ".join(table_caption(sheet))), ""])


def escape_markdown(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    return _LIST.sub(r"\1\\\2", _MARKUP.sub(r"\\\g<0>", inert(" ".join(text.split()))))


def markdown_row(cells: Sequence[str]) -> str:
    """A row of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def _markdown_cell(cell: ReportCell) -> str:
    value = f"**{cell.value}**" if cell.best else cell.value
    letters = f"<sup>{cell.letters}</sup>" if cell.letters else ""
    return " ".join(filter(None, [value + letters, cell.interval]))


# LaTeX: booktabs, the best score in bold, tie groups as superscripts, and a complete caption. It compiles with
# pdfLaTeX, XeLaTeX and LuaLaTeX, whatever names people gave their systems. A character that pdfLaTeX does not know
# goes through \eqglyph, which falls back to something it does.

LABEL = "tab:equipoise"
LONG = 20
"""More systems than this do not fit on one page, and the table is one that breaks."""

GLYPH = r"\providecommand{\eqglyph}[2]{\ifdefined\Umathchar #1\else #2\fi}"
LATEX_ARROWS = {Direction.UP: r"$\uparrow$", Direction.DOWN: r"$\downarrow$"}

# A row may not begin with [ or *, which \\ would take for its own; -- and `` would become one sign.
_ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
    "`": r"\textasciigrave{}",
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
    "-": "-{}",
}
_PLAIN_MINUS = re.compile(r"-\{\}(?!-)")
_NO_GLYPH = frozenset("«»­ÐÞðþĄąĐđĘęĦħĮįĸĿŀŉŊŋŦŧŲųſ")
_PUNCTUATION = frozenset("–—‘’“”…")


def as_latex(runs: Sequence[StoredRun], comparison: Comparison | None, dataset: str = "") -> str:
    """One row of scores and one of intervals per system, best first; then the chance level."""
    return latex_table(replace(PaperTable.of(runs, comparison), dataset=dataset))


def _label(sheet: PaperTable) -> str:
    """The label of the table; with a data set it is unique."""
    return f"{LABEL}-{slug(sheet.dataset)}" if sheet.dataset else LABEL


def latex_table(sheet: PaperTable) -> str:
    """The sheet in LaTeX."""
    body = _latex_long(sheet) if len(sheet.systems) > LONG else _latex_float(sheet)
    glyphs = [GLYPH] if r"\eqglyph" in body else []
    packages = "booktabs, longtable" if len(sheet.systems) > LONG else "booktabs"
    return "\n".join([rf"% needs \usepackage{{{packages}}}", *glyphs, body, ""])


def escape_latex(text: str) -> str:
    """Text that LaTeX sets as it is, on one line."""
    return _PLAIN_MINUS.sub("-", "".join(map(_latex_character, inert(" ".join(text.split())))))


def _latex_character(sign: str) -> str:
    if sign in _ESCAPES:
        return _ESCAPES[sign]
    if sign.isascii():
        return sign if sign.isprintable() else " "
    if ("\u00a0" <= sign <= "\u017f" and sign not in _NO_GLYPH) or sign in _PUNCTUATION:
        return sign
    plain = normalize("NFKD", sign).encode("ascii", "ignore").decode()
    fallback = plain if plain.isalnum() else f"U+{ord(sign):04X}"
    # An unpaired surrogate is in no file, and what is not assigned is in no font.
    return fallback if category(sign) in ("Cs", "Cn", "Cc") else rf"\eqglyph{{{sign}}}{{{fallback}}}"


def _latex_float(sheet: PaperTable) -> str:
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{_latex_caption(sheet)}}}",
        rf"\label{{{_label(sheet)}}}",
        *latex_tabular(_latex_columns(sheet), _latex_heads(sheet), _latex_rows(sheet)),
        r"\end{table}",
    ]
    return "\n".join(lines)


def latex_tabular(columns: str, heads: str, rows: Sequence[str]) -> list[str]:
    """The lines of a table of booktabs."""
    start = rf"\begin{{tabular}}{{{columns}}}"
    return [start, r"\toprule", heads, r"\midrule", *rows, r"\bottomrule", r"\end{tabular}"]


def _latex_long(sheet: PaperTable) -> str:
    lines = [
        rf"\begin{{longtable}}{{{_latex_columns(sheet)}}}",
        rf"\caption{{{_latex_caption(sheet)}}}\label{{{_label(sheet)}}}\\",
        r"\toprule",
        _latex_heads(sheet),
        r"\midrule",
        r"\endhead",
        r"\bottomrule",
        r"\endfoot",
        *_latex_rows(sheet),
        r"\end{longtable}",
    ]
    return "\n".join(lines)


def _latex_columns(sheet: PaperTable) -> str:
    return "l" + "c" * len(sheet.metrics)


def _latex_caption(sheet: PaperTable) -> str:
    return escape_latex(" ".join(table_caption(sheet)))


def _latex_heads(sheet: PaperTable) -> str:
    heads = [f"{escape_latex(metric)} {LATEX_ARROWS[sheet.better(metric)]}" for metric in sheet.metrics]
    return latex_row(["system", *heads])


def _latex_rows(sheet: PaperTable) -> list[str]:
    rows = []
    for system in sheet.systems:
        cells = [sheet.cell(system, metric) for metric in sheet.metrics]
        mark = escape_latex(INCOMPLETE_MARK) if system in sheet.cautions else ""
        rows.append(latex_row([escape_latex(system) + mark, *map(_latex_figure, cells)]))
        rows.append(latex_row(["", *(_latex_interval(cell.interval) for cell in cells)]))
    chance = [_latex_number(sheet.chance(metric)) for metric in sheet.metrics]
    return [*rows, r"\midrule", latex_row([r"\emph{chance}", *chance])]


def latex_row(cells: Sequence[str]) -> str:
    """A row of a LaTeX table."""
    return rf"{' & '.join(cells)} \\"


def _latex_figure(cell: ReportCell) -> str:
    value = rf"\textbf{{{_latex_number(cell.value)}}}" if cell.best else _latex_number(cell.value)
    return rf"{value}\textsuperscript{{{cell.letters}}}" if cell.letters else value


def _latex_interval(text: str) -> str:
    return rf"{{\scriptsize {_latex_number(text)}}}" if text else ""


def _latex_number(text: str) -> str:
    """Figures, ranges and bounds with a real minus and real inequality signs."""
    return text.replace("-", "$-$").replace("<=", r"$\leq$").replace(">=", r"$\geq$")
