"""The sections of a concept set: pairs, clusters, entities, relations and concepts, as lists or as tables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan, nan
from typing import Any

from equipoise.domains.concepts.concept_set import (
    AnnotatedSentence,
    ConceptCluster,
    ConceptPair,
    ConceptSetIssue,
    EntityMention,
    IssueKind,
    Relation,
)
from equipoise.errors import did_you_mean
from equipoise.io.text import TextFile, parse_number

# The entries of one file with their locations, and their issues.

_NOUNS = ("concept_", "sentence", "sentence_", "text", "text_")
RESERVED_KEYS = frozenset(
    {"expected_similarity", "theme", "cluster_id", "concepts", "text", "entities", "label"}
    | {"subject", "predicate", "object"}
    | {f"{noun}{number}" for noun in _NOUNS for number in "12"}
)
"""The known keys of entries."""


MAX_LISTED = 5
"""Duplicates that are named."""


@dataclass(frozen=True)
class SectionRows:
    """Values in the order of their file, and the problems that readers report as they go.

    ``lines`` are the lines of a text file, or the entries of a JSON file that hold several values.
    """

    name: str
    values: Sequence[Any] = field(repr=False)
    lines: Sequence[int] | None = None
    file: TextFile | None = None
    problems: list[ConceptSetIssue] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.values)

    def report(self, rule: IssueKind, rows: Sequence[int], fact: str, hint: str = "") -> None:
        """Note that something is wrong with these entries."""
        numbers = list(dict.fromkeys(row + 1 if self.lines is None else self.lines[row] for row in rows))
        unit = ("entry", "entries") if self.file is None else ("line", "lines")
        listed = ", ".join([*map(str, numbers[:-2]), " and ".join(map(str, numbers[-2:]))])
        position = f" {unit[len(numbers) > 1]} {listed}" if numbers else ""
        excerpt = self.file.excerpt(*numbers) if numbers and self.file else ""
        self.problems.append(ConceptSetIssue(rule, self.name, f"{self.name}{position} {fact}", hint, excerpt))

    def report_duplicates(self, rows: Sequence[int]) -> None:
        """Note once that these entries are equal to earlier ones and were left out."""
        if rows:
            what = "is equal to an earlier one" if len(rows) == 1 else "are equal to earlier ones"
            listed = rows if len(rows) <= MAX_LISTED else rows[:MAX_LISTED]
            more = f" (and {len(rows) - len(listed)} more)" if len(listed) < len(rows) else ""
            self.report(IssueKind.DUPLICATE, listed, f"{what} and left out{more}", "remove the duplicates")

    def records(self, example: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """The entries that are mappings with their rows; others are reported."""
        for row, value in enumerate(self.values):
            if isinstance(value, Mapping):
                yield row, value
            else:
                self.report(IssueKind.ENTRY, [row], f"is {quote_value(value)}, not an object", f"write {example}")

    def text(self, row: int, value: Mapping[str, Any], key: str, noun: str = "") -> str | None:
        """The text under a key without the white space around it, or a report of what is there instead."""
        name = noun or key
        if key not in value:
            self.missing(row, value, key, noun)
            return None
        content = value[key]
        if not isinstance(content, str):
            self.report(IssueKind.ENTRY, [row], f"has {quote_value(content)} as its {name}", "write a text")
            return None
        if not content.strip():
            self.report(IssueKind.ENTRY, [row], f"has an empty {name}", "write it, or leave the entry out")
            return None
        return content.strip()

    def number(self, row: int, value: Mapping[str, Any], key: str) -> float | None:
        """The finite number under a key, or a report."""
        if key not in value:
            self.missing(row, value, key)
            return None
        try:
            return float(parse_number(value[key]))
        except ValueError:
            self.report(IssueKind.ENTRY, [row], f"has {quote_value(value[key])} as its {key}", "write a number")
            return None

    def missing(self, row: int, value: Mapping[str, Any], key: str, noun: str = "") -> None:
        """Report a key that is not there, with the nearest that is."""
        columns = [str(column) for column in value]
        # A reserved key is not a misspelling of another.
        near = did_you_mean(key, [column for column in columns if column not in RESERVED_KEYS])
        hint = near or (f"it has {', '.join(columns)}" if columns else "it has no key")
        self.report(IssueKind.ENTRY, [row], f"has no {noun or key}", hint)

    def too_few(self, least: int, noun: str, n_entries: int, why: str, *, nouns: str = "") -> None:
        """Report that there are too few entries for any metric; ``nouns`` is an irregular plural."""
        if n_entries < least:
            count = f"{n_entries or 'no'} {noun if n_entries == 1 else nouns or f'{noun}s'}"
            self.report(IssueKind.TOO_FEW, [], f"has {count}, and at least {least} are needed", why)


def quote_value(value: Any) -> str:
    """A value for an error message, truncated."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


