"""TF-IDF, compared with scikit-learn, and properties of the cosine."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from equipoise.errors import ParameterError, UnknownNameError
from equipoise.models import lexical
from equipoise.models.analyzer import fold_case
from equipoise.models.lexical import FittedTfidf, TfidfRetriever
from equipoise.models.retriever import retriever

DOCUMENTS = [
    "Short stature, disproportionate",
    "Kleinwuchs; disproportionierter Kleinwuchs",
    "a  b\tcd\nefg hijk lmnop",
    "Größe über dem Durchschnitt",
    "短い 身長 αβγδεζηθ Σίσυφος",
    "short short short stature",
    "!!!",
]
QUERIES = ["kleinwuchs", "short stature", "GRÖSSE", "zzz qqq", "身長 b", "ab"]

TEXT = st.text(alphabet="abé ß\t字", min_size=1, max_size=12).filter(str.strip)
CORPUS = st.lists(TEXT, min_size=1, max_size=6)


def all_scores(fitted, queries):
    table = np.full((len(queries), len(fitted)), np.nan)
    for rows, scores in fitted.score_blocks(queries):
        table[rows] = scores
    return table


def scikit_learn_scores(documents, queries, **options):
    text = pytest.importorskip("sklearn.feature_extraction.text")
    vectoriser = text.TfidfVectorizer(preprocessor=fold_case, **options)
    try:
        table = vectoriser.fit_transform(documents)
    except ValueError:  # "empty vocabulary"
        return np.zeros((len(queries), len(documents)))
    return (vectoriser.transform(queries) @ table.T).toarray()


@pytest.mark.parametrize("lengths", [(3, 5), (1, 1), (1, 3), (2, 2), (5, 7), (4, 4)])
@pytest.mark.parametrize("sublinear", [False, True])
def test_character_scores_agree_with_scikit_learn(lengths, sublinear):
    scores = all_scores(TfidfRetriever(ngrams=lengths, sublinear=sublinear).fit(DOCUMENTS), QUERIES)
    expected = scikit_learn_scores(DOCUMENTS, QUERIES, analyzer="char_wb", ngram_range=lengths, sublinear_tf=sublinear)
    assert scores == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("lengths", [(1, 1), (1, 2), (2, 3)])
def test_word_scores_agree_with_scikit_learn(lengths):
    scores = all_scores(TfidfRetriever("word", lengths).fit(DOCUMENTS), QUERIES)
    expected = scikit_learn_scores(DOCUMENTS, QUERIES, analyzer="word", ngram_range=lengths, token_pattern=r"\w+")
    assert scores == pytest.approx(expected, abs=1e-12)


@settings(deadline=None, max_examples=80)
@given(CORPUS, st.lists(TEXT, min_size=1, max_size=3), st.sampled_from([(3, 5), (1, 2), (4, 6)]))
@example(["ß"], ["s"], (1, 2))
def test_scores_of_any_texts_agree_with_scikit_learn(documents, queries, lengths):
    scores = all_scores(TfidfRetriever(ngrams=lengths).fit(documents), queries)
    expected = scikit_learn_scores(documents, queries, analyzer="char_wb", ngram_range=lengths)
    assert scores == pytest.approx(expected, abs=1e-9)


def test_ngram_keys_beyond_the_largest_code_give_exact_scores(monkeypatch):
    expected = all_scores(TfidfRetriever(ngrams=(2, 6)).fit(DOCUMENTS), QUERIES)
    monkeypatch.setattr(lexical, "_MAX_CODE", 3000)
    assert all_scores(TfidfRetriever(ngrams=(2, 6)).fit(DOCUMENTS), QUERIES) == pytest.approx(expected, abs=1e-12)


def test_thousands_of_different_characters_have_distinct_ngrams():
    rng = np.random.default_rng(0)
    documents = ["".join(map(chr, row)) for row in rng.integers(0x4E00, 0x9FA0, (600, 20))]
    hits = TfidfRetriever(ngrams=(3, 7)).fit(documents).search([text[5:15] for text in documents], 1)
    assert hits.indices[:, 0].tolist() == list(range(600))


@settings(deadline=None, max_examples=60)
@given(CORPUS)
def test_documents_have_cosine_one_with_themselves(documents):
    scores = all_scores(TfidfRetriever(ngrams=(1, 3)).fit(documents), documents)
    assert np.diag(scores) == pytest.approx(np.ones(len(documents)))
    assert (scores <= 1 + 1e-12).all()
    assert (scores >= 0).all()


@settings(deadline=None, max_examples=60)
@given(CORPUS)
def test_the_cosine_is_symmetric(documents):
    scores = all_scores(TfidfRetriever().fit(documents), documents)
    assert scores == pytest.approx(scores.T, abs=1e-12)


@settings(deadline=None, max_examples=60)
@given(CORPUS, TEXT, st.integers(2, 4))
def test_repeated_queries_have_the_same_scores(documents, query, times):
    fitted = TfidfRetriever().fit(documents)
    once, repeated = all_scores(fitted, [query, " ".join([query] * times)])
    assert repeated == pytest.approx(once, abs=1e-12)


@settings(deadline=None, max_examples=60)
@given(CORPUS, TEXT)
def test_documents_without_common_ngrams_score_zero(documents, query):
    scores = all_scores(TfidfRetriever().fit([*documents, "xyzzy"]), [query])[0]
    assert scores[-1] == 0.0


@settings(deadline=None, max_examples=60)
@given(CORPUS, TEXT, st.randoms(use_true_random=False))
def test_scores_do_not_depend_on_the_order_of_documents(documents, query, random):
    order = list(range(len(documents)))
    random.shuffle(order)
    original = all_scores(TfidfRetriever().fit(documents), [query])[0]
    shuffled = all_scores(TfidfRetriever().fit([documents[i] for i in order]), [query])[0]
    assert shuffled.tolist() == original[order].tolist()


def test_equal_documents_tie_in_their_order():
    hits = TfidfRetriever().fit(["blue", "red fox", "red fox"]).search(["red"], 3)
    assert hits.indices.tolist() == [[1, 2, 0]]
    assert hits.scores[0, 0] == hits.scores[0, 1]


def test_documents_without_any_ngram_score_zero():
    assert all_scores(TfidfRetriever("word").fit(["!", "?"]), ["a"]).tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize("spec", ["tfidf:", "tfidf:,ngrams=2-4", "tfidf:,analyzer=word,stopwords=en,sublinear=true"])
def test_the_spec_of_the_card_gives_the_same_system(spec):
    assert retriever(retriever(spec).card.spec) == retriever(spec)


def test_lengths_may_be_given_as_a_pair():
    assert retriever("tfidf:", ngrams=(2, 4)) == retriever("tfidf:,ngrams=2-4")


@pytest.mark.parametrize(
    ("spec", "error_type", "fragment"),
    [
        ("tfidf:,ngrams=5-3", ParameterError, "5-3"),
        ("tfidf:,ngrams=0-2", ParameterError, "'0-2'"),
        ("tfidf:,ngrams=few", ParameterError, "'few'"),
        ("tfidf:,analyzer=wrd", UnknownNameError, "wrd"),
        ("tfidf:,language=de", ParameterError, "stop words"),
        ("tfidf:,sublinear=maybe", ParameterError, "maybe"),
        ("tfidf:,ngram=2", ParameterError, "no option 'ngram'"),
    ],
)
def test_invalid_options_raise_errors(spec, error_type, fragment):
    with pytest.raises(error_type, match=fragment) as error:
        retriever(spec)
    assert error.value.hint


def test_the_first_documents_keep_their_scores() -> None:
    documents = ["a red fox", "a blue whale", "red whale", "green fox and red fox"]
    queries = ["red fox", "whale", "nothing of this"]
    fitted = retriever("tfidf:").fit(documents)
    assert isinstance(fitted, FittedTfidf)
    ((_, all_scores),) = fitted.score_blocks(queries)
    ((_, first_scores),) = fitted.leading(3).score_blocks(queries)
    np.testing.assert_allclose(first_scores, all_scores[:, :3], rtol=1e-12)
