"""The language of a question: whether it is one, and what the models make of it."""

from __future__ import annotations

import re

from equipoise.errors import ParameterError

ENGLISH = ("minilm", "glove", "wordllama")
"""Short names of models that were made for English."""
LETTERS = {"tfidf": "letters", "bm25": "words", "hash": "words"}
"""Kinds that compare signs and know no language, and which signs these are."""
BOTH = "use, or sum:use+tfidf:"
"""What reads other languages too."""
READ_BY_USE = {
    "ar": "ara", "de": "deu ger", "en": "eng", "es": "spa", "fr": "fra fre", "it": "ita", "ja": "jpn",
    "ko": "kor", "nl": "nld dut", "pl": "pol", "pt": "por", "ru": "rus", "th": "tha", "tr": "tur",
    "zh": "zho chi",
}  # fmt: skip
"""The languages that ``use`` was trained on, with their codes of three letters; Chinese is two of the 16."""

_CODE = re.compile(r"([a-z]{2,3})(?:[-_][a-z0-9]{2,8})*", re.IGNORECASE)
_SHORT = {code: short for short, long in READ_BY_USE.items() for code in long.split()}


def checked_language(language: str | None) -> str | None:
    """The language as it was written, where that is a code: two or three letters, with or without a region.

    >>> checked_language("de"), checked_language("pt-BR"), checked_language(None)
    ('de', 'pt-BR', None)
    """
    if language is not None and _CODE.fullmatch(language) is None:
        raise ParameterError(
            f"{language!r} is no code of a language", hint="write two or three letters, such as en or de"
        )
    return language


def language_notes(kinds: dict[str, str], language: str | None) -> list[str]:
    """What cannot be expected of a system in this language; ``kinds`` are its parts with their kinds.

    Nothing is said of models that only their makers know, such as those of the hub.

    >>> language_notes({"tfidf:": "tfidf"}, "de")
    ['tfidf finds only letters that the terms have too; use, or sum:use+tfidf:, also reads de']
    >>> language_notes({"use": "use"}, "fi")
    ['no model here was made for fi; what is found rests on shared letters']
    """
    known = [_named(spec, kind) for spec, kind in kinds.items()]
    if language is None or primary(language) == "en" or not all(known):
        return []
    if primary(language) not in READ_BY_USE:
        return [f"no model here was made for {language}; what is found rests on shared letters"]
    english = [name for name in known if name in ENGLISH]
    if "use" in known:
        return []
    if english:
        return [f"{', '.join(english)} was made for English; {BOTH}, also reads {language}"]
    signs = LETTERS[known[0]]
    return [f"{', '.join(known)} finds only {signs} that the terms have too; {BOTH}, also reads {language}"]


def primary(language: str) -> str:
    """A language without its region, by its shorter code.

    >>> primary("de-AT"), primary("DEU"), primary("fin")
    ('de', 'de', 'fin')
    """
    code = re.split("[-_]", language.casefold())[0]
    return _SHORT.get(code, code)


def _named(spec: str, kind: str) -> str:
    """The short name of a model of which it is known what it reads; otherwise nothing."""
    if kind in LETTERS or kind == "use":
        return kind
    return next((name for name in ENGLISH if name in spec.casefold()), "")
