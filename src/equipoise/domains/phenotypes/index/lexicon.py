"""Query translation into the language of an ontology: a German glossary, translated labels, and spelling rules.

A lexicon maps folded words to phrases in the ontology's language. The German glossary is bundled. Translated labels,
such as those of HPO's internationalisation, give further lexicons: whole labels, and the words that are aligned in
them by IBM Model 1 (Brown et al. 1993). Only 3,488 of 19,034 terms have a German label, so labels are not indexed
themselves: translated terms would outrank the others.

Terms are ranked by the query and by its translation: a score is (score of the query + w * score of the translation)
/ (1 + w), with w = 0.5. Words of the ontology are never translated alone, so English queries keep their scores.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING

from equipoise.errors import FormatError, InputError
from equipoise.io.tables import read_table
from equipoise.io.text import PathLike, display_path
from equipoise.models.analyzer import STOPWORDS, fold_case
from equipoise.models.retriever import content_fingerprint

if TYPE_CHECKING:
    from equipoise.domains.phenotypes.ontology import Ontology
    from equipoise.geometry.base import PointArray

Lexicon = Mapping[str, str]
"""Word forms and their translations."""

_WORDS = re.compile(r"[^\W_]+")
UMLAUTS = str.maketrans({"ä": "a", "ö": "o", "ü": "u", "ß": "ss"})
_DIGRAPHS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss"})
_GERMAN_ENDINGS = ("ern", "em", "en", "er", "es", "e", "n", "s", "t")
_MIN_STEM = 3
_MIN_COGNATE_STEM = 4
_N_ITERATIONS, _MIN_PROBABILITY = 6, 0.15
"""Of IBM Model 1: the iterations, and the smallest probability of a translation."""


def split_words(text: str) -> list[str]:
    """The folded words of a text."""
    return _WORDS.findall(fold_case(text))


def word_forms(word: str) -> Iterator[str]:
    """The forms under which a folded German word may be in a lexicon: without inflectional endings and umlauts.

    Forms with umlauts come first, since Größe and große differ; the plural of Zahn is Zähne.
    """
    forms: list[str] = []
    for stem in (word, word.translate(UMLAUTS)):
        # A genitive may follow another ending: Daumen, Daumens.
        for base in (stem, stem.removesuffix("s")):
            forms += [
                base.removesuffix(ending)
                for ending in ("", *_GERMAN_ENDINGS)
                if base.endswith(ending) and len(base) - len(ending) >= _MIN_STEM
            ]
    return iter(dict.fromkeys(forms))


# Cognates: Greek and Latin words that German and English spell differently.

_SPELLINGS = (
    ("ae", "e"), ("oe", "e"), ("ph", "f"), ("th", "t"), ("rh", "r"), ("ck", "k"), ("y", "i"), ("c", "k"), ("z", "k"),
    ("x", "ks"),
)  # fmt: skip
_DOUBLED = re.compile(r"(.)\1")
_COGNATE_ENDING = re.compile(
    r"(?:(?:iskh(?:e[rsnm]?)?|ik(?:al(?:e[rsnm]?)?)?)|(?P<it>itet(?:en)?|iti(?:es)?)|(?P<os>os[ei]n?|osis|oses)"
    r"|(?P<ism>ismus|ism)|(?P<enk>en[kt]en?|enki?)|(?P<ank>anken?|anki?)|(?P<us>es(?:e[rsnm])?|us(?:e[rsnm]?)?|ous)"
    r"|(?P<om>om(?:a|as|ata|en?)?)|(?P<al>al(?:e[rsnm]?)?)|(?P<ar>er(?:e[rsnm]?)?|ari|ar(?:e[rsnm]?)?)"
    r"|(?:ien|ies|iens|ie|ia|i|is|e[rsnm]?|n|s|a|um))$"
)
"""Endings after spelling folds; the name of a group is the ending that all of its spellings become."""


@cache
def fold_spelling(word: str) -> str:
    """A word with equal letters for equal sounds of German and English: k, c and z, ph and f, ä and ae.

    >>> fold_spelling("mikrozephalie"), fold_spelling("microcephaly")
    ('mikrokefalie', 'mikrokefali')
    """
    folded = word.translate(_DIGRAPHS)
    for old, new in _SPELLINGS:
        folded = folded.replace(old, new)
    return _DOUBLED.sub(r"\1", folded)


@cache
def cognate_keys(word: str) -> tuple[str, ...]:
    """Keys that a German and an English form of a Greek or Latin word share: with and without the ending."""
    folded = fold_spelling(word)
    match = _COGNATE_ENDING.search(folded, _MIN_COGNATE_STEM)
    return (folded,) if match is None else (folded, folded[: match.start()] + (match.lastgroup or ""))


# Lexicons.


@cache
def german_glossary() -> Lexicon:
    lexicon: dict[str, str] = {}
    stems: dict[str, str] = {}
    content = (files("equipoise.domains.phenotypes.index") / "german.txt").read_text(encoding="utf-8")
    for line in content.splitlines():
        english, _, german = line.partition("#")[0].partition("=")
        for word in german.split(","):
            if form := fold_case(word.strip()):
                lexicon.setdefault(form, english.strip())
                # The stem of Niere is in Nieren and Nierenversagen.
                ending = next((ending for ending in ("en", "e") if form.endswith(ending)), "")
                if ending and len(form) - len(ending) > _MIN_STEM:
                    stems.setdefault(form.removesuffix(ending), english.strip())
    return {**stems, **lexicon}


@dataclass(frozen=True)
class Translations:
    """Translated labels and synonyms with the ontology's label of their term, and the languages that they are in."""

    pairs: tuple[tuple[str, str], ...]
    languages: tuple[str, ...] = ()

    @property
    def fingerprint(self) -> str:
        """A digest of the pairs."""
        return sha256(repr(self.pairs).encode()).hexdigest()

    @property
    def labels(self) -> Lexicon:
        """The whole labels, as words joined by spaces; the first of equal ones counts."""
        labels: dict[str, str] = {}
        for translated, label in self.pairs:
            labels.setdefault(" ".join(split_words(translated)), label)
        return labels

    def words(self) -> Lexicon:
        """The words of the labels with their most probable equivalent, by IBM Model 1.

        A label of one word, such as Muskelschwäche, is a word with the label of its term as its equivalent.
        """
        stop = STOPWORDS["english"].union(*STOPWORDS.values())
        sentences = [
            ([w for w in split_words(foreign) if w not in stop], [w for w in split_words(label) if w not in stop])
            for foreign, label in self.pairs
        ]
        lexicon: dict[str, str] = {}
        for foreign, english in sentences:
            if len(foreign) == 1 and english:
                lexicon.setdefault(foreign[0], " ".join(english))
        probabilities = _translation_probabilities(sentences)
        for (english_word, word), p in sorted(probabilities.items(), key=lambda item: (-item[1], item[0])):
            if p >= _MIN_PROBABILITY:
                lexicon.setdefault(word, english_word)
        return lexicon


