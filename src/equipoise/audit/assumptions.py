"""The context of a table: counts of units, classes and candidates, and the assumptions that rules depend on."""

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
"""Counts that may be of units, of their parts, or of answers."""
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
"""Libraries without averaging over ties: every unit is a hit or a miss. mteb does so for ranked lists only."""
_CUT = re.compile(r".*(?:@|_at_)\d+")
MTEB = "mteb"
OVER_RELEVANT = ("trec_eval", "pytrec_eval", "ranx", MTEB, "beir", "sentence-transformers")
"""Libraries whose average precision is divided by the number of relevant items, cut or not."""


ANN = re.compile(
    r"(?i)(?<![a-z0-9])(?:qps|hnsw\w*|ivf\w*|faiss|scann|annoy|nmslib|diskann|ef_?search|ef_?construction|"
    r"n_?probes?|ann)(?![a-z0-9])"
)
"""Terms of approximate nearest-neighbour search, where recall counts true neighbours."""


class Assumption(StrEnum):
    """A condition under which a rule holds."""

    ONE_RELEVANT = "every unit has one relevant item"
    BINARY = "items are relevant or not, without grades"
    HITS = "every unit is a hit or a miss, without averaging over tied scores"
    OVER_RELEVANT = "average precision is divided by the relevant items, not by those that were found"
    EXPECTED = "the row gives expected chance levels and was not measured"
    MEAN_RANK = "MR is a mean rank and not a miss rate"
    FRACTIONS = "the values are fractions and not percent below 1"
    PLAIN_MEAN = "the average is the unweighted mean of the values shown in the table"
    FIXED_RELEVANT = (
        "recall is over the same relevant items at every cutoff, and not ANN recall, the overlap of the k "
        "nearest neighbours"
    )


OPTION_OF_ASSUMPTION = {
    Assumption.ONE_RELEVANT: "--one-relevant",
    Assumption.BINARY: "--binary",
    Assumption.HITS: "--no-ties",
} | {Assumption.OVER_RELEVANT: "--map-over-relevant"}
"""The option that declares an assumption. The number of units declares that a row was measured."""


@dataclass(frozen=True)
class TableContext:
    """The context of one record; None is unknown.

    ``averaged`` means that the values are means over experiments, ``tuned`` that parameters were selected, and
    ``stated`` quotes the text around the table per assumption; values may contradict it.
    """

    n: int | None = None
    classes: int | None = None
    candidates: int | None = None
    trials: int | None = None
    confidence_level: float | None = None
    assumed: frozenset[Assumption] = frozenset()
    rejected: frozenset[Assumption] = frozenset()
    nested: bool = False
    averaged: bool = False
    tuned: bool = False
    stated: Mapping[Assumption, str] = field(default_factory=dict)


def parse_context(cells: Iterable[TableCell], location: str, statements: Iterable[StatedFact] = ()) -> TableContext:
    """The context that the cells of a record give. An impossible count is an error."""
    counts: dict[str, int] = {}
    texts: dict[str, str] = {}
    disputed: set[str] = set()
    for label, text, *_ in cells:
        key, name = _read(label)
        texts.setdefault(key, strip_markup(text).casefold())
        if name and (key == "n" or parse_printed(text) is not None) and text.strip():
            recorded = counts.setdefault(name, parse_count(text, f"{label} of {location}"))
            disputed |= {name} if recorded != parse_count(text, label) else set()
    assumed, rejected = _conventions(texts)
    if ANN.search(f"{location} {' '.join(texts)}"):
        rejected |= {Assumption.FIXED_RELEVANT}
    return TableContext(
        # With two different counts of units, it is open which of them the values have.
        n=None if "n" in disputed else counts.get("n"),
        classes=counts.get("classes"),
        candidates=counts.get("candidates"),
        trials=counts.get("trials"),
        confidence_level=_level(texts.get("level", "")),
        assumed=assumed,
        rejected=rejected,
        nested=any("nested" in key or "held_out" in key for key in texts),
        averaged="scores_per_experiment" in texts,
        tuned=any(TUNED.fullmatch(key) for key in texts),
        stated={
            need: statement.quote
            for statement in statements
            for need in _IMPLIED.get((statement.label, statement.text), ())
        },
    )


