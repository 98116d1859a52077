"""The dictionary matcher: names of terms in a text, in any word order, inflection and spelling.

A text is split into folded words. Every run of words inside a clause is looked up as a multiset of words, first by the
words themselves, then by their classes. Coordinated phrases are expanded (*pits of the palms and soles*), abbreviations
that the text defines are resolved, and of overlapping matches the one with more words is kept.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import product
from math import log
from typing import TYPE_CHECKING, Any

from equipoise.domains.phenotypes.extraction.word_forms import (
    AMBIGUOUS_ABBREVIATIONS,
    CAPITALIZED_WORDS,
    COORDINATORS,
    MODIFIERS,
    NEGATIONS,
    OPTIONAL_WORDS,
    WORD_CLASSES,
    fold_word,
    is_everyday_word,
    split_compound,
)
from equipoise.domains.phenotypes.language import LANGUAGES, lexicon_entries

if TYPE_CHECKING:
    from equipoise.domains.phenotypes.index.lexicon import Translations
    from equipoise.domains.phenotypes.ontology import Ontology


class MatchKind(IntEnum):
    """How a name was matched, from exact to loose."""

    NAME = 0
    """The words of a name, in any order."""
    CLASS = 1
    """Words of the same classes as those of a name."""
    COORDINATED = 2
    """The words of a name, some of them shared with another item of a list."""
    COORDINATED_CLASS = 3
    """Both."""


@dataclass(frozen=True, slots=True)
class Mention:
    """A name in a text: characters ``start`` to ``end``, and the terms that have this name.

    ``is_label``: it is the label of its terms, not a synonym. ``n_words`` is the number of its content words.
    ``is_negated``: a negation is between its words, as in *the spleen is not enlarged*.
    """

    start: int
    end: int
    terms: tuple[int, ...]
    kind: MatchKind
    n_words: int
    is_label: bool
    is_abbreviation: bool = False
    is_negated: bool = False


@dataclass(slots=True)
class Token:
    """A word or mark of a text; ``key`` is the folded word and ``word_class`` its class."""

    start: int
    end: int
    text: str
    key: str
    word_class: str
    is_function_word: bool = False
    separator: str = ""
    """``and`` or a comma if the token separates the items of a list; a colon or bracket if it ends a clause."""
    is_boundary: bool = False
    is_word: bool = False
    """Whether it can be a word of a name."""
    is_modifier: bool = False
    """Whether it is a word that may be left out inside of a match."""
    is_negation: bool = False


_TOKEN = re.compile(r"[^\W_]+(?:['’]s)?|[^\w\s]|\n\s*\n|\n(?=\s*[-*•])")
_BOUNDARIES = frozenset('.;!?[]{}"„“”')
_MARKS = {":": ":", "(": "(", ")": "("}
"""Marks that end a clause, unless the name itself has them: *EMG: neuropathic changes*."""
_BETWEEN_DIGITS = re.compile(r"(?<=\d)\.(?=\d)")
_ABBREVIATION = re.compile(r"(?=(?:.*[A-Z]){2})[A-Za-z0-9]{2,6}")


def tokenize(text: str, language: str = "en", vocabulary: Callable[[str], bool] | None = None) -> list[Token]:
    """The words, list separators and clause boundaries of a text.

    With a vocabulary, a German compound that is not in it is split into parts that are.
    """
    optional_words, classes = OPTIONAL_WORDS[language], WORD_CLASSES[language]
    tokens = []
    for match in _TOKEN.finditer(text):
        word, (start, end) = match[0], match.span()
        folded = word.casefold()
        if not word[0].isalnum():
            if word in ",/&":
                tokens.append(Token(start, end, word, word, word, separator="," if word == "," else "and"))
            elif word in _MARKS:
                tokens.append(Token(start, end, word, word, word, separator=_MARKS[word]))
            elif (word in _BOUNDARIES or word[0] == "\n") and not _BETWEEN_DIGITS.match(text, start):
                tokens.append(Token(start, end, word, word, word, is_boundary=True))
        elif folded in COORDINATORS:
            tokens.append(Token(start, end, word, folded, folded, separator="and"))
        elif folded in optional_words:
            tokens.append(Token(start, end, word, folded, folded, is_function_word=True))
        else:
            stem = folded.removesuffix("'s").removesuffix("’s")
            key = fold_word(stem, language)
            parts: tuple[str, ...] = (key,)
            if vocabulary is not None and language == "de" and not vocabulary(key):
                parts = split_compound(stem, vocabulary) or parts
            is_modifier, is_negation = folded in MODIFIERS, folded in NEGATIONS
            tokens += [
                Token(
                    start,
                    end,
                    word,
                    part,
                    classes.get(part, part),
                    is_word=True,
                    is_modifier=is_modifier,
                    is_negation=is_negation,
                )
                for part in parts
            ]
    return tokens


@dataclass(frozen=True, slots=True)
class WordWeights:
    """The inverse document frequency of words over the names of the terms."""

    idf: dict[str, float]
    unknown: float

    def overlap(self, words: Sequence[Token], others: Sequence[Token]) -> float:
        """The weighted share of words that are among the others, by form, class, or the first six letters."""
        forms = {form for token in others for form in (token.key, token.word_class)}
        stems = {form[:_STEM] for form in forms if len(form) >= _STEM}
        total = shared = 0.0
        for token in words:
            weight = self.idf.get(token.word_class, self.unknown)
            total += weight
            if token.word_class in forms or token.key in forms or token.key[:_STEM] in stems:
                shared += weight
        return shared / total if total else 0.0


_STEM = 6


@dataclass(slots=True)
class _Entry:
    """The terms of one name; ``separators``: the commas and conjunctions in it, which a match may cross."""

    labels: list[int] = field(default_factory=list)
    synonyms: list[int] = field(default_factory=list)
    separators: frozenset[str] = frozenset()
    from_lexicon: bool = False

    @property
    def terms(self) -> tuple[int, ...]:
        return tuple(self.labels or self.synonyms)

    def add(self, term: int, *, is_label: bool) -> None:
        side = self.labels if is_label else self.synonyms
        if term not in side:
            side.append(term)


@dataclass(slots=True)
class _PartialMatch:
    """A name at some tokens; ``exclusive`` are those that no other match may use."""

    first: int
    last: int
    exclusive: tuple[int, ...]
    n_words: int
    entry: _Entry
    kind: MatchKind
    is_abbreviation: bool = False
    is_negated: bool = False


_Key = tuple[str, ...]
_MAX_WORDS = 12
_MAX_SHARED = 3
"""Maximum number of words that items of a list share, and that an item has."""
_MAX_SPAN_WORDS = 4
_MAX_BETWEEN = 2
"""Maximum number of words of the items between two items that share words."""
_MAX_SKIPPED = 6
"""Maximum number of modifiers and function words in a row inside of a match."""


class TermDictionary:
    """The names of some terms for texts of one language.

    Names of the lexicon come first: a name of the ontology with the same words is ignored, so that German
    *arterielle Hypertonie* is not the English *Hypertonia*. ``translations`` are further names of this language.
    """

    def __init__(
        self,
        ontology: Ontology,
        terms: Iterable[int],
        language: str = "en",
        *,
        translations: Translations | None = None,
    ) -> None:
        self.ontology, self.language = ontology, language
        self._by_word: dict[_Key, _Entry] = {}
        self._by_class: dict[_Key, _Entry] = {}
        self._abbreviations: dict[str, _Entry] = {}
        self._partners: dict[str, set[str]] = {}
        included = list(terms)
        allowed = set(included)
        index_of = {label.casefold(): index for index, label in enumerate(ontology.labels)}
        for label, names in lexicon_entries(language):
            # The lexicon is of the Human Phenotype Ontology; other ontologies have few of its labels.
            if index_of.get(label.casefold()) in allowed:
                for name in names:
                    self._add(name, index_of[label.casefold()], language, from_lexicon=True)
        for term in included:
            self._add(ontology.labels[term], term, "en", is_label=True)
            for synonym in ontology.synonyms[term]:
                self._add(synonym, term, "en")
        if translations is not None and _applies(translations, language):
            for name, label in translations.pairs:
                if index_of[label.casefold()] in allowed:
                    self._add(name, index_of[label.casefold()], language)

    def _add(self, name: str, term: int, language: str, *, is_label: bool = False, from_lexicon: bool = False) -> None:
        if _ABBREVIATION.fullmatch(name):
            # Abbreviations of two letters have too many meanings, except for those of the lexicon.
            if from_lexicon or (len(name) > 2 and name not in AMBIGUOUS_ABBREVIATIONS):
                self._put(self._abbreviations, name, term, is_label, from_lexicon)
            return
        tokens = tokenize(name, language)
        words = [token for token in tokens if token.is_word]
        if not 0 < len(words) <= _MAX_WORDS:
            return
        separators = frozenset(token.separator for token in tokens if token.separator)
        by_word = tuple(sorted(token.key for token in words))
        entry = self._put(self._by_word, by_word, term, is_label, from_lexicon)
        entry.separators |= separators
        self._add_partners(by_word)
        if not separators and len(words) > 1:
            by_class = tuple(sorted(token.word_class for token in words))
            self._put(self._by_class, by_class, term, is_label, from_lexicon)
            self._add_partners(by_class)

    @staticmethod
    def _put(entries: dict[Any, _Entry], key: Any, term: int, is_label: bool, from_lexicon: bool) -> _Entry:
        entry = entries.setdefault(key, _Entry(from_lexicon=from_lexicon))
        if from_lexicon or not entry.from_lexicon:
            entry.add(term, is_label=is_label)
        return entry

    def _add_partners(self, words: _Key) -> None:
        for word in words:
            self._partners.setdefault(word, set()).update(words)

    def mentions(self, text: str, offset: int = 0) -> list[Mention]:
        """The names in a text, in text order; of overlapping ones those with more words. ``offset`` is its start."""
        tokens = tokenize(text, self.language, self._is_known if self.language == "de" else None)
        matches = [*self._direct(tokens), *self._coordinated(tokens), *self._short(tokens)]
        used: set[int] = set()
        chosen: list[_PartialMatch] = []
        # More exclusive words first, then the more exact kind, then the earlier match.
        for match in sorted(matches, key=lambda match: (-len(match.exclusive), match.kind, match.first)):
            if used.isdisjoint(match.exclusive):
                used.update(match.exclusive)
                chosen.append(match)
        chosen = _resolve_defined_abbreviations(tokens, chosen)
        mentions = [
            Mention(
                offset + tokens[match.first].start,
                offset + tokens[match.last].end,
                match.entry.terms,
                match.kind,
                match.n_words,
                bool(match.entry.labels),
                match.is_abbreviation,
                match.is_negated,
            )
            for match in chosen
        ]
        return sorted(mentions, key=lambda mention: (mention.start, mention.end))

    def free_spans(self, text: str, mentions: Sequence[Mention]) -> list[tuple[int, int]]:
        """Phrases outside of the mentions that may name a term, for a dense model.

        In English, runs of two to four words of which neighbours occur together in a name. In German, where names of
        the ontology have other words, runs of up to four words that end with a noun.
        """
        tokens = tokenize(text, self.language)
        is_mention = bytearray(len(text))
        for mention in mentions:
            is_mention[mention.start : mention.end] = b"\1" * (mention.end - mention.start)
        spans = []
        for first, start in enumerate(tokens):
            if not start.is_word or is_mention[start.start]:
                continue
            n_words, last_word = 0, start
            for token in tokens[first:]:
                if token.is_boundary or token.separator or is_mention[token.start] or n_words == _MAX_SPAN_WORDS:
                    break
                if token.is_function_word:
                    continue
                if n_words and self.language == "en" and not self._are_partners(last_word, token):
                    break
                n_words, last_word = n_words + 1, token
                if token.text[0].isupper() if self.language == "de" else n_words > 1:
                    spans.append((start.start, token.end))
        return spans

    def _are_partners(self, token: Token, other: Token) -> bool:
        return (
            other.key in self._partners.get(token.key, _NOTHING)
            or other.word_class in self._partners.get(token.word_class, _NOTHING)
        )  # fmt: skip

    def word_weights(self) -> WordWeights:
        """The inverse document frequency of the word classes over all names."""
        counts = Counter(word for key in (*self._by_word, *self._by_class) for word in set(key))
        total = len(self._by_word) + len(self._by_class)
        return WordWeights({word: log(total / (count + 1)) for word, count in counts.items()}, log(total))

    def _is_known(self, word: str) -> bool:
        return word in self._partners or word in WORD_CLASSES[self.language]

    def _direct(self, tokens: Sequence[Token]) -> Iterator[_PartialMatch]:
        """Runs of words within a clause that are a name."""
        for first, start in enumerate(tokens):
            if not start.is_word:
                continue
            by_word, by_class = self._partners.get(start.key, _NOTHING), self._partners.get(start.word_class, _NOTHING)
            if not by_word and not by_class:
                continue
            run: list[int] = []
            separators: set[str] = set()
            negation: int | None = None
            n_skipped = 0
            for last in range(first, len(tokens)):
                token = tokens[last]
                if token.is_boundary or len(run) == _MAX_WORDS or n_skipped > _MAX_SKIPPED:
                    break
                if token.is_negation and run and not tokens[last - 1].separator:
                    if self._look_up(tokens, run):
                        break  # In *the seizures are not febrile* there are seizures.
                    negation = last
                if token.is_word and (token.key in by_word or token.word_class in by_class):
                    run.append(last)
                    n_skipped = 0
                    entry = self._look_up_run(tokens, run)
                    if entry is None or (len(run) == 1 and self._is_other_word(token, entry[0])):
                        continue
                    if separators <= entry[0].separators:
                        # A name such as *does not sweat* has the negation itself.
                        is_negated = negation is not None and not (negation in run and self._look_up(tokens, run))
                        yield _PartialMatch(first, last, tuple(run), len(run), *entry, is_negated=is_negated)
                elif token.is_word and not token.is_modifier:
                    break
                else:
                    n_skipped += 1
                    if token.separator:
                        separators.add(token.separator)

    def _is_other_word(self, token: Token, entry: _Entry) -> bool:
        """Whether a single word rarely means the finding; German verbs may look like a name: *warten* and *warts*."""
        is_verb = self.language == "de" and token.text[0].islower() and token.text.endswith("en")
        return is_everyday_word(token.text, token.key) or (is_verb and not entry.from_lexicon)

    def _look_up_run(self, tokens: Sequence[Token], run: Sequence[int]) -> tuple[_Entry, MatchKind] | None:
        """The name of a run of words, with or without the modifiers inside of it."""
        entry = self._look_up(tokens, run)
        if entry is None and len(run) > 2:
            inner = [at for at in run[1:-1] if not tokens[at].is_modifier]
            if len(inner) < len(run) - 2:
                entry = self._look_up(tokens, [run[0], *inner, run[-1]])
        return entry

    def _look_up(
        self, tokens: Sequence[Token], places: Sequence[int], *, coordinated: bool = False
    ) -> tuple[_Entry, MatchKind] | None:
        entry = self._by_word.get(tuple(sorted([tokens[at].key for at in places])))
        if entry is not None:
            return entry, MatchKind.COORDINATED if coordinated else MatchKind.NAME
        entry = self._by_class.get(tuple(sorted([tokens[at].word_class for at in places])))
        if entry is not None:
            return entry, MatchKind.COORDINATED_CLASS if coordinated else MatchKind.CLASS
        return None

    def _coordinated(self, tokens: Sequence[Token]) -> Iterator[_PartialMatch]:
        """Names whose words are shared by the items of a list: *genital and nail anomalies*."""
        for items in _lists(tokens):
            for index, item in enumerate(items[:-1]):
                for later in items[index + 1 :]:
                    yield from self._shared_end(tokens, item, later)
                    yield from self._shared_start(tokens, item, later)
                    if len(later) > _MAX_BETWEEN:
                        break

    def _shared_end(
        self, tokens: Sequence[Token], item: Sequence[int], later: Sequence[int]
    ) -> Iterator[_PartialMatch]:
        """*aplastic* or hypoplastic *nails*: the end of an item with later words of a later item."""
        for modifier, head in product(
            [item[-size:] for size in range(1, min(_MAX_SHARED, len(item)) + 1)],
            [
                later[start:end]
                for start in range(1, min(_MAX_SHARED + 1, len(later)))
                for end in range(start + 1, min(start + _MAX_SHARED, len(later)) + 1)
            ],
        ):
            yield from self._shared(tokens, modifier, head, modifier[0], head[-1])

    def _shared_start(
        self, tokens: Sequence[Token], item: Sequence[int], later: Sequence[int]
    ) -> Iterator[_PartialMatch]:
        """*pits of the* palms and *soles*: the start of an item with the start of a later one."""
        for modifier, head in product(
            [
                later[:size]
                for size in range(1, min(_MAX_SHARED, len(later)) + 1)
                # The words of the later item end with it or before a function word.
                if size == len(later) or tokens[later[size - 1] + 1].is_function_word
            ],
            [
                item[max(0, end - size) : end]
                for end in range(max(1, len(item) - 2), len(item))
                for size in range(1, min(_MAX_SHARED, end) + 1)
                # *Pits of the palms and soles*, but not *preauricular pits, hearing loss and cysts*.
                if tokens[item[end - 1] + 1].is_function_word or len(later) == 1
            ],
        ):
            yield from self._shared(tokens, modifier, head, head[0], modifier[-1])

    def _shared(
        self, tokens: Sequence[Token], modifier: Sequence[int], head: Sequence[int], first: int, last: int
    ) -> Iterator[_PartialMatch]:
        if not self._are_partners(tokens[modifier[0]], tokens[head[0]]):
            return
        entry = self._look_up(tokens, [*modifier, *head], coordinated=True)
        if entry is not None:
            between = range(first + 1, last)
            is_negated = any(tokens[at].is_negation and not tokens[at - 1].separator for at in between)
            yield _PartialMatch(first, last, tuple(modifier), len(modifier) + len(head), *entry, is_negated=is_negated)

    def _short(self, tokens: Sequence[Token]) -> Iterator[_PartialMatch]:
        """Abbreviations, in their upper and lower case."""
        for index, token in enumerate(tokens):
            entry = self._abbreviations.get(token.text)
            if entry is not None and not (token.text in CAPITALIZED_WORDS and _is_in_capitals(tokens, index)):
                yield _PartialMatch(index, index, (index,), 1, entry, MatchKind.NAME, is_abbreviation=True)


_NOTHING: frozenset[str] = frozenset()


def _is_in_capitals(tokens: Sequence[Token], index: int) -> bool:
    """Whether a word near a word is in capital letters and too long for an abbreviation."""
    return any(len(token.text) > 4 and token.text.isupper() for token in tokens[max(0, index - 3) : index + 4])


def _applies(translations: Translations, language: str) -> bool:
    """Whether translated names may be in texts of a language: texts of other languages are read as English."""
    return language in translations.languages or not set(LANGUAGES) & set(translations.languages)


def _lists(tokens: Sequence[Token]) -> Iterator[list[list[int]]]:
    """The lists of a text: for each clause with separators, the word positions of its items."""
    items: list[list[int]] = [[]]
    for index, token in enumerate(tokens):
        if token.is_boundary or token.separator in _MARKS:
            yield from _if_list(items)
            items = [[]]
        elif token.separator:
            if items[-1]:
                items.append([])
        elif token.is_word and not token.is_negation:
            items[-1].append(index)
    yield from _if_list(items)


def _if_list(items: list[list[int]]) -> Iterator[list[list[int]]]:
    listed = [item for item in items if item]
    if len(listed) > 1:
        yield listed


def _resolve_defined_abbreviations(tokens: Sequence[Token], matches: list[_PartialMatch]) -> list[_PartialMatch]:
    """Give abbreviations the meaning that the text defines: *branchio-oto (BO) syndrome* is no body odor.

    An abbreviation in brackets after words with its initials means these words: their term if they are a name,
    otherwise no term.
    """
    defined = {
        tokens[at].text: _long_form(tokens, at)
        for at in range(2, len(tokens) - 1)
        if tokens[at - 1].text in "([" and tokens[at + 1].text in ")]" and _ABBREVIATION.fullmatch(tokens[at].text)
    }
    meanings: dict[str, _Entry | None] = {}
    for short, long_form in defined.items():
        if long_form:
            named = [
                match
                for match in matches
                if not match.is_abbreviation and 2 * len(set(match.exclusive) & set(long_form)) > len(long_form)
            ]
            meanings[short] = max(named, key=lambda match: match.n_words).entry if named else None
    resolved = [match for match in matches if not (match.is_abbreviation and tokens[match.first].text in meanings)]
    for index, token in enumerate(tokens):
        entry = meanings.get(token.text)
        if entry is not None:
            resolved.append(_PartialMatch(index, index, (index,), 1, entry, MatchKind.NAME, is_abbreviation=True))
    return resolved


def _long_form(tokens: Sequence[Token], at: int) -> list[int]:
    """The words before the bracket of an abbreviation whose initials are its first letters; empty if there are none."""
    letters = [letter for letter in tokens[at].text.casefold() if letter.isalpha()]
    words: list[int] = []
    for index in range(at - 2, max(-1, at - 2 - 2 * len(letters)), -1):
        if tokens[index].is_boundary or tokens[index].separator in _MARKS:
            break
        if tokens[index].is_word:
            words.insert(0, index)
            if tokens[index].text.casefold()[0] == letters[0] and len(words) >= len(letters) - 1:
                return words
    return []