# Pairs: texts with an expected similarity, an optional category and optional single ratings.

TEXTS = (
    ("concept_1", "concept_2"),
    ("sentence1", "sentence2"),
    ("sentence_1", "sentence_2"),
    ("text1", "text2"),
    ("text_1", "text_2"),
    ("first", "second"),
)
"""Accepted keys of the two texts."""
SCORES = ("expected_similarity", "similarity", "score", "similarity_score", "label")
"""Accepted keys of the similarity; ``score_0_5`` and ``score (0-5)`` give its scale as well."""
CATEGORIES = ("category", "stratum", "difficulty", "genre")
"""Accepted keys of the category, which results are also shown by."""
SELF_SIMILARITY_LIMIT = 0.9
"""Every model gives a text similarity 1 to itself; a lower expectation is an error."""
PAIRS_EXAMPLE = '{"concept_1": "...", "concept_2": "...", "expected_similarity": 0.7}'

_SCALED = re.compile(
    rf"(?:{'|'.join(SCORES)})[ _]*[\[(]?0(?:[ _]*(?:-|\.\.|to)[ _]*|_)([0-9]+(?:\.[0-9]+)?)[\])]?", re.I
)
_RATING = re.compile(r"(?:rating|rater|annotator)[ _-]?[0-9]+", re.I)
"""A column with the ratings of one annotator."""


def parse_pairs(entries: SectionRows, scale: float | None = None) -> tuple[ConceptPair, ...]:
    """The pairs; similarities on a scale from 0 to ``scale`` are divided by it.

    A scale that the name of a column gives counts for that column. Without any, 3.8 is out of range: it may
    be a slip of the point as well as another scale.
    """
    pairs: list[ConceptPair] = []
    first_of: dict[frozenset[str], tuple[int, ConceptPair]] = {}
    duplicates: list[int] = []
    for row, value in entries.records(PAIRS_EXAMPLE):
        pair = _pair(entries, row, value, scale)
        if pair is None:
            continue
        if pair.first.casefold() == pair.second.casefold() and pair.expected < SELF_SIMILARITY_LIMIT:
            fact = f"pairs {pair.first!r} with itself and expects the similarity {pair.expected:g}"
            entries.report(IssueKind.ENTRY, [row], fact, "leave it out: a text is always equal to itself")
            continue
        texts = frozenset((pair.first.casefold(), pair.second.casefold()))
        first, earlier = first_of.setdefault(texts, (row, pair))
        if first == row:
            pairs.append(pair)
        elif earlier.expected == pair.expected:
            duplicates.append(row)
        else:
            fact = (
                f"are the same pair, {pair.first!r} and {pair.second!r}, and expect the similarities "
                f"{earlier.expected:g} and {pair.expected:g}"
            )
            entries.report(IssueKind.REPEATED, [first, row], fact, "keep one of them, or give both as ratings")
    entries.report_duplicates(duplicates)
    entries.too_few(
        2, "pair", len(entries) - len(duplicates), "a correlation needs two pairs, and means little below twenty"
    )
    return tuple(pairs)


def score_key(value: Mapping[str, Any]) -> tuple[str | None, float | None]:
    """The key of the similarity, and the scale that its name gives."""
    for key in SCORES:
        if key in value:
            return key, None
    for key in value:
        match = _SCALED.fullmatch(str(key).strip())
        if match:
            return key, float(match[1])
    return None, None