def _translation_probabilities(sentences: Sequence[tuple[list[str], list[str]]]) -> dict[tuple[str, str], float]:
    """t(english | foreign) of IBM Model 1 after expectation maximisation from uniform probabilities."""
    t = {(english, foreign): 1.0 for left, right in sentences for english in right for foreign in left}
    for _ in range(_N_ITERATIONS):
        counts: dict[tuple[str, str], float] = defaultdict(float)
        totals: dict[str, float] = defaultdict(float)
        for left, right in sentences:
            for english in right:
                total = sum(t[english, foreign] for foreign in left)
                for foreign in left:
                    share = t[english, foreign] / total
                    counts[english, foreign] += share
                    totals[foreign] += share
        t = {pair: count / totals[pair[1]] for pair, count in counts.items()}
    return t


TRANSLATED_PREDICATES = ("rdfs:label", "oboInOwl:hasExactSynonym", "oboInOwl:hasRelatedSynonym")
"""The predicates of babelon rows that are read; definitions are left out."""


def read_translations(paths: Iterable[PathLike], ontology: Ontology) -> Translations:
    """Read translated labels and synonyms of an ontology's terms.

    Parameters
    ----------
    paths
        Babelon tables (``subject_id``, ``predicate_id``, ``translation_value``) and ROBOT synonym templates
        (``subject_id``, ``translation_value`` with bars between synonyms), as published for the Human Phenotype
        Ontology.
    ontology
        The ontology. Rows of terms that it does not have are left out.

    Returns
    -------
    Translations
        Pairs of a translated text and the label of its term.

    Examples
    --------
    >>> read_translations(["hp-de.babelon.tsv", "hp-de.synonyms.tsv"], load_ontology())  # doctest: +SKIP
    """
    pairs: list[tuple[str, str]] = []
    languages: Counter[str] = Counter()
    for path in paths:
        before = len(pairs)
        rows = read_table(path).require("subject_id", "translation_value").rows
        for row in rows:
            term = ontology.id_resolver.find(row["subject_id"])
            if term is not None and row.get("predicate_id", TRANSLATED_PREDICATES[0]) in TRANSLATED_PREDICATES:
                texts = [text.strip() for text in row["translation_value"].split("|")]
                pairs += [(text, ontology.labels[term.term]) for text in texts if text]
                languages[row.get("translation_language", "")] += 1
        if len(pairs) == before:
            kind = FormatError if not rows else InputError
            raise kind(
                f"{display_path(path)} has no translation of a term of {ontology.title}",
                hint="give a babelon table of its labels, such as hp-de.babelon.tsv",
            )
    return Translations(tuple(pairs), tuple(language for language in languages if language))


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
        # Parts that are already words of the ontology, such as radiosensitive, are no translation.
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
