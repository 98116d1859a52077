"""What a table says beside its figures: how many units, how many classes, which conventions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING

from equipoise.errors import ParameterError
from equipoise.io.published.numbers import parse_printed, strip_markup
from equipoise.io.text import NumberRangeError, NumberSyntaxError, parse_number

if TYPE_CHECKING:
    from equipoise.audit.table import PublishedRow
    from equipoise.io.published.tables import StatedFact, TableCell

_COUNTED = "(?:n|num|number_of|total)?_?"
_UNITS = "queries|questions|units|cases|instances|topics"
UNITS = re.compile(rf"n|num_q|(?:n|num|number_of|total|test|n_test)?_?(?:{_UNITS})|(?:n_)?test_(?:samples|examples)")
OTHER_COUNTS = re.compile(rf"{_COUNTED}(?:documents|samples|examples|labels|trials)")
"""Counts of something: of units or of what they are made of, of answers or of what a unit may have."""
CLASSES = re.compile(r"(?:n|num|number_of)?_?(?:classes|locations)|vocab(?:ulary)?(?:_size)?")
CANDIDATES = re.compile(r"(?:n|num|number_of)?_?candidates|corpus_size")
TRIALS = re.compile(
    r"(?:n|num|number_of)?_?(?:(?:configurations|configs)(?:_tested|_tried)?|trials_(?:tested|tried))|grid_size"
)
RELEVANT = re.compile(r"(?:n_|num_)?relevant_(?:per_)?(?:query|unit|item|document)")
BROKEN_TIES = ("by_id", "optimistic", "pessimistic", "none", "broken", "no")
LIBRARIES = (
    "trec_eval",
    "pytrec_eval",
    "ranx",
    "beir",
    "sentence-transformers",
    "torchmetrics",
    "sklearn",
)
"""Libraries that average over nothing: every unit is a hit or a miss. mteb does so for ranked lists alone."""
_CUT = re.compile(r".*(?:@|_at_)\d+")
MTEB = "mteb"
OVER_RELEVANT = ("trec_eval", "pytrec_eval", "ranx", MTEB, "beir", "sentence-transformers")
"""Libraries whose average precision is divided by the number of relevant items, cut or not."""


ANN = re.compile(
    r"(?i)(?<![a-z0-9])(?:qps|hnsw\w*|ivf\w*|faiss|scann|annoy|nmslib|diskann|ef_?search|ef_?construction|"
    r"n_?probes?|ann)(?![a-z0-9])"
)
"""What tables of approximate nearest-neighbour search speak of: its recall counts true neighbours."""


class Assumption(StrEnum):
    """What must hold before a law can be applied."""

    ONE_RELEVANT = "every unit has one relevant item"
    BINARY = "items are relevant or not, without grades"
    HITS = "every unit is a hit or a miss, no figure being averaged over tied scores"
    OVER_RELEVANT = "average precision is divided by the relevant items, not by those that were found"
    EXPECTED = "the row gives what luck earns in the long run and was not measured"
    MEAN_RANK = "MR is a mean rank, and no miss rate"
    FRACTIONS = "the figures are fractions, and not percent below 1"
    PLAIN_MEAN = "the average is the plain mean of what the table shows"
    FIXED_RELEVANT = (
        "recall is over the same relevant items at every cutoff, and not ANN recall, the overlap of the k "
        "nearest neighbours"
    )


OPTION_OF_ASSUMPTION = {
    Assumption.ONE_RELEVANT: "--one-relevant",
    Assumption.BINARY: "--binary",
    Assumption.HITS: "--no-ties",
} | {Assumption.OVER_RELEVANT: "--map-over-relevant"}
"""The options that declare it; what was measured is said by the number of units."""


@dataclass(frozen=True)
class TableContext:
    """The facts of one record; None is unknown.

    ``averaged`` says that the figures are means over experiments, ``tuned`` that parameters were chosen, and
    ``told`` what the text around the table says, in its words: figures may prove it wrong.
    """

    n: int | None = None
    classes: int | None = None
    candidates: int | None = None
    trials: int | None = None
    level: float | None = None
    assumed: frozenset[Assumption] = frozenset()
    denied: frozenset[Assumption] = frozenset()
    nested: bool = False
    averaged: bool = False
    tuned: bool = False
    told: Mapping[Assumption, str] = field(default_factory=dict)


def parse_context(cells: Iterable[TableCell], where: str, said: Iterable[StatedFact] = ()) -> TableContext:
    """What the cells of a record say beside its figures; a count that cannot be is refused."""
    found: dict[str, int] = {}
    words: dict[str, str] = {}
    disputed: set[str] = set()
    for label, text, *_ in cells:
        key, name = _read(label)
        words.setdefault(key, strip_markup(text).casefold())
        if name and (key == "n" or parse_printed(text) is not None) and text.strip():
            known = found.setdefault(name, parse_count(text, f"{label} of {where}"))
            disputed |= {name} if known != parse_count(text, label) else set()
    assumed, denied = _conventions(words)
    if ANN.search(f"{where} {' '.join(words)}"):
        denied |= {Assumption.FIXED_RELEVANT}
    return TableContext(
        # Two counts of units that differ leave open which of them the figures rest on.
        n=None if "n" in disputed else found.get("n"),
        classes=found.get("classes"),
        candidates=found.get("candidates"),
        trials=found.get("trials"),
        level=_level(words.get("level", "")),
        assumed=assumed,
        denied=denied,
        nested=any("nested" in key or "held_out" in key for key in words),
        averaged="scores_per_experiment" in words,
        tuned=any(TUNED.fullmatch(key) for key in words),
        told={need: each.quote for each in said for need in _TOLD.get((each.label, each.text), ())},
    )


TUNED = re.compile(r"best_(?:params|parameters|config(?:uration)?)")
_TOLD = {
    ("relation", "parent"): (Assumption.ONE_RELEVANT, Assumption.BINARY, Assumption.OVER_RELEVANT),
    ("map_over", "relevant"): (Assumption.OVER_RELEVANT,),
}
"""What follows from a fact that a sentence states."""
_COUNTS = {"n": UNITS, "classes": CLASSES, "candidates": CANDIDATES, "trials": TRIALS}


@lru_cache(maxsize=4096)
def _read(label: str) -> tuple[str, str]:
    """A label in lower case with underscores, and what it counts, if anything."""
    key = re.sub(r"[\s-]+", "_", strip_markup(label).casefold())
    return key, next((name for name, pattern in _COUNTS.items() if pattern.fullmatch(key)), "")


def parse_count(value: object, subject: str) -> int:
    """A number of things, at least one."""
    text = str(value).strip().replace(",", "")
    try:
        found = parse_number(text)
    except (NumberSyntaxError, NumberRangeError):
        found = 0
    if found != int(found) or found < 1:
        raise ParameterError(f"{subject} is {value}", hint="it counts units: a whole number from 1")
    return int(found)


def is_count_label(label: str) -> bool:
    """Whether the label is that of a count."""
    key, name = _read(label)
    return bool(name) or OTHER_COUNTS.fullmatch(key) is not None


def _conventions(words: dict[str, str]) -> tuple[frozenset[Assumption], frozenset[Assumption]]:
    assumed, denied = set(), set()
    one = words.get("one_relevant") == "true" or words.get("relation") == "parent"
    for key, text in words.items():
        if RELEVANT.fullmatch(key):
            one, several = one or text == "1", text not in ("1", "")
            denied |= {Assumption.ONE_RELEVANT} if several else set()
    ties = words.get("ties", "")
    library = words.get("library", words.get("evaluator", ""))
    mteb = library == MTEB or "mteb_version" in words
    # Its classification tasks report means over several experiments.
    if ties in BROKEN_TIES or library in LIBRARIES or (mteb and any(map(_CUT.match, words))):
        assumed.add(Assumption.HITS)
    if library in OVER_RELEVANT or mteb:
        assumed.add(Assumption.OVER_RELEVANT)
    elif library == "torchmetrics":
        denied.add(Assumption.OVER_RELEVANT)
    if ties == "expected":
        denied.add(Assumption.HITS)
    if words.get("relevance") == "binary":
        assumed.add(Assumption.BINARY)
    elif words.get("relevance") == "graded":
        denied.add(Assumption.BINARY)
    if one:
        assumed |= {Assumption.ONE_RELEVANT, Assumption.BINARY}
    return frozenset(assumed), frozenset(denied - assumed)


def _level(text: str) -> float | None:
    try:
        level = float(parse_number(text.rstrip("% ")))
    except (NumberSyntaxError, NumberRangeError):
        return None
    level = level / 100 if level > 1 else level
    return level if 0 < level < 1 else None


# What figures say against an assumption: then it is false, and nothing is said under it.


def contradicted_assumptions(row: PublishedRow) -> frozenset[Assumption]:
    """The assumptions that cannot hold for these figures."""
    found = set()
    if _several_relevant(row):
        found.add(Assumption.ONE_RELEVANT)
    gain, hits = row.one("nDCG", 1), row.one("HR", 1)
    if gain and hits and hits.span.above(gain.span):
        found.add(Assumption.BINARY)
    return frozenset(found)


def _several_relevant(row: PublishedRow) -> bool:
    """With one relevant item recall is the hit rate, precision its k-th part, and MAP is MRR."""
    for hits in row.series("HR"):
        k = int(hits.k)
        recall, precision = row.one("R", k), row.one("P", k)
        if recall and recall.span.apart(hits.span):
            return True
        if precision and k > 1 and (precision.span * k).apart(hits.span):
            return True
    return any(
        reciprocal.span.apart(average.span)
        for average in row.series("MAP", cut=False)
        if (reciprocal := row.one("MRR", average.measure.k)) is not None
    )
