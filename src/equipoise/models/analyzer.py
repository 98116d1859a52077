"""Text analysis of the lexical retrievers: tokenise, fold case, remove stop words, stem, and number the terms."""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

import numpy as np

from equipoise.errors import InputError, UnknownNameError
from equipoise.models.tokenizers import check_text
from equipoise.types import Ints, packaged_toml, require_extra

STOPWORDS: dict[str, frozenset[str]] = {
    language: frozenset(words.split())
    for language, words in packaged_toml("equipoise.models", "stopwords.toml").items()
}
"""Articles, pronouns and prepositions of a few languages."""


_WORDS = re.compile(r"\w+")
_CODES = {
    "da": "danish", "de": "german", "en": "english", "es": "spanish", "fi": "finnish", "fr": "french",
    "hu": "hungarian", "it": "italian", "nl": "dutch", "no": "norwegian", "pt": "portuguese",
    "ro": "romanian", "ru": "russian", "sv": "swedish", "tr": "turkish",
}  # fmt: skip


def fold_case(text: str) -> str:
    """Normalise a text: NFKC, then case folding.

    >>> fold_case("STRASSE") == fold_case("Straße"), fold_case("ﬁ²")
    (True, 'fi2')
    """
    return text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()


def tokenize_words(text: str) -> list[str]:
    """The words of a text: the longest runs of letters, digits and underscores, folded.

    >>> tokenize_words("Type-2 Diabetes, (familial)")
    ['type', '2', 'diabetes', 'familial']
    """
    return _WORDS.findall(fold_case(text))


@dataclass(frozen=True, slots=True)
class Analyzer:
    """Normalisation of words: stop words are removed, other words are stemmed.

    ``stopwords`` names a language or lists words separated by ``|``; ``stemmer`` names a Snowball language.
    """

    stopwords: str = ""
    stemmer: str = ""

    @classmethod
    def of(cls, language: str = "", stopwords: str | Iterable[str] = "", stemmer: str = "") -> Analyzer:
        """A rule from options; ``language`` sets both unless they are given, ``none`` switches one off."""
        listed = stopwords if isinstance(stopwords, str) else "|".join(sorted(stopwords)) + "|"
        chosen = [_language(name) for name in (listed or _known_stopwords(language), stemmer or language)]
        rule = cls(*("" if name == "none" else name for name in chosen))
        rule.stop_set()
        return rule

    def stop_set(self) -> frozenset[str]:
        """The folded words that are left out."""
        if not self.stopwords:
            return frozenset()
        if "|" in self.stopwords:
            return frozenset(fold_case(word) for word in self.stopwords.split("|") if word)
        if self.stopwords not in STOPWORDS:
            raise UnknownNameError.of(
                "list of stop words", self.stopwords, STOPWORDS,
                more=f"there are {', '.join(STOPWORDS)}; custom ones: stopwords=the|a|an",
            )  # fmt: skip
        return STOPWORDS[self.stopwords]

    def described(self) -> str:
        """A description of the rule for the fingerprint, with the version of the stemmer."""
        stop = "|".join(sorted(self.stop_set()))
        return f"stopwords={stop};stemmer={self.stemmer}{_stemmer_version(self.stemmer)}"

    def function(self) -> Callable[[str], str]:
        """The rule as a function of a folded word; the empty string marks a stop word."""
        stop = self.stop_set()
        stem = _stem_function(self.stemmer) if self.stemmer else str
        return lambda word: "" if word in stop else stem(word)


class TermVocabulary:
    """The numbers of the terms of some documents, in the order in which they appeared."""

    def __init__(self, rule: Analyzer | None = None, split: Callable[[str], list[str]] = tokenize_words) -> None:
        self._rule = rule.function() if rule else str
        self._split = split
        self._terms: dict[str, int] = {}

    @property
    def terms(self) -> list[str]:
        """All terms; term i has the number i."""
        return list(self._terms)

    def learn(self, documents: Sequence[str]) -> tuple[Ints, Ints]:
        """Number the terms of the documents: all numbers concatenated, and the count per document."""
        return self._read(documents, lambda term: self._terms.setdefault(term, len(self._terms)))

    def look_up(self, texts: Sequence[str]) -> tuple[Ints, Ints]:
        """The same for other texts; unknown words are left out."""
        return self._read(texts, lambda term: self._terms.get(term, -1))

    def _read(self, texts: Sequence[str], number: Callable[[str], int]) -> tuple[Ints, Ints]:
        rule, split = self._rule, self._split
        word_ids = _TermIds(lambda word: number(term) if (term := rule(word)) else -1)
        numbers, lengths = array("q"), np.empty(len(texts), dtype=np.int64)
        for index, text in enumerate(texts):
            words = split(text)
            lengths[index] = len(words)
            numbers.extend(map(word_ids.__getitem__, words))
        terms = np.frombuffer(numbers, dtype=np.int64)
        in_vocabulary = terms >= 0
        if in_vocabulary.all():
            return terms, lengths
        owners = np.repeat(np.arange(len(texts)), lengths)
        return terms[in_vocabulary], np.bincount(owners[in_vocabulary], minlength=len(texts))


class _TermIds(dict[str, int]):
    """The id of every word form so far: each form is stemmed once."""

    def __init__(self, number: Callable[[str], int]) -> None:
        super().__init__()
        self._number = number

    def __missing__(self, word: str) -> int:
        term_id = self[word] = self._number(word)
        return term_id


def _language(name: str) -> str:
    return name if "|" in name else _CODES.get(name.casefold(), name.casefold())


def _known_stopwords(language: str) -> str:
    """The stop words of a language; empty if there is no list."""
    return language if _language(language) in STOPWORDS else ""


def _stem_function(language: str) -> Callable[[str], str]:
    snowball = require_extra("snowballstemmer", extra="lexical")
    algorithms = snowball.algorithms()
    if language not in algorithms:
        raise UnknownNameError.of("stemmer", language, algorithms, more=f"there are {', '.join(algorithms)}")
    stem: Callable[[str], str] = snowball.stemmer(language).stemWord
    return stem


def _stemmer_version(language: str) -> str:
    if not language:
        return ""
    require_extra("snowballstemmer", extra="lexical")
    versions = []
    for package in ("snowballstemmer", "PyStemmer"):
        try:
            versions.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return f" ({', '.join(versions)})"


def check_nonempty_texts(texts: Iterable[str], subject: str) -> list[str]:
    """The texts as a list; an empty or blank text is an error. ``subject`` is the noun in messages."""
    if isinstance(texts, str | bytes):
        raise InputError(f"one text was given where a list of {subject} is needed", hint="write [text]")
    if not isinstance(texts, Iterable):
        raise InputError(
            f"the {subject} are of type {type(texts).__name__}, not a list of texts", hint="write [text, ...]"
        )
    checked = list(texts)
    if not checked:
        raise InputError(f"there are no {subject}", hint="check that the file or list is not empty")
    for index, text in enumerate(checked):
        name = f"number {index} of the {subject} (counted from 0)"
        if not check_text(text, subject=name).strip():
            raise InputError(f"{name} is empty", hint="leave empty texts out")
    return checked