def _pair(entries: SectionRows, row: int, value: Mapping[str, Any], scale: float | None) -> ConceptPair | None:
    keys = next((pair for pair in TEXTS if pair[0] in value or pair[1] in value), TEXTS[0])
    first, second = (entries.text(row, value, key) for key in keys)
    ratings = _ratings(entries, row, value, scale)
    if ratings is None:
        return None
    known = [rating for rating in ratings if not isnan(rating)]
    key, key_scale = score_key(value)
    if key is None and not known:
        entries.missing(row, value, SCORES[0])
        return None
    expected = _similarity(entries, row, value, key, key_scale or scale) if key else sum(known) / len(known)
    if first is None or second is None or expected is None:
        return None
    category = next((str(value[key]).strip() for key in CATEGORIES if value.get(key) is not None), "")
    return ConceptPair(first, second, expected, category, ratings)


def _similarity(
    entries: SectionRows, row: int, value: Mapping[str, Any], key: str, scale: float | None
) -> float | None:
    score = entries.number(row, value, key)
    if score is None:
        return None
    # Without "+ 0.0", a similarity of -0.0 would have a different fingerprint.
    expected = score / (scale or 1.0) + 0.0
    if 0.0 <= expected <= 1.0:
        return expected
    hint = "correct it" if scale else "correct it; for values up to 5 use --similarity-scale 5 or a column score_0_5"
    fact = f"expects the similarity {score:g}, outside 0 to {scale or 1:g}"
    entries.report(IssueKind.RANGE, [row], fact, hint)
    return None


def _ratings(entries: SectionRows, row: int, value: Mapping[str, Any], scale: float | None) -> tuple[float, ...] | None:
    """The rating of each annotator, NaN for an empty cell; None after a report of an invalid one."""
    listed = value.get("ratings")
    if listed is not None and not isinstance(listed, list | tuple):
        fact = f"has {quote_value(listed)} as its ratings"
        entries.report(IssueKind.ENTRY, [row], fact, "write a list with one number per annotator: [0.7, 0.8]")
        return None
    named = {f"rating {nth}": rating for nth, rating in enumerate(listed or (), start=1)}
    named |= {str(key): rating for key, rating in value.items() if _RATING.fullmatch(str(key).strip())}
    ratings = []
    for key, rating in named.items():
        is_empty = rating is None or (isinstance(rating, str) and not rating.strip())
        similarity = nan if is_empty else _similarity(entries, row, named, key, scale)
        if similarity is None:
            return None
        ratings.append(similarity)
    return tuple(ratings)


# Clusters: lists of concepts, or a table of texts with labels.

LABELLED = ("text", "concept", "sentence")
LABELS = ("label", "theme", "class", "category", "cluster")
"""The columns of a classification table: a text, and what it belongs to."""
EXAMPLE = '{"cluster_id": 0, "theme": "...", "concepts": ["...", "..."]}'


def parse_clusters(entries: SectionRows) -> tuple[ConceptCluster, ...]:
    """The clusters with unique names, and each concept in one of them."""
    rows = [value for value in entries.values if isinstance(value, Mapping)]
    table = bool(rows) and not any("concepts" in row for row in rows) and label_keys(rows[0]) is not None
    labelled = _rows_of_table(entries) if table else _rows_of_lists(entries)
    _report_repeats(entries, labelled)
    concepts_of: dict[str, list[str]] = {}
    for _, name, concept in labelled:
        concepts_of.setdefault(name, []).append(concept)
    count = len(concepts_of) if table else len(entries)
    entries.too_few(2, "cluster", count, "the score compares concepts of different clusters")
    return tuple(ConceptCluster(name, tuple(concepts)) for name, concepts in concepts_of.items())


def label_keys(row: Mapping[str, Any]) -> tuple[str, str] | None:
    """The columns of a text and its label, where a row has both."""
    text = next((key for key in LABELLED if key in row), None)
    label = next((key for key in LABELS if key in row), None)
    return (text, label) if text and label else None


def _rows_of_table(entries: SectionRows) -> list[tuple[int, str, str]]:
    """The row, cluster and concept of each row of a classification table."""
    labelled = []
    keys = label_keys(next(value for value in entries.values if isinstance(value, Mapping)))
    assert keys is not None
    for row, value in entries.records('{"text": "...", "label": "..."}'):
        label_value = value.get(keys[1])
        if isinstance(label_value, int) and not isinstance(label_value, bool):  # numbers are names, too
            value = {**value, keys[1]: str(label_value)}
        text, label = (entries.text(row, value, key) for key in keys)
        if text is not None and label is not None:
            labelled.append((row, label, text))
    return labelled