TUNED = re.compile(r"best_(?:params|parameters|config(?:uration)?)")
_IMPLIED = {
    ("relation", "parent"): (Assumption.ONE_RELEVANT, Assumption.BINARY, Assumption.OVER_RELEVANT),
    ("map_over", "relevant"): (Assumption.OVER_RELEVANT,),
}
"""The assumptions that a stated fact implies."""
_COUNTS = {"n": UNITS, "classes": CLASSES, "candidates": CANDIDATES, "trials": TRIALS}


@lru_cache(maxsize=4096)
def _read(label: str) -> tuple[str, str]:
    """A label in lower case with underscores, and what it counts, if anything."""
    key = re.sub(r"[\s-]+", "_", strip_markup(label).casefold())
    return key, next((name for name, pattern in _COUNTS.items() if pattern.fullmatch(key)), "")


def parse_count(value: object, subject: str) -> int:
    """A positive integer."""
    text = str(value).strip().replace(",", "")
    try:
        number = parse_number(text)
    except (NumberSyntaxError, NumberRangeError):
        number = 0
    if number != int(number) or number < 1:
        raise ParameterError(f"{subject} is {value}", hint="a count is an integer from 1")
    return int(number)


def is_count_label(label: str) -> bool:
    """Whether the label names a count."""
    key, name = _read(label)
    return bool(name) or OTHER_COUNTS.fullmatch(key) is not None


def _conventions(texts: dict[str, str]) -> tuple[frozenset[Assumption], frozenset[Assumption]]:
    assumed, rejected = set(), set()
    one = texts.get("one_relevant") == "true" or texts.get("relation") == "parent"
    for key, text in texts.items():
        if RELEVANT.fullmatch(key):
            one, several = one or text == "1", text not in ("1", "")
            rejected |= {Assumption.ONE_RELEVANT} if several else set()
    ties = texts.get("ties", "")
    library = texts.get("library", texts.get("evaluator", ""))
    mteb = library == MTEB or "mteb_version" in texts
    # Classification tasks of mteb report means over several experiments.
    if ties in BROKEN_TIES or library in LIBRARIES or (mteb and any(map(_CUT.match, texts))):
        assumed.add(Assumption.HITS)
    if library in OVER_RELEVANT or mteb:
        assumed.add(Assumption.OVER_RELEVANT)
    elif library == "torchmetrics":
        rejected.add(Assumption.OVER_RELEVANT)
    if ties == "expected":
        rejected.add(Assumption.HITS)
    if texts.get("relevance") == "binary":
        assumed.add(Assumption.BINARY)
    elif texts.get("relevance") == "graded":
        rejected.add(Assumption.BINARY)
    if one:
        assumed |= {Assumption.ONE_RELEVANT, Assumption.BINARY}
    return frozenset(assumed), frozenset(rejected - assumed)


def _level(text: str) -> float | None:
    try:
        level = float(parse_number(text.rstrip("% ")))
    except (NumberSyntaxError, NumberRangeError):
        return None
    level = level / 100 if level > 1 else level
    return level if 0 < level < 1 else None


def contradicted_assumptions(row: PublishedRow) -> frozenset[Assumption]:
    """The assumptions that the values of a row contradict."""
    contradicted = set()
    if _several_relevant(row):
        contradicted.add(Assumption.ONE_RELEVANT)
    gain, hits = row.value_of("nDCG", 1), row.value_of("HR", 1)
    if gain and hits and hits.range.is_above(gain.range):
        contradicted.add(Assumption.BINARY)
    return frozenset(contradicted)


def _several_relevant(row: PublishedRow) -> bool:
    """With one relevant item recall is the hit rate, precision its k-th part, and MAP is MRR."""
    for hits in row.values_by_cutoff("HR"):
        k = int(hits.k)
        recall, precision = row.value_of("R", k), row.value_of("P", k)
        if recall and recall.range.is_disjoint(hits.range):
            return True
        if precision and k > 1 and (precision.range * k).is_disjoint(hits.range):
            return True
    return any(
        reciprocal.range.is_disjoint(average.range)
        for average in row.values_by_cutoff("MAP", require_cutoff=False)
        if (reciprocal := row.value_of("MRR", average.metric.k)) is not None
    )
