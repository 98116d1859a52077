"""Languages of clinical texts: codes, function words, the bundled names by language, and language detection.

A note may mix languages (*Known diagnoses: arterielle Hypertonie*), so detection gives segments. Each word is evidence
for one language or for none; the segments are the most probable sequence of languages, with a cost per change.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from importlib.resources import files
from itertools import pairwise

from equipoise.domains.phenotypes.index.lexicon import german_glossary
from equipoise.errors import UnknownNameError
from equipoise.types import packaged_toml

LANGUAGES = ("en", "de")


def _bundled(name: str) -> str:
    return (files("equipoise.domains.phenotypes") / "extraction" / name).read_text(encoding="utf-8")


WORDS = packaged_toml("equipoise.domains.phenotypes", "extraction/words.toml")
FUNCTION_WORDS = {language: frozenset(WORDS[language]["function_words"].split()) for language in LANGUAGES}
"""Function words by language; they never name a finding."""


def validate_language(name: str) -> str:
    """The language of a code such as ``de`` or ``en-GB``; an error for a language without rules."""
    code = name.strip().casefold().replace("_", "-").partition("-")[0]
    if code not in LANGUAGES:
        raise UnknownNameError.of("language with rules", name, LANGUAGES, more="there are rules for en and de")
    return code


@cache
def lexicon_entries(language: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Labels of terms with names that the ontology lacks: abbreviations, lay English, German names.

    Each line of ``extraction/lexicon_en.txt`` and ``lexicon_de.txt`` is the label of a term and the names that are
    added to it. They are matched like the synonyms of the ontology, in any word order, inflection and spelling;
    abbreviations must have the same upper and lower case.
    """
    text = _bundled(f"lexicon_{language}.txt")
    entries = (line.partition(": ") for line in text.splitlines())
    return tuple((label, tuple(name.strip() for name in names.split(", "))) for label, _, names in entries)


def word_class_lines() -> list[tuple[list[str], list[str]]]:
    """The English and German words of each class of ``extraction/word_classes.txt``."""
    lines = (line.partition("|") for line in _bundled("word_classes.txt").splitlines())
    return [(english.split(), german.split()) for english, _, german in lines]


# Detection.

_LETTERS = re.compile(r"[^\W\d_]+")
_UMLAUT = re.compile("[äöüß]")
_GERMAN_ENDING = re.compile(
    r"(?:ung(?:en)?|keit(?:en)?|heit(?:en)?|(?:isch|iell)(?:e[rnms]?)?|[a-z]{3}[fghlmnprt]ien?)\Z"
)
_AMBIGUOUS = frozenset(("am", "so", "was", "in", "an", "also", "as", "die", "hat", "war", "her"))
_CHANGE_COST = 1.5
"""The number of words of another language that a change must exceed: one word may be a loan word."""


@cache
def _vocabularies() -> tuple[frozenset[str], frozenset[str]]:
    """Words that are English and not German, and the reverse, by the bundled lists."""
    english, german = set(FUNCTION_WORDS["en"]), set(FUNCTION_WORDS["de"])
    for words, translations in word_class_lines():
        english.update(words)
        german.update(map(str.casefold, translations))
    for language, vocabulary in (("en", english), ("de", german)):
        for label, names in lexicon_entries(language):
            english.update(_words(label))
            vocabulary.update(word for name in names for word in _words(name))
    for word, translation in german_glossary().items():
        german.add(word)
        english.update(_words(translation))
    return frozenset(english - german - _AMBIGUOUS), frozenset(german - english - _AMBIGUOUS)


@lru_cache(maxsize=1 << 16)
def _evidence(word: str) -> int:
    """1 for a German word, -1 for an English one, 0 for a word of both or neither."""
    english, german = _vocabularies()
    if word in english:
        return -1
    return int(word in german or _UMLAUT.search(word) is not None or _GERMAN_ENDING.search(word) is not None)


def guess_language(text: str) -> str:
    """The language with more words in the text, English if there are as many; see ``language_segments``."""
    return "de" if sum(map(_evidence, _words(text))) > 0 else "en"


def language_segments(text: str) -> list[tuple[int, int, str]]:
    """Start, end and language of the segments of a text, which cover it."""
    words = [
        (match.start(), evidence) for match in _LETTERS.finditer(text) if (evidence := _evidence(match[0].casefold()))
    ]
    n_german = sum(evidence > 0 for _, evidence in words)
    main = "de" if 2 * n_german > len(words) else "en"
    if min(n_german, len(words) - n_german) <= _CHANGE_COST:
        return [(0, len(text), main)]
    states = most_probable_languages([evidence for _, evidence in words], is_german=main == "de")
    changes = [at for at in range(1, len(states)) if states[at] != states[at - 1]]
    starts = [0, *(words[at][0] for at in changes)]
    languages = ["de" if states[at] else "en" for at in (0, *changes)]
    return [
        (start, end, language) for (start, end), language in zip(pairwise([*starts, len(text)]), languages, strict=True)
    ]


def most_probable_languages(evidence: list[int], *, is_german: bool) -> list[bool]:
    """The sequence of languages with the most evidence less the costs of changes (Viterbi); both ends have a prior."""
    values = [0.0, -_CHANGE_COST] if not is_german else [-_CHANGE_COST, 0.0]
    prior, origins = list(values), []
    for word in evidence:
        origin = [
            german if values[german] >= values[not german] - _CHANGE_COST else not german for german in (False, True)
        ]
        values = [
            values[came] - (_CHANGE_COST if came != german else 0.0) + (word if german else -word)
            for german, came in zip((False, True), origin, strict=True)
        ]
        origins.append(origin)
    state = values[True] + prior[True] > values[False] + prior[False]
    states = []
    for origin in reversed(origins):
        states.append(state)
        state = origin[state]
    return states[::-1]


def _words(text: str) -> list[str]:
    return _LETTERS.findall(text.casefold())
