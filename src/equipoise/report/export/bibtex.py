"""References for the metrics, the intervals and the test, as BibTeX.

Metrics and tests name their sources in short, "Voorhees 1999". The entries in full stand in
``references.bib``, whose keys are the first author and the year.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import TYPE_CHECKING
from unicodedata import normalize

from equipoise.errors import EquipoiseError
from equipoise.metrics.parser import parse_metrics
from equipoise.report.export.latex import escape_latex
from equipoise.stats.paired_tests import get_test

if TYPE_CHECKING:
    from equipoise.runs.store import StoredRun
    from equipoise.stats.comparison import Comparison
    from equipoise.stats.result import Result

TIE_GROUP_CITATION = "Piepho 2004"
CORRECTIONS = {"holm": "Holm 1979", "bh": "Benjamini and Hochberg 1995"}
INTERVALS = {
    "wilson": "Wilson 1927",
    "wilson-effective": "Wilson 1927",
    "wilson-bootstrap-errors": "Wilson 1927",
    "bca": "Efron 1987",
}
BIBLIOGRAPHY = "references.bib"


def as_bibtex(runs: Sequence[StoredRun], comparison: Comparison | None) -> str:
    """Every source once, in the order of the metrics, the intervals and the test."""
    return "\n".join(dict.fromkeys(map(bibtex_entry, _sources(runs, comparison))))


def bibtex_entry(source: str) -> str:
    """The entry of a source that is named in short; one that is not listed is quoted unchanged."""
    plain = normalize("NFKD", source).encode("ascii", "ignore").decode().casefold()
    words = re.findall(r"[a-z]+|\d+", plain)
    known = {*words, *("".join(pair) for pair in pairwise(words))}  # van Rijsbergen is one name
    for key, text in _references().items():
        author, year = key[:-4], key[-4:]
        if author in known and year in known:
            return text
    # An unmatched brace would end the entry, even behind a backslash.
    title = escape_latex(source.replace("{", "(").replace("}", ")"))
    return f"@misc{{{'-'.join(words) or 'unnamed'},\n  title = {{{title}}}\n}}\n"


@cache
def _references() -> dict[str, str]:
    """The entries in full, by key."""
    text = (files("equipoise.report.export") / BIBLIOGRAPHY).read_text(encoding="utf-8")
    entries = re.split(r"\n(?=@)", text)
    return {re.split(r"[{,]", entry)[1]: f"{entry.strip()}\n" for entry in entries}


def _sources(runs: Sequence[StoredRun], comparison: Comparison | None) -> Iterator[str]:
    for run in runs:
        names = run.result.names if comparison is None else comparison.metrics
        for cite in _cites(run.result, names):
            yield from _parts(cite)
    for run in runs:
        for estimate in run.result.estimates.values():
            if estimate.interval.known and estimate.interval.method in INTERVALS:
                yield INTERVALS[estimate.interval.method]
    if comparison is not None:
        yield from _parts(get_test(comparison.config.test).cite)
        tests = sum(contrast.metric == comparison.primary for contrast in comparison.contrasts)
        if tests > 1 and comparison.correction in CORRECTIONS:
            yield CORRECTIONS[comparison.correction]
        yield TIE_GROUP_CITATION


def _cites(result: Result, names: Sequence[str]) -> Iterator[str]:
    """The sources of the metrics that the program knows; others have none that it could name."""
    kind = None if result.evidence is None else type(result.evidence)
    for name in names:
        try:
            yield from (metric.cite for metric in parse_metrics(name, evidence=kind))
        except EquipoiseError:
            continue


def _parts(cite: str) -> list[str]:
    return [part.strip() for part in cite.split(";") if part.strip()]
