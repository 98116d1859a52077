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
from equipoise.domains.phenotypes.language import word_class_lines

_ENGLISH_FUNCTION_WORDS = (
    "a an the of in on at to for from with by as is are was were be been his her their its both some any also due many"
)
_GERMAN_FUNCTION_WORDS = (
    "der die das den dem des ein eine einen einem einer eines in im am an auf aus bei beim mit von vom zu zum zur für "
    "ist sind war waren ihr ihre sein seine auch falls wenn beide beider beiden"
)
FUNCTION_WORDS = {
    "en": frozenset(_ENGLISH_FUNCTION_WORDS.split()),
    "de": frozenset(_GERMAN_FUNCTION_WORDS.split()),
}
"""Words that a term may contain or not: they are skipped in names and in texts."""

COORDINATORS = frozenset(("and", "or", "und", "oder", "sowie", "bzw"))
_MODIFIERS = (
    "very quite rather left right bilateral unilateral mild moderate severe marked slight significant pronounced "
    "progressive chronic acute recurrent congenital multiple isolated typical characteristic variable associated "
    "generalized diffuse focal upper lower minor major early late onset linke rechte links rechts beidseitig leicht "
    "mäßig schwer deutlich ausgeprägt sehr etwas progredient chronisch akut angeboren multipel typisch bekannt "
    "found felt noted seen appear appears appeared seem seems seemed significantly clearly palpably palpable grossly "
    "tastbar palpabel wesentlich signifikant eindeutig sicher"
)
NEGATIONS = frozenset(("not", "nicht"))
"""Words that negate a name if they are between its words: *the spleen is not enlarged*."""
MODIFIERS = frozenset(_MODIFIERS.split()) | NEGATIONS
"""Words that may be left out inside of a match if the match with them is no name."""

_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "æ": "ae", "œ": "oe"})
_SPELLINGS = (
    ("ae", "e"), ("oe", "e"), ("ck", "k"), ("k", "c"), ("z", "s"), ("ce", "se"), ("ci", "si"), ("cy", "si"),
    ("sc", "c"), ("ss", "s"), ("iemi", "emi"), ("ph", "f"), ("th", "t"), ("rh", "r"), ("rrh", "r"), ("y", "i"),
    ("our", "or"),
)  # fmt: skip
"""Replacements that give English, British and German spellings of Greek and Latin words one form."""
_IRREGULAR = {
    "teeth": "tooth", "feet": "foot", "children": "child", "men": "man", "women": "woman", "diagnoses": "diagnosis",
    "testes": "testis", "pelves": "pelvis", "indices": "index", "vertebrae": "vertebra", "nares": "naris",
    "phalanges": "phalanx", "phalange": "phalanx", "calvariae": "calvaria", "bronchi": "bronchus",
    "nevi": "nevus", "naevi": "nevus", "fungi": "fungus", "digiti": "digitus", "ova": "ovum",
    "heiser": "heiserkeit",
}  # fmt: skip
_ENDINGS = (
    ("aries", "ar", 4), ("ary", "ar", 4),
    ("osis", "os", 3), ("oses", "os", 3), ("osen", "os", 4), ("ose", "os", 4), ("ismus", "ism", 4),
    ("iasis", "ias", 4), ("ases", "as", 4), ("asis", "as", 4), ("eses", "es", 4), ("esis", "es", 4),
    ("ese", "es", 4), ("ises", "is", 4), ("ien", "i", 5), ("iae", "i", 5), ("ias", "i", 5), ("ies", "i", 4),
    ("ia", "i", 5), ("ie", "i", 5), ("eas", "e", 4), ("ea", "e", 4), ("oe", "e", 4), ("omata", "om", 4),
    ("omas", "om", 4), ("oma", "om", 4), ("ome", "om", 4), ("ae", "", 4), ("as", "", 4), ("a", "", 4),
    ("xes", "x", 3), ("shes", "sh", 3), ("ches", "ch", 3), ("es", "", 4), ("e", "", 4), ("s", "", 3),
)  # fmt: skip
"""Endings, what they become, and the minimum length of the result: *come* must not become the form of *coma*."""
_GERMAN_INFLECTIONS = ("ens", "em", "en", "er", "es", "e", "n", "s")
_GERMAN_ADJECTIVES = (("iell", "ial"), ("ell", "al"), ("aer", "ar"), ("isch", "ic"), ("oes", "ous"))
"""Endings of German adjectives of Latin and Greek origin, and their English forms."""
_MIN_STEM = 3


@lru_cache(maxsize=1 << 17)
def fold_word(word: str, language: str = "en") -> str:
    """A word without its spelling variants and inflection; equal in English and German for Greek and Latin words."""
    text = word.casefold()
    text = _IRREGULAR.get(text, text).translate(_UMLAUTS)
    text = "".join(letter for letter in unicodedata.normalize("NFKD", text) if not unicodedata.combining(letter))
    text = _strip_ending(text, language)
    if len(text) <= _MIN_STEM or any(letter.isdigit() for letter in text):
        return text
    unfolded = text
    for spelling, folded in _SPELLINGS:
        text = text.replace(spelling, folded)
    # *Thick* must not become *tic*.
    return text if len(text) > _MIN_STEM else unfolded


def _strip_ending(text: str, language: str) -> str:
    if language == "de":
        for ending in _GERMAN_INFLECTIONS:
            stem = text.removesuffix(ending)
            for adjective, folded in _GERMAN_ADJECTIVES:
                if stem.endswith(adjective) and len(stem) > _MIN_STEM + len(adjective):
                    return stem.removesuffix(adjective) + folded
        for adjective, folded in _GERMAN_ADJECTIVES:
            if text.endswith(adjective) and len(text) > _MIN_STEM + len(adjective):
                return text.removesuffix(adjective) + folded
    if text.endswith("ss"):
        return text
    for ending, folded, least in _ENDINGS:
        if text.endswith(ending) and len(text) - len(ending) + len(folded) >= least:
            return text[: len(text) - len(ending)] + folded
    if language == "de":
        for ending in _GERMAN_INFLECTIONS:
            if text.endswith(ending) and len(text) - len(ending) > _MIN_STEM:
                return text.removesuffix(ending)
    return text


_EVERYDAY_WORDS = (
    "arranging bouncing collecting cutting dullness extraversion fisting hopping inaction inertia jumping mouthing "
    "oncology ordering plethora rosette slowness spinning squawks tearing trance twirling 277000 S3 S4"
)
_NAMES_IN_PLURAL = ("boils", "corns", "falls", "moles", "piles")
_EVERYDAY_KEYS = frozenset(map(fold_word, (*_EVERYDAY_WORDS.split(), *_NAMES_IN_PLURAL)))


def is_everyday_word(word: str, key: str) -> bool:
    """Whether a word is a name of the ontology, but alone and in this form rarely means the finding.

    >>> [is_everyday_word(word, fold_word(word)) for word in ("cutting", "fall", "falls", "ataxia")]
    [True, True, False, False]
    """
    return key in _EVERYDAY_KEYS and word.casefold() not in _NAMES_IN_PLURAL


AMBIGUOUS_ABBREVIATIONS = frozenset(
    ("AEA", "AOB", "AOP", "BPD", "CIU", "CSU", "DDN", "DNT", "LDD", "LFT", "NFTs", "RAD", "TMD", "VMA")
)
"""Abbreviations of the ontology that mean something else in most notes, such as liver function tests."""
CAPITALIZED_WORDS = frozenset(("ADD", "CALM", "DOE", "GIST", "ODD", "SOB"))
"""Abbreviations that are words in a text in capital letters."""


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
_MIN_NEGATED = 4


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