def _rows_of_lists(entries: SectionRows) -> list[tuple[int, str, str]]:
    """The row, cluster and concept of each concept in the lists."""
    labelled = []
    first_of: dict[str, int] = {}
    for row, value in entries.records(EXAMPLE):
        name = _cluster_name(entries, row, value)
        if name is None:
            continue
        first = first_of.setdefault(name, row)
        if first != row:
            entries.report(IssueKind.REPEATED, [first, row], f"are both called {name}", "rename one of them")
            continue
        labelled += [(row, name, concept) for concept in _concepts(entries, row, value)]
    return labelled


def _cluster_name(entries: SectionRows, row: int, value: Mapping[str, Any]) -> str | None:
    if "theme" in value:
        return entries.text(row, value, "theme")
    if value.get("cluster_id") is None:
        entries.missing(row, value, "theme", "theme and no cluster_id")
        return None
    return f"cluster {value['cluster_id']}"


def _concepts(entries: SectionRows, row: int, value: Mapping[str, Any]) -> Sequence[str]:
    if "concepts" not in value:
        entries.missing(row, value, "concepts")
        return ()
    concepts = value["concepts"]
    if not isinstance(concepts, list | tuple):
        entries.report(IssueKind.ENTRY, [row], f"has {quote_value(concepts)} as its concepts", f"write {EXAMPLE}")
        return ()
    if not concepts:
        entries.report(IssueKind.ENTRY, [row], "has no concepts", "write them, or leave the cluster out")
    texts = [entries.text(row, {"concept": concept}, "concept") for concept in concepts]
    return [text for text in texts if text is not None]


def _report_repeats(entries: SectionRows, labelled: Sequence[tuple[int, str, str]]) -> None:
    first_of: dict[str, tuple[int, str]] = {}
    for row, name, concept in labelled:
        earlier = first_of.get(concept.casefold())
        if earlier is None:
            first_of[concept.casefold()] = (row, name)
            continue
        first, other = earlier
        clusters_text = f"in {name} twice" if other == name else f"in {other} and in {name}"
        rows, verb = ([row], "has") if first == row else ([first, row], "have")
        hint = "a concept has one true cluster; keep one of them"
        entries.report(IssueKind.REPEATED, rows, f"{verb} {concept!r} {clusters_text}", hint)


# Relations (subject, predicate, object) and standard concepts.

RELATIONS_EXAMPLE = '{"subject": "...", "predicate": "...", "object": "..."}'
KEYS = ("subject", "predicate", "object")


def parse_relations(entries: SectionRows) -> tuple[Relation, ...]:
    """The relations, without duplicates, and none of an entity with itself."""
    relations: dict[Relation, None] = {}
    duplicates: list[int] = []
    for row, value in entries.records(RELATIONS_EXAMPLE):
        texts = [entries.text(row, value, key) for key in KEYS]
        if None in texts:
            continue
        relation = Relation(*(str(text) for text in texts))
        if relation.subject.casefold() == relation.object.casefold():
            fact = f"relates {relation.subject!r} to itself"
            entries.report(IssueKind.ENTRY, [row], fact, "leave it out: an entity is always equal to itself")
            continue
        if relation in relations:
            duplicates.append(row)
            continue
        relations[relation] = None
    entries.report_duplicates(duplicates)
    entries.too_few(
        2, "relation", len(entries) - len(duplicates), "the object of a relation is ranked among several entities"
    )
    return tuple(relations)


def parse_concepts(entries: SectionRows) -> tuple[str, ...]:
    """Texts, or entries with a ``concept`` or a ``text``; none of them twice."""
    concepts: dict[str, str] = {}
    duplicates: list[int] = []
    for row, value in enumerate(entries.values):
        record = value if isinstance(value, Mapping) else {"concept": value}
        concept = entries.text(row, record, "text" if "text" in record else "concept")
        if concept is None:
            continue
        if concept.casefold() in concepts:
            duplicates.append(row)
        concepts.setdefault(concept.casefold(), concept)
    entries.report_duplicates(duplicates)
    entries.too_few(2, "concept", len(entries) - len(duplicates), "the score compares concepts with each other")
    return tuple(concepts.values())


