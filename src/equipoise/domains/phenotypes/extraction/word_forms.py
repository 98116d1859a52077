"""Words of the dictionary matcher: normalisation, word classes, compounds, everyday words, and opposites.

Three levels, from exact to loose. ``fold_word`` removes spelling and inflection (*tumours*, *Skoliose*);
``WORD_CLASSES`` maps words of one meaning to one of them (*renal*, *kidney*, *Niere*); ``split_compound`` splits a
German compound into known parts (*Nierenversagen*). The lists have general clinical words, not names of terms.
``contradicts`` is the guard against opposites: *large soft spot* and *Small anterior fontanelle*, *pitting edema* and
*Non-pitting edema* have almost the same words, so lexical and dense models give them high scores.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache

from equipoise.domains.phenotypes.index.lexicon import german_glossary
from equipoise.domains.phenotypes.language import LANGUAGES, WORDS, word_class_lines

OPTIONAL_WORDS = {language: frozenset(WORDS[language]["optional_words"].split()) for language in LANGUAGES}
"""Words that a term may contain or not: they are skipped in names and in texts."""
COORDINATORS, NEGATIONS, _MODIFIERS, AMBIGUOUS_ABBREVIATIONS, CAPITALIZED_WORDS = (
    frozenset(WORDS[name].split())
    for name in ("coordinators", "negations", "modifiers", "ambiguous_abbreviations", "capitalized_words")
)
MODIFIERS = _MODIFIERS | NEGATIONS

_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "æ": "ae", "œ": "oe"})
_FOLDS = WORDS["folds"]
_MIN_STEM = 3


@lru_cache(maxsize=1 << 17)
def fold_word(word: str, language: str = "en") -> str:
    """A word without its spelling variants and inflection; equal in English and German for Greek and Latin words."""
    text = word.casefold()
    text = _FOLDS["irregular"].get(text, text).translate(_UMLAUTS)
    text = "".join(letter for letter in unicodedata.normalize("NFKD", text) if not unicodedata.combining(letter))
    text = _strip_ending(text, language)
    if len(text) <= _MIN_STEM or any(letter.isdigit() for letter in text):
        return text
    unfolded = text
    for spelling, folded in _FOLDS["spellings"]:
        text = text.replace(spelling, folded)
    # *Thick* must not become *tic*.
    return text if len(text) > _MIN_STEM else unfolded


def _strip_ending(text: str, language: str) -> str:
    inflections = _FOLDS["german_inflections"] if language == "de" else ()
    if language == "de":
        for stem in (*map(text.removesuffix, inflections), text):
            for adjective, folded in _FOLDS["german_adjectives"]:
                if stem.endswith(adjective) and len(stem) > _MIN_STEM + len(adjective):
                    return stem.removesuffix(adjective) + folded
    if text.endswith("ss"):
        return text
    for ending, folded, least in _FOLDS["endings"]:
        if text.endswith(ending) and len(text) - len(ending) + len(folded) >= least:
            return text.removesuffix(ending) + folded
    for ending in inflections:
        if text.endswith(ending) and len(text) - len(ending) > _MIN_STEM:
            return text.removesuffix(ending)
    return text


_NAMES_IN_PLURAL = WORDS["names_in_plural"].split()
_EVERYDAY_KEYS = frozenset(map(fold_word, (*WORDS["everyday_words"].split(), *_NAMES_IN_PLURAL)))


def is_everyday_word(word: str, key: str) -> bool:
    """Whether a word is a name of the ontology, but alone and in this form rarely means the finding.

    >>> [is_everyday_word(word, fold_word(word)) for word in ("cutting", "fall", "falls", "ataxia")]
    [True, True, False, False]
    """
    return key in _EVERYDAY_KEYS and word.casefold() not in _NAMES_IN_PLURAL


def _word_classes() -> dict[str, dict[str, str]]:
    """One class per line of the file: English words, a bar, German words. The first word names the class."""
    english_classes: dict[str, str] = {}
    german_classes: dict[str, str] = {}
    for english, german in word_class_lines():
        name = fold_word(english[0])
        for word in english:
            english_classes.setdefault(fold_word(word), name)
        for word in german:
            german_classes.setdefault(fold_word(word, "de"), name)
    for word, translation in german_glossary().items():
        if " " not in translation:
            folded = fold_word(translation)
            german_classes.setdefault(fold_word(word, "de"), english_classes.get(folded, folded))
    return {"en": english_classes, "de": english_classes | german_classes}


WORD_CLASSES = _word_classes()
"""The classes of folded words by language; German texts also have English and Latin words."""

_LINKING = ("", "s", "n", "en", "es", "e", "er")
_MIN_PART = 4
_MAX_PARTS = 3


def split_compound(word: str, known: Callable[[str], bool], parts: int = _MAX_PARTS) -> tuple[str, ...]:
    """The parts of a German compound if all of them are known words, as folded words; otherwise nothing.

    ``known`` tells whether a folded word is in the vocabulary. The last part is as long as possible.
    """
    for cut in range(_MIN_PART, len(word) - _MIN_PART + 1):
        tail = fold_word(word[cut:], "de")
        if not known(tail):
            continue
        for linking in _LINKING:
            start = word[:cut]
            if not start.endswith(linking) or len(start) - len(linking) < _MIN_PART - 1:
                continue
            start = start[: len(start) - len(linking)]
            folded = fold_word(start, "de")
            if known(folded):
                return folded, tail
            before = split_compound(start, known, parts - 1) if parts > 2 else ()
            if before:
                return *before, tail
    return ()


_PREFIXES = ("hyper", "hypo", "macro", "makro", "micro", "mikro", "tachy", "brady")
"""Prefixes that are words of the table of opposites: *hypertelorism* against *hypotelorism*."""
_NEGATIONS = ("non", "un", "in", "im", "a", "an", "nicht")
_ADJECTIVE_ENDINGS = ("e", "er", "es", "en", "em")
_WORD = re.compile(r"[^\W\d_]+")
_MIN_NEGATED = 4


def _opposites() -> dict[str, frozenset[str]]:
    table: dict[str, set[str]] = {}
    for line in WORDS["opposites"]:
        left, right = (side.casefold().split() for side in line.split("|"))
        for words, others in ((left, right), (right, left)):
            for word in words:
                table.setdefault(word, set()).update(others)
    return {word: frozenset(others) for word, others in table.items()}


_OPPOSITES = _opposites()


def contradicts(text: str, name: str) -> bool:
    """Whether a name says the opposite of a text.

    A word of the text has an opposite in the name that is not in the text, or one of two equal words is negated by a
    prefix.
    """
    text_words, name_words = _polar_words(text), _polar_words(name)
    if any(
        _OPPOSITES.get(word, frozenset()) & (name_words - text_words) and word not in name_words for word in text_words
    ):
        return True
    words, other_words = _words(text), _words(name)
    return _negates(words, other_words) or _negates(other_words, words)


def _negates(words: frozenset[str], others: frozenset[str]) -> bool:
    """Whether a word is the negation of one of the others, as one word or with the negation before it."""
    for word in words - others:
        for prefix in _NEGATIONS:
            stem = word.removeprefix(prefix)
            if stem != word and len(stem) >= _MIN_NEGATED and stem in others:
                return True
    return bool(("non" in words) != ("non" in others) and words & others)


@lru_cache(maxsize=1 << 16)
def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))


@lru_cache(maxsize=1 << 16)
def _polar_words(text: str) -> frozenset[str]:
    """The words with an opposite; a prefix such as *hyper* counts as a word."""
    polar = set()
    for word in _words(text):
        # German adjectives have an ending: *große*, *kleiner*.
        base = next((form for form in (word, *map(word.removesuffix, _ADJECTIVE_ENDINGS)) if form in _OPPOSITES), None)
        if base is not None:
            polar.add(base)
        else:
            polar.update(prefix.replace("k", "c") for prefix in _PREFIXES if word.startswith(prefix))
    return frozenset(polar)
