"""Metadata of results: a model card of Hugging Face in YAML, and references in BibTeX.

The model index of a card has no field for an interval, so interval, n, undefined count and chance are the arguments
of each metric. Metrics and tests name their sources in short, "Voorhees 1999"; the entries are in ``references.bib``,
whose keys are the first author and the year.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import pairwise
from math import isfinite
from pathlib import PurePath
from typing import TYPE_CHECKING, Any
from unicodedata import normalize

from equipoise.errors import EquipoiseError
from equipoise.metrics.parser import parse_metrics
from equipoise.redaction import inert
from equipoise.report.export.paper_table import PaperTable, escape_latex, table_notes
from equipoise.stats.paired_tests import get_test

if TYPE_CHECKING:
    from equipoise.runs.run_folder import StoredRun
    from equipoise.stats.comparison import Comparison
    from equipoise.stats.result import Estimate, Result

TASKS = {
    "ranking": ("information-retrieval", "Information retrieval"),
    "labels": ("classification", "Classification"),
    "sets": ("information-extraction", "Information extraction"),
    "pairs": ("semantic-similarity", "Semantic similarity"),
    "space": ("feature-extraction", "Feature extraction"),
}
OTHER_TASK = ("evaluation", "Evaluation")
UNKNOWN_DATA = "not recorded"

# What JSON leaves as it is and YAML would refuse, or take for the end of a line.
_UNSAFE = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff\ud800-\udfff]")

_PLAIN_KEY = re.compile("(?!(yes|no|on|off|true|false|null)$)[a-z]{2,}([-_][a-z]+)*")


def as_card(runs: Sequence[StoredRun], comparison: Comparison | None) -> str:
    """One entry a system, best first; a figure that is undefined is left out."""
    sheet = PaperTable.of(runs, comparison)
    by_name = {run.result.system: run for run in runs}
    index = [{"name": system, "results": [_result(sheet, system, by_name.get(system))]} for system in sheet.systems]
    comments = [f"# {_UNSAFE.sub('?', inert(' '.join(sentence.split())))}" for sentence in table_notes(sheet)]
    return "".join(f"{line}\n" for line in [*comments, *yaml_lines({"model-index": index})])


def yaml_lines(value: Any, indent: str = "") -> list[str]:
    """A mapping, or a list of mappings, in block style; strings as JSON has them, which YAML reads too."""
    lines = []
    if isinstance(value, Mapping):
        for key, item in value.items():
            name = str(key) if _PLAIN_KEY.fullmatch(str(key)) else _scalar(str(key))
            lines += _entry(f"{indent}{name}:", item, indent)
    else:
        for item in value:
            nested = yaml_lines(item, f"{indent}  ")
            lines += [f"{indent}- {nested[0].lstrip()}", *nested[1:]]
    return lines


def _entry(head: str, value: Any, indent: str) -> list[str]:
    if isinstance(value, Mapping):
        return [head, *yaml_lines(value, f"{indent}  ")] if value else [f"{head} {{}}"]
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [head, *yaml_lines(value, indent)] if value else [f"{head} []"]
    return [f"{head} {_scalar(value)}"]


def _scalar(value: Any) -> str:
    if isinstance(value, float):
        if not isfinite(value):
            return "null"
        text = repr(value)
        # YAML 1.1 takes 1e-07 for a string: its floats have a point.
        return text.replace("e", ".0e", 1) if "e" in text and "." not in text else text
    text = json.dumps(value, ensure_ascii=False)
    return _UNSAFE.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def _result(sheet: PaperTable, system: str, run: StoredRun | None) -> dict[str, Any]:
    kind, name = TASKS.get(_kind(run), OTHER_TASK)
    return {
        "task": {"type": kind, "name": name},
        "dataset": _dataset(run.manifest.datasets if run else {}),
        "metrics": [
            _metric(sheet.estimates[system][name], sheet.letters(system, name))
            for name in sheet.metrics
            if isfinite(sheet.estimates[system][name].value)
        ],
    }


def _kind(run: StoredRun | None) -> str:
    evidence = run.manifest.evidence if run else None
    return (evidence or {}).get("kind", "")


def _dataset(datasets: Mapping[str, str | None]) -> dict[str, Any]:
    """The names of the files that held the truth; the fingerprint of a single one is its revision."""
    name = ", ".join(PurePath(path).name for path in datasets) or UNKNOWN_DATA
    prints = list(datasets.values())
    revision = {"revision": prints[0]} if len(prints) == 1 and prints[0] else {}
    return {"type": _slug(name), "name": name, **revision}


def _metric(estimate: Estimate, letters: Sequence[str]) -> dict[str, Any]:
    facts = estimate.to_dict()
    interval = {name: value for name, value in facts["interval"].items() if name != "unit"}
    selected = {name: facts[name] for name in ("n", "undefined", "chance", "unit", "better")}
    return {
        "type": _slug(estimate.metric.replace("@", "_at_")),
        "value": float(estimate.value),
        "name": estimate.metric,
        "args": {"interval": interval, **selected, **({"band": " ".join(letters)} if letters else {})},
    }


def _slug(name: str) -> str:
    """A name as identifiers have it.

    >>> _slug("MAP(norm=R)_at_10")
    'map_norm_r_at_10'
    """
    return re.sub(r"[^a-z0-9]+", "_", name.casefold()).strip("_") or "unnamed"


# References for the metrics, the intervals and the test, as BibTeX.

TIE_GROUP_CITATION = "Piepho 2004"
CORRECTIONS = {"holm": "Holm 1979", "bh": "Benjamini and Hochberg 1995"}
INTERVALS = {
    "wilson": "Wilson 1927",
    "wilson-effective": "Wilson 1927",
    "wilson-bootstrap-errors": "Wilson 1927",
    "bca": "Efron 1987",
    "gaffke": "Gaffke 2005",
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
        for cite in _citations(run.result, names):
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


def _citations(result: Result, names: Sequence[str]) -> Iterator[str]:
    """The sources of the metrics that the program knows; others have none that it could name."""
    kind = None if result.evidence is None else type(result.evidence)
    for name in names:
        try:
            yield from (metric.cite for metric in parse_metrics(name, evidence=kind))
        except EquipoiseError:
            continue


def _parts(cite: str) -> list[str]:
    return [part.strip() for part in cite.split(";") if part.strip()]
