"""The extractor: candidates of a document from the dictionary, from a dense or lexical model, or from both.

The model scores phrases that the dictionary does not match. Both kinds of candidates get a calibrated confidence, so
that one threshold applies to both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.domains.phenotypes.config import ExtractionConfig, make_config
from equipoise.domains.phenotypes.defaults import DEFAULT_EXTRACTOR
from equipoise.domains.phenotypes.extraction.candidates import (
    SCORE_DECIMALS,
    SPAN,
    Candidates,
    ClinicalText,
    TextSpan,
    search_chunks,
    split_documents,
    to_documents,
)
from equipoise.domains.phenotypes.extraction.dictionary import Mention, TermDictionary, Token, WordWeights, tokenize
from equipoise.domains.phenotypes.extraction.predict import Predictions, predict
from equipoise.domains.phenotypes.extraction.splitters import get_splitters
from equipoise.domains.phenotypes.index.build import open_indexes, resolve_index_dir
from equipoise.domains.phenotypes.index.lexicon import Translations, read_translations
from equipoise.domains.phenotypes.index.retriever import TermHits, TermRetriever, dense_models
from equipoise.domains.phenotypes.ontology import Ontology, load_ontology
from equipoise.errors import EquipoiseError, ParameterError
from equipoise.models.encoder import ModelCard
from equipoise.models.retriever import content_fingerprint, open_retriever, resolve_models

if TYPE_CHECKING:
    from equipoise.types import Bools, Floats, Ints

DICTIONARY = "dict"
"""The spec of the dictionary without a model."""
_DICTIONARY_CARD = ModelCard("dictionary", DICTIONARY, note="labels, synonyms and a lexicon of names")
_VERSION = "extractor 2"


# Confidence: mentions of the dictionary and spans of a model have one logistic model each, which
# scripts/fit_confidence.py fits on gold annotations; it reports the calibration by cross-validation over documents.


@dataclass(frozen=True)
class LogisticModel:
    """A logistic regression: the intercept, then one weight per feature."""

    weights: tuple[float, ...]

    def probability(self, features: Floats) -> Floats:
        logits = self.weights[0] + features @ np.array(self.weights[1:])
        chance: Floats = 1.0 / (1.0 + np.exp(-logits))
        return chance


def mention_features(mentions: Sequence[Mention]) -> Floats:
    """By class, coordinated, one word, more than two words, synonym, abbreviation, ambiguous."""
    rows = [
        (
            mention.kind in (1, 3),
            mention.kind >= 2,
            mention.n_words == 1,
            mention.n_words > 2,
            not mention.is_label,
            mention.is_abbreviation,
            len(mention.terms) > 1,
        )
        for mention in mentions
    ]
    return np.array(rows, dtype=np.float64).reshape(len(mentions), 7)


def span_features(
    scores: Floats, margins: Floats, overlaps: Floats, n_words: Floats, n_name_words: Floats, is_german: Bools
) -> Floats:
    """Score, margin, both overlaps and their minimum, and numbers of words; each also for German alone.

    ``overlaps`` has two columns: of the span by the name, and of the name by the span.
    """
    columns = np.column_stack(
        [scores, margins, overlaps, overlaps.min(axis=1, initial=1.0), n_words == 1, n_words, n_name_words]
    ).astype(np.float64)
    german = np.asarray(is_german, dtype=np.float64)[:, None]
    return np.hstack([columns, columns * german, german])


MENTION_MODEL = LogisticModel((2.346, -1.019, -1.214, -0.081, 0.214, -0.478, 1.247, -1.136))
"""Fitted on 1,131 mentions; Brier score .115 on held-out documents, base rate .122."""
SPAN_MODEL = LogisticModel(
    (-7.975, 3.489, 3.028, 0.267, 3.355, 0.378, -0.323, 0.172, 0.09,
     2.296, 2.532, -1.587, 1.895, -1.197, -0.323, -0.378, 0.645, -0.944)
)  # fmt: skip
"""Fitted on 6,786 phrases with scores of ``use``; Brier score .036 on held-out documents, base rate .049."""


def is_dictionary(model: Any) -> bool:
    """Whether a model is the dictionary alone: ``dict`` or ``dict:``."""
    return isinstance(model, str) and model.removesuffix(":") == DICTIONARY


def resolve_extraction_models(models: Any) -> dict[str, Any]:
    """The models by name, as ``resolve_models``; ``dict`` is the dictionary alone."""
    listed = [models] if isinstance(models, str) or not isinstance(models, Iterable) else list(models)
    listed = [DICTIONARY if is_dictionary(model) else model for model in listed]
    others = [model for model in listed if model != DICTIONARY]
    if len(listed) - len(others) > 1:
        raise ParameterError("the model dict is named twice", hint="name each model once")
    resolved = resolve_models(others) if others or not listed else {}
    names = iter(resolved.items())
    return dict((DICTIONARY, DICTIONARY) if model == DICTIONARY else next(names) for model in listed)


class TermExtractor:
    """Finds candidate terms of documents.

    Parameters
    ----------
    ontology
        The ontology.
    system
        The term retriever for phrases outside of the dictionary; None for the dictionary alone.
    dictionary
        Whether the dictionary is used. Without it, all chunks are scored by the system, and scores are similarities.
    branch
        Only terms below this one are found; None for all terms.
    chunkers
        ``span`` for phrases that may name a term, or splitters, coarse first.
    translations
        Translated labels and synonyms, which the dictionary also matches.
    """

    def __init__(
        self,
        ontology: Ontology,
        system: TermRetriever | None,
        *,
        dictionary: bool = True,
        branch: str | None = None,
        chunkers: Sequence[Any] = (SPAN,),
        translations: Translations | None = None,
    ) -> None:
        if system is None and not dictionary:
            raise ParameterError(
                "dict without the dictionary finds nothing", hint="name a model, or omit --no-dictionary"
            )
        self.ontology, self.system = ontology, system
        self.uses_dictionary, self.branch = dictionary, branch
        self.translations = translations
        embedder = None if system is None else next(iter(dense_models(system.system)), None)
        self.splitters = () if tuple(chunkers) == (SPAN,) else get_splitters(chunkers, embedder)
        self._dictionaries: dict[str, TermDictionary] = {}
        self._weights: dict[str, WordWeights] = {}

    @classmethod
    def of(cls, settings: ExtractionConfig, ontology: Ontology, system: TermRetriever | None) -> TermExtractor:
        """The extractor of a configuration; translations are those of the retriever, if there is one."""
        translations = None if system is None else system.translations
        if system is None and settings.translations:
            translations = read_translations(settings.translations, ontology)
        return cls(
            ontology,
            system,
            dictionary=settings.dictionary,
            branch=settings.branch_in(ontology),
            chunkers=settings.chunkers,
            translations=translations,
        )

    @property
    def card(self) -> ModelCard:
        """The card of the model, or of the dictionary."""
        return _DICTIONARY_CARD if self.system is None else self.system.card

    @property
    def fingerprint(self) -> str:
        """Equal only if the candidates are equal for every document."""
        system = "" if self.system is None else self.system.fingerprint
        choices = f"{self.branch} {self.generator_names}"
        translations = "" if self.translations is None else self.translations.fingerprint
        return content_fingerprint(_VERSION, system, self.ontology.fingerprint, choices, translations)

    @cached_property
    def allowed(self) -> Bools:
        """The terms below the branch, or all terms."""
        if self.branch is None:
            return np.ones(len(self.ontology), dtype=np.bool_)
        root = self.ontology.index_of(self.branch)
        allowed = np.zeros(len(self.ontology), dtype=np.bool_)
        allowed[self.ontology.descendants(root)] = True
        allowed[root] = False
        return allowed

    def dictionary(self, language: str) -> TermDictionary:
        """The dictionary for texts of a language, built at first use."""
        if language not in self._dictionaries:
            self._dictionaries[language] = TermDictionary(
                self.ontology, np.flatnonzero(self.allowed).tolist(), language, translations=self.translations
            )
        return self._dictionaries[language]

    def prepare(self, documents: Iterable[ClinicalText]) -> None:
        """Build what is built at first use, so that it does not count as time per document."""
        if self.system is not None:
            assert self.system.fitted is not None
        if self.uses_dictionary:
            for language in {language for document in documents for _, _, language in document.segments}:
                self._word_weights(language)

    def candidates(
        self,
        documents: Iterable[ClinicalText] | Mapping[str, str],
        *,
        num_results: int = 10,
        progress: Callable[[int, int], None] | None = None,
    ) -> Candidates:
        """The candidates of all documents; every distinct phrase is scored once, with ``progress`` over the phrases."""
        listed = to_documents(documents)
        mentions = [self.mentions(document) for document in listed]
        return self._combined(listed, mentions, self.spans(listed, mentions), num_results, progress)

    def dictionary_predictions(self, documents: Iterable[ClinicalText] | Mapping[str, str]) -> Predictions:
        """The predictions of the dictionary alone, with default settings."""
        if not self.uses_dictionary:
            dictionary = TermExtractor(self.ontology, None, branch=self.branch, translations=self.translations)
            return dictionary.dictionary_predictions(documents)
        listed = to_documents(documents)
        mentions = [self.mentions(document) for document in listed]
        return predict(self._combined(listed, mentions, [], 1), num_results=1)

    def candidates_for_spans(
        self, documents: Sequence[ClinicalText], spans: Sequence[TextSpan], *, num_results: int = 10
    ) -> Candidates:
        """The candidates of given spans: the longest dictionary match of each, otherwise those of the model."""
        mentions: list[list[Mention]] = [[] for _ in documents]
        free = []
        for span in spans:
            inside = self.mentions(ClinicalText("span", span.text, documents[span.document].language_at(span.start)))
            if inside:
                best = max(inside, key=lambda mention: (mention.n_words, mention.end - mention.start))
                mentions[span.document].append(replace(best, start=span.start, end=span.end))
            else:
                free.append(span)
        return self._combined(tuple(documents), mentions, free, num_results)

    def mentions(self, document: ClinicalText) -> list[Mention]:
        """The names that the dictionary finds in a document; none if it is not used."""
        if not self.uses_dictionary:
            return []
        return [
            mention
            for start, end, language in document.segments
            for mention in self.dictionary(language).mentions(document.text[start:end], start)
        ]

    def spans(self, documents: Sequence[ClinicalText], mentions: Sequence[Sequence[Mention]]) -> list[TextSpan]:
        """The phrases or chunks for the model, without those that overlap a mention."""
        if self.system is None:
            return []
        if not self.splitters:
            return [
                TextSpan(index, start, end, document.text[start:end])
                for index, (document, mention) in enumerate(zip(documents, mentions, strict=True))
                for start, end in self._free_spans(document, mention)
            ]
        chunks = split_documents(documents, self.splitters)
        return [
            chunk
            for chunk in chunks
            if not any(chunk.start < mention.end and mention.start < chunk.end for mention in mentions[chunk.document])
        ]

    def _free_spans(self, document: ClinicalText, mentions: Sequence[Mention]) -> Iterator[tuple[int, int]]:
        for first, last, language in document.segments:
            inside = [
                replace(mention, start=mention.start - first, end=mention.end - first)
                for mention in mentions
                if first <= mention.start < last
            ]
            for start, end in self.dictionary(language).free_spans(document.text[first:last], inside):
                yield first + start, first + end

    def _combined(
        self,
        documents: tuple[ClinicalText, ...],
        mentions: Sequence[Sequence[Mention]],
        spans: Sequence[TextSpan],
        num_results: int,
        progress: Callable[[int, int], None] | None = None,
    ) -> Candidates:
        """One set of candidates: rows of mentions, then rows of spans, by document."""
        pairs = [(index, mention) for index, listed in enumerate(mentions) for mention in listed]
        depth = min(num_results, len(self.ontology))
        terms = np.full((len(pairs), depth), -1, dtype=np.int64)
        scores = np.full((len(pairs), depth), -np.inf)
        confidence = MENTION_MODEL.probability(mention_features([mention for _, mention in pairs]))
        for row, (_, mention) in enumerate(pairs):
            n_terms = min(depth, len(mention.terms))
            terms[row, :n_terms] = mention.terms[:n_terms]
            scores[row, :n_terms] = confidence[row]
        rows = [(index, mention.start, mention.end) for index, mention in pairs]
        if self.system is not None:
            hits = search_chunks(spans, self.system, num_results=depth, allowed=self.allowed, progress=progress)
            if self.uses_dictionary:
                hits = self._calibrated(documents, spans, hits)
            terms, scores = np.vstack([terms, hits.terms]), np.vstack([scores, hits.scores])
            rows += [(span.document, span.start, span.end) for span in spans]
        distinct, coded = np.unique(terms, return_inverse=True)
        if len(distinct) and distinct[0] < 0:
            # Missing terms are never selected: their code does not matter.
            distinct, coded = distinct[1:], np.maximum(coded - 1, 0)
        document, start, end = np.array(rows, dtype=np.int64).reshape(-1, 3).T
        return Candidates(
            documents,
            document,
            start,
            end,
            coded.reshape(terms.shape).astype(np.int64),
            np.round(scores, SCORE_DECIMALS).astype(np.float64),
            term_ids=tuple(self.ontology.ids[term] for term in distinct.tolist()),
            chunkers=self.generator_names,
            system=self.card.spec,
            fingerprint=self.fingerprint,
            is_mention=np.arange(len(rows)) < len(pairs),
            is_negated=np.array(
                [mention.is_negated for _, mention in pairs] + [False] * (len(rows) - len(pairs)),
                dtype=np.bool_,
            ),
        )

    @property
    def generator_names(self) -> tuple[str, ...]:
        """The names of the dictionary and the chunkers, where they are used."""
        chunkers = [splitter.name for splitter in self.splitters] or [SPAN]
        return (*(["dictionary"] if self.uses_dictionary else []), *(chunkers if self.system else []))

    def _calibrated(self, documents: Sequence[ClinicalText], spans: Sequence[TextSpan], hits: TermHits) -> TermHits:
        """The hits with the confidence of each term as its score, best first."""
        rows, slots = np.nonzero(np.isfinite(hits.scores))
        scores = np.full(hits.scores.shape, -np.inf)
        scores[rows, slots] = SPAN_MODEL.probability(self.hit_features(documents, spans, hits, rows, slots))
        order = np.argsort(-scores, axis=1, kind="stable")
        columns = (hits.terms, scores, hits.component)
        return TermHits(*(np.take_along_axis(values, order, axis=1) for values in columns))

    def hit_features(
        self,
        documents: Sequence[ClinicalText],
        spans: Sequence[TextSpan],
        hits: TermHits,
        rows: Ints,
        slots: Ints,
    ) -> Floats:
        """The features of the hits of some rows and slots, from which their confidence is computed."""
        assert self.system is not None
        german = np.array([documents[span.document].language_at(span.start) == "de" for span in spans], dtype=np.bool_)
        words = [_words(span.text, "de" if is_german else "en") for span, is_german in zip(spans, german, strict=True)]
        names, scores = self.system.components.texts, hits.scores.astype(np.float64)
        overlaps, n_name_words = np.empty((len(rows), 2)), np.empty(len(rows))
        for index, (row, slot) in enumerate(zip(rows.tolist(), slots.tolist(), strict=True)):
            name = _words(names[hits.component[row, slot]], "en")
            weights = self._word_weights("de" if german[row] else "en")
            overlaps[index] = weights.overlap(words[row], name), weights.overlap(name, words[row])
            n_name_words[index] = len(name)
        return span_features(
            scores[rows, slots],
            _margins(scores)[rows, slots],
            overlaps,
            np.array([len(words[row]) for row in rows.tolist()]),
            n_name_words,
            german[rows],
        )

    def _word_weights(self, language: str) -> WordWeights:
        if language not in self._weights:
            self._weights[language] = self.dictionary(language).word_weights()
        return self._weights[language]


@lru_cache(maxsize=1 << 16)
def _words(text: str, language: str) -> tuple[Token, ...]:
    return tuple(token for token in tokenize(text, language) if token.is_word)


def _margins(scores: Floats) -> Floats:
    """The difference of each score from the best of the others in its row."""
    if scores.shape[1] == 1:
        return np.zeros(scores.shape)
    finite = np.where(np.isfinite(scores), scores, 0.0)
    others = np.repeat(finite[:, :1], scores.shape[1], axis=1)
    others[:, 0] = finite[:, 1]
    return finite - others


@contextmanager
def open_term_extractor(model: Any, ontology: Ontology, settings: ExtractionConfig) -> Iterator[TermExtractor]:
    """The extractor of a model or of ``dict``; without a stored index all terms are embedded first."""
    if is_dictionary(model):
        yield TermExtractor.of(settings, ontology, None)
        return
    with open_retriever(model, threads=settings.threads) as system:
        folder = resolve_index_dir(settings.index_dir)
        try:
            indexes = open_indexes(folder, ontology, system, settings.multi_vector)
        except EquipoiseError:
            if settings.index_dir is not None:
                raise
            indexes = ()
        retriever = TermRetriever(
            system,
            ontology,
            multi_vector=settings.multi_vector,
            strategy=settings.strategy,
            index=indexes,
            translations=read_translations(settings.translations, ontology) if settings.translations else None,
        )
        yield TermExtractor.of(settings, ontology, retriever)


def missing_index_notes(extractor: TermExtractor) -> tuple[str, ...]:
    """A note for a dense model without a stored index."""
    system = extractor.system
    if system is None or system.indexes or not dense_models(system.system):
        return ()
    flag = " --multi-vector" if system.multi_vector else ""
    return (
        f"no index of {system.card.spec} is stored, so all texts of the terms had to be embedded: "
        f"eq phenotypes index build --model {system.card.spec}{flag} makes one, once",
    )


def extract(
    texts: str | Mapping[str, str] | Iterable[ClinicalText],
    model: str = DEFAULT_EXTRACTOR,
    ontology: str = "hpo",
    **settings: Any,
) -> Predictions:
    """Extract the terms of one text or of several, with their assertions.

    The ontology, the dictionary and the model are kept for further calls.

    Parameters
    ----------
    texts
        A text, a mapping from ids to texts, or documents.
    model
        A model spec for the phrases that the dictionary does not match; ``dict`` for the dictionary alone.
    ontology
        ``hpo``, or the path of an OBO file.
    **settings
        Settings as in ``run_extraction``.

    Returns
    -------
    Predictions
        The terms of each document, best first; those of a single text are of the document ``text``.

    Examples
    --------
    >>> extract("No fever, but seizures.", "dict").sets()  # doctest: +SKIP
    {'text': [('HP:0001250', 'affirmed'), ('HP:0001945', 'negated')]}
    """
    chosen = make_config(settings)
    extractor = _kept_extractor(model, ontology, chosen)
    documents = to_documents({"text": texts} if isinstance(texts, str) else texts)
    pipeline = chosen.limited_to(len(extractor.ontology)).pipeline
    candidates = extractor.candidates(documents, num_results=pipeline.num_results)
    return predict(candidates, **pipeline.record())


@lru_cache(maxsize=4)
def _kept_extractor(model: str, ontology: str, settings: ExtractionConfig) -> TermExtractor:
    # The context stays open: the model is used by further calls.
    return open_term_extractor(model, load_ontology(ontology), settings).__enter__()
