"""Query translation: German words of a query, and words of other languages with translated labels, into English.

Terms are ranked by the query and by its translation: a score is (score of the query + w * score of the translation)
/ (1 + w), with w = 0.5. Words of the ontology are never translated alone, so English queries keep their scores.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from equipoise.domains.phenotypes.index.lexicon import (
    UMLAUTS,
    Lexicon,
    Translations,
    cognate_keys,
    german_glossary,
    split_words,
    word_forms,
)
from equipoise.models.analyzer import STOPWORDS
from equipoise.models.retriever import content_fingerprint

if TYPE_CHECKING:
    from equipoise.domains.phenotypes.ontology.ontology import Ontology
    from equipoise.geometry.base import PointArray

TRANSLATION_WEIGHT = 0.5
"""The weight of the translation's score relative to that of the query."""

_ENGLISH_ONLY = STOPWORDS["english"] - STOPWORDS["german"]
_GERMAN_ONLY = STOPWORDS["german"] - STOPWORDS["english"]
_LINKING_ELEMENTS = ("", "s", "es", "n", "en", "e", "er", "o")
_MIN_PART = 3
_MIN_COGNATE_PART = 5
_PART_PENALTY = 1.5
"""Characters that each part of a compound must explain; long parts win over short ones."""


class QueryTranslator:
    """Translates queries into the words of an ontology's texts.

    A word of the query is looked up in the glossary, then in the vocabulary of the ontology, then as a cognate or as
    a compound of such parts, and at last in the words of translated labels. A query that equals a translated label
    becomes the label of its term. Words without a translation remain.

    >>> translator = QueryTranslator(["Muscle weakness", "Microcephaly", "Renal cyst"])
    >>> [translator(query) for query in ("Muskelschwäche", "Mikrozephalie", "renal cyst")]
    ['muscle weakness', 'microcephaly', None]
    """

    def __init__(self, texts: Sequence[str], translations: Translations | None = None) -> None:
        self._texts = texts
        self._translations = translations
        self._labels: Lexicon = translations.labels if translations else {}
        self._learned: Lexicon = translations.words() if translations else {}
        self._translated_words: dict[str, str | None] = {}

    @property
    def fingerprint(self) -> str:
        """Equal only if the translations of all queries into the same vocabulary are equal."""
        labels = self._translations.fingerprint if self._translations else ""
        return content_fingerprint("translator 1", repr(sorted(german_glossary().items())), labels)

    def __call__(self, query: str) -> str | None:
        """The translation; None if no word of the query is a foreign word with a translation."""
        words = split_words(query)
        label = self._labels.get(" ".join(words))
        if label is not None:
            return label
        # English sentences have words that look German, such as well (Welle), so function words decide.
        if sum(word in _ENGLISH_ONLY for word in words) > sum(word in _GERMAN_ONLY for word in words):
            return None
        translated = [(word, self._translate_word(word)) for word in words if word not in STOPWORDS["german"]]
        if all(english is None or self._is_known(word) for word, english in translated):
            return None
        return " ".join(english or word for word, english in translated)

    @cached_property
    def _vocabulary(self) -> Counter[str]:
        return Counter(split_words("\n".join(self._texts)))

    def _is_known(self, word: str) -> bool:
        """Whether the ontology has the word, or the singular of an English plural."""
        singular = f"{word[:-3]}y" if word.endswith("ies") else word.removesuffix("s")
        return word in self._vocabulary or singular in self._vocabulary

    @cached_property
    def _cognates(self) -> dict[str, str]:
        """The most frequent word of each cognate key."""
        cognates: dict[str, str] = {}
        for word, _ in sorted(self._vocabulary.items(), key=lambda item: (-item[1], item[0])):
            if len(word) >= _MIN_COGNATE_PART and word.isalpha():
                for key in cognate_keys(word):
                    cognates.setdefault(key, word)
        return cognates

    def _translate_word(self, word: str) -> str | None:
        if word not in self._translated_words:
            self._translated_words[word] = self._look_up(word)
        return self._translated_words[word]

    def _look_up(self, word: str) -> str | None:
        direct = self._in_glossary(word_forms(word))
        if direct is not None or word in self._vocabulary:
            return direct or word
        split = self._split_compound(word)
        if split is not None:
            return split
        return next((self._learned[form] for form in word_forms(word) if form in self._learned), None)

    def _in_glossary(self, forms: Iterable[str]) -> str | None:
        """The translation of the first known form, if the ontology has one of its words in singular or plural."""
        glossary, vocabulary = german_glossary(), self._vocabulary
        english = next((glossary[form] for form in forms if form in glossary), "")
        return english if any(word in vocabulary or f"{word}s" in vocabulary for word in english.split()) else None

    def _split_compound(self, word: str) -> str | None:
        """The translations of the parts of a compound; dynamic programming over the positions of the word."""
        best: dict[int, tuple[float, list[str]]] = {0: (0.0, [])}
        for start in range(len(word)):
            if start not in best:
                continue
            value, parts = best[start]
            for end, english in self._parts(word, start):
                new = value + end - start - _PART_PENALTY
                for position in _next_starts(word, end):
                    if position not in best or best[position][0] < new:
                        best[position] = (new, [*parts, english])
        if len(word) not in best:
            return None
        # Parts that are words of the ontology as they stand, such as radiosensitive, are no translation.
        parts = best[len(word)][1]
        return None if "".join(parts) == word else " ".join(parts)

    def _parts(self, word: str, start: int) -> Iterator[tuple[int, str]]:
        """The ends of the parts that begin here, with their translations."""
        for end in range(start + _MIN_PART, len(word) + 1):
            part = word[start:end]
            english = self._in_glossary(word_forms(part) if end == len(word) else (part, part.translate(UMLAUTS)))
            if english is None and len(part) >= _MIN_COGNATE_PART:
                english = next((self._cognates[key] for key in cognate_keys(part) if key in self._cognates), None)
            if english is not None:
                yield end, english


def make_translator(ontology: Ontology, translations: Translations | None = None) -> QueryTranslator:
    """A translator into the words of an ontology's labels and synonyms."""
    texts = [*ontology.labels, *(synonym for synonyms in ontology.synonyms for synonym in synonyms)]
    return QueryTranslator(texts, translations)


def _next_starts(word: str, end: int) -> Iterator[int]:
    """Where the next part may begin after a part and a linking element; the end of the word for its last part."""
    if end == len(word):
        yield end
        return
    for linking in _LINKING_ELEMENTS:
        if word.startswith(linking, end) and len(word) - end - len(linking) >= _MIN_PART:
            yield end + len(linking)


def average_with_translation(scores: PointArray, translation_scores: PointArray) -> PointArray:
    """The weighted means of the scores of queries and of their translations."""
    means: PointArray = (scores + TRANSLATION_WEIGHT * translation_scores) / (1.0 + TRANSLATION_WEIGHT)
    return means
