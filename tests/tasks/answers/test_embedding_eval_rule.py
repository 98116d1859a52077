"""The matcher "embedding-eval", compared with that package."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.domains.fair.answer_matching import (
    PASS_SCORE,
    EmbeddingEvalMatcher,
    WordFormIndex,
    answer_matcher,
    is_word_form,
)
from equipoise.domains.fair.config import FairConfig
from marked import marked

PIECES = [
    *(
        "rye",
        "ryes",
        "bread",
        "breads",
        "sss",
        "a",
        "observe",
        "observing",
        "Σ",
        "İ",
        "5",
        "$",
        "€",
        "$5",
        "65%",
    ),
    *(" ", " ", " ", " ", "\n", "\t", "®", "™", "’", "“", "'", '"', ".", "é", "\u00a0", "\x1c"),
]
TEXT = st.lists(st.sampled_from(PIECES), max_size=10).map("".join)


@st.composite
def cases(draw):
    """An answer and texts; the answer is mostly a substring of the joined texts, or some of their words."""
    texts = draw(st.lists(st.one_of(TEXT, TEXT, st.text(max_size=8)), min_size=1, max_size=6))
    joined = " ".join(texts)
    start = draw(st.integers(0, len(joined)))
    substring = st.just(joined[start : start + draw(st.integers(1, 20))])
    words = st.lists(st.sampled_from([*joined.split(), "rye", "observes", "$"]), min_size=1, max_size=6)
    return draw(st.one_of(substring, words.map(" ".join), substring.map(lambda text: f"${text}"), TEXT)), texts


OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "case_sensitive": st.booleans(),
        "normalize_whitespace": st.booleans(),
        "partial_match_threshold": st.sampled_from([0.0, 0.3, 0.5, 0.75, 0.8, 1.0]),
        "fuzzy_word_match": st.booleans(),
        "normalize_currency": st.booleans(),
    },
)


@pytest.fixture(scope="module")
@marked(pytest.mark.engines("embedding_eval"))
def evaluator_class():
    """The evaluator of embedding-eval."""
    pytest.importorskip("embedding_eval.evaluation")
    from embedding_eval.evaluation.evaluators import BinaryEvaluator

    return BinaryEvaluator


@settings(max_examples=300)
@given(cases(), OPTIONS)
def test_scores_agree_with_embedding_eval(evaluator_class, case, options):
    answer, texts = case
    assert (
        EmbeddingEvalMatcher(**options).score(answer, texts)
        == evaluator_class(**options).evaluate("?", answer, texts).score
    )


@settings(max_examples=300)
@given(cases(), OPTIONS)
def test_the_first_hit_is_the_smallest_number_of_texts_accepted_by_embedding_eval(evaluator_class, case, options):
    answer, texts = case
    evaluator = evaluator_class(**options)
    accepted = [bool(evaluator.evaluate("?", answer, texts[:n])) for n in range(1, len(texts) + 1)]
    expected = accepted.index(True) + 1 if any(accepted) else None
    assert EmbeddingEvalMatcher(**options).first_hit(answer, texts) == expected


@given(cases(), OPTIONS)
def test_holders_are_the_texts_accepted_alone(case, options):
    answer, texts = case
    rule = EmbeddingEvalMatcher(**options)
    accepted = [index for index, text in enumerate(texts) if rule.score(answer, [text]) >= PASS_SCORE]
    assert rule.build_index(texts).holders(answer).tolist() == accepted


@given(cases(), st.randoms(use_true_random=False))
def test_first_hits_of_an_order_equal_those_of_the_ordered_texts(case, random):
    answer, texts = case
    rule = EmbeddingEvalMatcher()
    order = list(range(len(texts)))
    random.shuffle(order)
    index = rule.build_index(texts)
    assert index.first_hit(answer, order) == rule.first_hit(answer, [texts[row] for row in order])
    assert index.first_hit(answer, np.array(order[:0], dtype=np.int64)) is None


@given(cases())
def test_more_texts_keep_the_answer_accepted_unless_one_ends_in_a_currency_sign(case):
    answer, texts = case
    rule = EmbeddingEvalMatcher()
    if not any(text.rstrip().endswith(("$", "€", "£", "¥")) for text in texts):
        accepted = [rule.score(answer, texts[:n]) >= PASS_SCORE for n in range(1, len(texts) + 1)]
        assert accepted == sorted(accepted)


WORDS = st.text("as", min_size=1, max_size=6)


@given(st.lists(st.lists(WORDS, max_size=6), max_size=5), WORDS, st.booleans())
def test_the_word_form_index_agrees_with_pairwise_comparison(texts, word, forms):
    has_word = WordFormIndex(texts, forms=forms).texts_with(word).tolist()
    is_equal = is_word_form if forms else str.__eq__
    assert has_word == [any(is_equal(word, other) for other in words) for words in texts]


def test_words_of_s_only_are_forms_of_every_word():
    assert is_word_form("rye", "ssss")
    assert WordFormIndex([["ssss"], ["sss"]], forms=True).texts_with("rye").tolist() == [True, False]


def test_currency_signs_at_the_end_of_a_text_join_the_next_text(evaluator_class):
    texts = ["it costs $", "5 in all"]
    for answer in ("$5", "costs $5 in", "$ 5"):
        assert evaluator_class().evaluate("?", answer, texts).score == 1.0
        assert EmbeddingEvalMatcher().first_hit(answer, texts) == 2


def test_no_texts_give_no_hit():
    assert EmbeddingEvalMatcher().score("rye", []) == 0.0
    assert answer_matcher("embedding-eval").first_hit("rye", []) is None


def test_the_rule_of_embedding_eval_accepts_more_than_the_words_rule():
    for answer, text in (
        ("65%", "165%"),
        ("art", "party"),
        ("one two three four five", "five four three two"),
    ):
        assert answer_matcher("embedding-eval").holds(answer, text)
        assert not answer_matcher("words").holds(answer, text)


def test_the_former_name_source_is_an_alias():
    assert answer_matcher("source") == answer_matcher("embedding-eval")
    assert FairConfig(matcher="source") == FairConfig(matcher="embedding-eval")
