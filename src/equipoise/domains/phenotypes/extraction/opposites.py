"""Guard against opposites: a text and a name that differ in polarity are no match, however similar they are.

*Large soft spot* and *Small anterior fontanelle*, *pitting edema* and *Non-pitting edema*, *afebrile* and *Febrile
seizure* have almost the same words, so lexical and dense models give them high scores.
"""

from __future__ import annotations

import re
from functools import lru_cache

_PAIRS = """
large big wide broad enlarged increased elevated high macro hyper excessive gain overgrowth tall over thick many \
groß weit breit vergrößert erhöht vermehrt gesteigert hoch dick | \
small little narrow thin decreased reduced low diminished micro hypo short loss undergrowth under sparse few \
klein eng schmal vermindert verringert erniedrigt niedrig kurz dünn verlust
long | short
acute akut | chronic chronisch
early premature precocious früh vorzeitig | late delayed spät verspätet verzögert
upper | lower
anterior | posterior
proximal | distal
left links linke | right rechts rechte
medial | lateral
upslanted upslanting | downslanted downslanting
valgus valgum | varus varum
flexion | extension
abduction | adduction
internal | external
congenital angeboren | acquired erworben
unilateral einseitig | bilateral beidseitig beidseits
weak schwach abgeschwächt | brisk lebhaft
present | absent missing aplasia agenesis fehlend
absent missing fehlend | supernumerary extra accessory
dry | wet
soft | hard
fast rapid tachy | slow brady
hypertension bluthochdruck | hypotension
"""
_PREFIXES = ("hyper", "hypo", "macro", "makro", "micro", "mikro", "tachy", "brady")
"""Prefixes that are words of the table above: *hypertelorism* against *hypotelorism*."""
_NEGATIONS = ("non", "un", "in", "im", "a", "an", "nicht")
_ADJECTIVE_ENDINGS = ("e", "er", "es", "en", "em")
_WORD = re.compile(r"[^\W\d_]+")
_MIN_STEM = 4


def _opposites() -> dict[str, frozenset[str]]:
    table: dict[str, set[str]] = {}
    for line in _PAIRS.replace("\\\n", "").strip().splitlines():
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

    >>> contradicts("soft spot is large", "Small anterior fontanelle"), contradicts("large head", "Large head")
    (True, False)
    >>> contradicts("pitting edema", "Non-pitting edema"), contradicts("Afebrile", "Febrile seizure")
    (True, True)
    """
    ours, theirs = _polar_words(text), _polar_words(name)
    if any(_OPPOSITES.get(word, frozenset()) & (theirs - ours) and word not in theirs for word in ours):
        return True
    words, other_words = _words(text), _words(name)
    return _negates(words, other_words) or _negates(other_words, words)


def _negates(words: frozenset[str], others: frozenset[str]) -> bool:
    """Whether a word is the negation of one of the others, as one word or with the negation before it."""
    for word in words - others:
        for prefix in _NEGATIONS:
            stem = word.removeprefix(prefix)
            if stem != word and len(stem) >= _MIN_STEM and stem in others:
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
