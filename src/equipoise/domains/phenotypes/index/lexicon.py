"""Word translations into the language of an ontology: a German glossary, translated labels, and spelling rules.

A lexicon maps folded words to phrases in the ontology's language. The German
glossary is bundled. Translated labels, such as those of HPO's internationalisation, give further lexicons: whole
labels, and the words that are aligned in them by IBM Model 1 (Brown et al. 1993). Only 3,488 of 19,034 terms have a
German label, so labels are not indexed themselves: translated terms would outrank the others.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING

from equipoise.errors import FormatError, InputError
from equipoise.io.tables import read_table
from equipoise.io.text import PathLike, display_path
from equipoise.models.analyzer import STOPWORDS, fold_case

if TYPE_CHECKING:
    from equipoise.domains.phenotypes.ontology.ontology import Ontology

Lexicon = Mapping[str, str]
"""Word forms and their translations."""

_WORDS = re.compile(r"[^\W_]+")
UMLAUTS = str.maketrans({"ä": "a", "ö": "o", "ü": "u", "ß": "ss"})
_DIGRAPHS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss"})
_GERMAN_ENDINGS = ("ern", "em", "en", "er", "es", "e", "n", "s", "t")
_MIN_STEM = 3
_MIN_COGNATE_STEM = 4


def split_words(text: str) -> list[str]:
    """The folded words of a text.

    >>> split_words("Café-au-lait-Flecken, 2. Zeh")
    ['café', 'au', 'lait', 'flecken', '2', 'zeh']
    """
    return _WORDS.findall(fold_case(text))


def word_forms(word: str) -> Iterator[str]:
    """The forms under which a folded German word may be in a lexicon: without inflectional endings and umlauts.

    Forms with umlauts come first, since Größe and große differ; the plural of Zahn is Zähne.

    >>> list(word_forms("daumens")), list(word_forms("zähne"))
    (['daumens', 'daumen', 'daum', 'daume'], ['zähne', 'zähn', 'zahne', 'zahn'])
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
    """Keys that a German and an English form of a Greek or Latin word share: with and without the ending.

    >>> set(cognate_keys("aminoazidurie")) & set(cognate_keys("aminoaciduria"))
    {'aminoakidur'}
    """
    folded = fold_spelling(word)
    match = _COGNATE_ENDING.search(folded, _MIN_COGNATE_STEM)
    return (folded,) if match is None else (folded, folded[: match.start()] + (match.lastgroup or ""))


# Lexicons.


@cache
def german_glossary() -> Lexicon:
    """The bundled German words.

    >>> german_glossary()["kopfschmerz"]
    'headache'
    """
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

    def words(self, n_iterations: int = 6, min_probability: float = 0.15) -> Lexicon:
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
        probabilities = _translation_probabilities(sentences, n_iterations)
        for (english_word, word), p in sorted(probabilities.items(), key=lambda item: (-item[1], item[0])):
            if p >= min_probability:
                lexicon.setdefault(word, english_word)
        return lexicon


def _translation_probabilities(
    sentences: Sequence[tuple[list[str], list[str]]], n_iterations: int
) -> dict[tuple[str, str], float]:
    """t(english | foreign) of IBM Model 1 after expectation maximisation from uniform probabilities."""
    t = {(english, foreign): 1.0 for left, right in sentences for english in right for foreign in left}
    for _ in range(n_iterations):
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