# Sentences with entity annotations: type and optional offsets.

SENTENCES_EXAMPLE = '{"text": "...", "entities": [{"text": "...", "label": "...", "start": 0, "end": 5}]}'


def parse_sentences(entries: SectionRows) -> tuple[AnnotatedSentence, ...]:
    """The sentences with their entities; an entity with wrong offsets is reported."""
    sentences: list[AnnotatedSentence] = []
    first_of: dict[str, tuple[int, AnnotatedSentence]] = {}
    duplicates: list[int] = []
    for row, value in entries.records(SENTENCES_EXAMPLE):
        text = entries.text(row, value, "text")
        if text is None:
            continue
        # Offsets count from the text as it was given, white space and all.
        sentence = AnnotatedSentence(str(value["text"]), _entities(entries, row, value))
        first, earlier = first_of.setdefault(text, (row, sentence))
        if first == row:
            sentences.append(sentence)
        elif earlier == sentence:
            duplicates.append(row)
        else:
            fact = "have the same text and different entities"
            entries.report(IssueKind.REPEATED, [first, row], fact, "keep one of them")
    entries.report_duplicates(duplicates)
    if not any(problem.fatal for problem in entries.problems):
        types = {entity.label for sentence in sentences for entity in sentence.entities}
        why = "the score compares entities of different types"
        entries.too_few(2, "type of entity", len(types), why, nouns="types of entities")
    return tuple(sentences)


def _entities(entries: SectionRows, row: int, value: Mapping[str, Any]) -> tuple[EntityMention, ...]:
    listed = value.get("entities")
    if "entities" not in value:
        entries.missing(row, value, "entities")
        return ()
    if not isinstance(listed, list | tuple):
        entries.report(
            IssueKind.ENTRY, [row], f"has {quote_value(listed)} as its entities", f"write {SENTENCES_EXAMPLE}"
        )
        return ()
    mentions: list[EntityMention] = []
    for nth, listed_entity in enumerate(listed, start=1):
        entity = _entity(entries, row, nth, listed_entity)
        if entity is None:
            continue
        if entity in mentions and entity.start is not None:
            entries.report(IssueKind.REPEATED, [row], f"marks {entity.text!r} twice", "keep one of them")
            continue
        mentions.append(entity)
        _check_place(entries, row, entity, str(value["text"]))
    return tuple(mentions)


def _entity(entries: SectionRows, row: int, nth: int, value: Any) -> EntityMention | None:
    if not isinstance(value, Mapping):
        fact = f"has {quote_value(value)} as entity {nth}"
        entries.report(IssueKind.ENTRY, [row], fact, f"write {SENTENCES_EXAMPLE}")
        return None
    text = entries.text(row, value, "text", f"text for entity {nth}")
    label = entries.text(row, value, "label", f"label for entity {nth}")
    ends = [value.get(key) for key in ("start", "end")]
    for key, end in zip(("start", "end"), ends, strict=True):
        if end is not None and (isinstance(end, bool) or not isinstance(end, int)):
            fact = f"has {quote_value(end)} as the {key} of entity {nth}"
            entries.report(IssueKind.ENTRY, [row], fact, "write the number of characters before it")
            return None
    if (ends[0] is None) != (ends[1] is None):
        fact = f"gives entity {nth} one of start and end"
        entries.report(IssueKind.ENTRY, [row], fact, "give both, or none")
        return None
    return None if text is None or label is None else EntityMention(text, label, *ends)


def _check_place(entries: SectionRows, row: int, entity: EntityMention, text: str) -> None:
    found_at = text.find(entity.text)
    hint = "write it as the text does"
    if found_at >= 0:
        hint = f"it is at {found_at} to {found_at + len(entity.text)}"
    if entity.start is None or entity.end is None:
        if found_at < 0:
            fact = f"marks {entity.text!r}, which is not in the text"
            entries.report(IssueKind.OFFSETS, [row], fact, hint)
        return
    marked_text = text[entity.start : entity.end] if 0 <= entity.start <= entity.end else ""
    if marked_text != entity.text:
        fact = f"marks {entity.text!r} at {entity.start} to {entity.end}, where the text is {marked_text!r}"
        entries.report(IssueKind.OFFSETS, [row], fact, hint)
