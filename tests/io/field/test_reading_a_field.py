"""Fields are read from folders, files and tables, whatever their form."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from equipoise.domains.concepts.concept_set import ConceptCluster, ConceptPair
from equipoise.domains.concepts.concept_set_reader import read_concept_set, read_with_issues
from equipoise.domains.concepts.concept_set_sections import score_key
from equipoise.domains.concepts.evidence import annotator_ceiling
from equipoise.errors import DuplicateError, FormatError, InputError, ParameterError

PAIRS = [
    {"concept_1": "duty", "concept_2": "obligation", "expected_similarity": 0.9},
    {"concept_1": "duty", "concept_2": "plate tectonics", "expected_similarity": 0},
]
CLUSTERS = [
    {"cluster_id": 0, "theme": "ethics", "concepts": ["duty", "virtue"]},
    {"cluster_id": 1, "concepts": ["syllogism", "modus ponens"]},
]
SENTENCES = [
    {
        "text": " Plato wrote Laws.",
        "entities": [
            {"text": "Plato", "label": "PERSON", "start": 1, "end": 6},
            {"text": "Laws", "label": "WORK"},
        ],
    }
]
RELATIONS = [
    {"subject": "Plato", "predicate": "wrote", "object": "Laws"},
    {"subject": "Plato", "predicate": "relates_to", "object": "Kant"},
]


def write(folder: Path, **files: object) -> Path:
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    return folder


# ---- the field of the program ------------------------------------------------------------------


def test_the_sample_is_as_large_as_it_should_be_and_without_a_problem() -> None:
    field = read_concept_set()
    assert field.problems == ()
    assert len(field.pairs) >= 60
    assert {pair.expected for pair in field.pairs} >= {0.0, 1.0}
    assert len(field.clusters) >= 8
    assert len(field.sentences) >= 40
    assert len(field.relations) >= 80


def test_every_offset_of_the_sample_is_exact() -> None:
    for sentence in read_concept_set().sentences:
        for entity in sentence.entities:
            assert sentence.text[entity.start : entity.end] == entity.text


# ---- folders -----------------------------------------------------------------------------------


def test_a_folder_may_hold_any_of_the_files(tmp_path: Path) -> None:
    field = read_concept_set(write(tmp_path, clusters=CLUSTERS, concepts=["duty", "virtue"]))
    assert field.present == ("clusters", "concepts")
    assert field.pairs is None
    assert field.clusters == (
        ConceptCluster("ethics", ("duty", "virtue")),
        ConceptCluster("cluster 1", ("syllogism", "modus ponens")),
    )


def test_all_parts_are_read_in_the_forms_of_the_source(tmp_path: Path) -> None:
    parts = {
        "pairs": PAIRS,
        "clusters": CLUSTERS,
        "entities": SENTENCES,
        "relations": {"relations": RELATIONS},
    }
    field = read_concept_set(write(tmp_path, **parts))
    assert field.pairs == (
        ConceptPair("duty", "obligation", 0.9),
        ConceptPair("duty", "plate tectonics", 0.0),
    )
    assert [(entity.text, entity.start) for entity in field.sentences[0].entities] == [("Plato", 1), ("Laws", None)]
    assert [relation.object for relation in field.relations] == ["Laws", "Kant"]
    assert "Plato relates to" in field.texts
    assert len(field.texts) == len(set(field.texts))


def test_files_that_are_no_part_of_a_field_are_named(tmp_path: Path) -> None:
    (tmp_path / "readme.txt").write_text("words", encoding="utf-8")
    assert read_concept_set(write(tmp_path, concepts=["a", "b"], pair=PAIRS)).unread == ("pair.json",)


def test_a_folder_without_any_part_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_concept_set(write(tmp_path, pair=PAIRS))
    assert caught.value.hint == "did you mean pairs.json?"


def test_a_part_in_two_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pairs.csv").write_text("concept_1,concept_2,score\na,b,1\n", encoding="utf-8")
    with pytest.raises(DuplicateError, match=r"pairs\.csv.*pairs\.json"):
        read_concept_set(write(tmp_path, pairs=PAIRS))


def test_a_path_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        read_concept_set(tmp_path / "absent")


# ---- single files ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (PAIRS, "pairs"),
        (CLUSTERS, "clusters"),
        (SENTENCES, "sentences"),
        (RELATIONS, "relations"),
        ({"triples": RELATIONS}, "relations"),
        ([{"relations": RELATIONS[:1]}, {"relations": RELATIONS[1:]}], "relations"),
        (["duty", "virtue"], "concepts"),
        ({"concepts": ["duty", "virtue"]}, "concepts"),
        ([{"concept": "duty"}, {"concept": "virtue"}], "concepts"),
        ([{"text": "a", "label": "x"}, {"text": "b", "label": "y"}], "clusters"),
    ],
)
def test_a_file_of_any_name_is_known_by_its_keys(tmp_path: Path, content: object, part: str) -> None:
    field = read_concept_set(write(tmp_path, mine=content) / "mine.json")
    assert field.present == (part,)
    assert field.name == "mine"


def test_one_file_can_hold_a_whole_field(tmp_path: Path) -> None:
    field = read_concept_set(write(tmp_path, all={"pairs": PAIRS, "clusters": CLUSTERS}) / "all.json")
    assert field.present == ("pairs", "clusters")


def test_a_file_of_something_else_is_refused_with_its_keys(tmp_path: Path) -> None:
    with pytest.raises(FormatError):
        read_concept_set(write(tmp_path, people=[{"name": "x", "age": 3}]) / "people.json")
    with pytest.raises(FormatError):
        read_concept_set(write(tmp_path, pairs={"clusters": CLUSTERS}) / "pairs.json")


# ---- tables ------------------------------------------------------------------------------------


def test_a_table_of_texts_and_labels_is_clusters(tmp_path: Path) -> None:
    path = tmp_path / "topics.csv"
    path.write_text("text,label\nduty,ethics\nsyllogism,logic\nvirtue,ethics\n", encoding="utf-8")
    assert read_concept_set(path).clusters == (
        ConceptCluster("ethics", ("duty", "virtue")),
        ConceptCluster("logic", ("syllogism",)),
    )


def test_labels_that_are_numbers_are_names(tmp_path: Path) -> None:
    rows = [{"text": "a", "label": 0}, {"text": "b", "label": 1}]
    assert [cluster.name for cluster in read_concept_set(write(tmp_path, rows=rows) / "rows.json").clusters] == [
        "0",
        "1",
    ]


@pytest.mark.parametrize("header", ["score_0_5", "score (0-5)", "Similarity 0..5", "label_0_to_5", "score [0-5]"])
def test_a_header_can_give_the_scale_of_the_scores(tmp_path: Path, header: str) -> None:
    path = tmp_path / "sts.tsv"
    path.write_text(f"sentence1\tsentence2\t{header}\na\tb\t5\nc\td\t2.5\n", encoding="utf-8")
    assert [pair.expected for pair in read_concept_set(path).pairs] == [1.0, 0.5]


def test_an_option_can_give_the_scale_of_the_scores(tmp_path: Path) -> None:
    path = tmp_path / "sts.csv"
    path.write_text("sentence1,sentence2,score\na,b,5\nc,d,2\n", encoding="utf-8")
    assert [pair.expected for pair in read_concept_set(path, scale=5).pairs] == [1.0, 0.4]


def test_a_scale_is_never_guessed(tmp_path: Path) -> None:
    path = tmp_path / "sts.csv"
    path.write_text("sentence1,sentence2,score\na,b,3.8\nc,d,0.4\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"line 2 expects.*3\.8.*0.*1") as caught:
        read_concept_set(path)
    assert "--similarity-scale 5" in caught.value.hint
    assert "a,b,3.8" in caught.value.excerpt


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf")])
def test_a_scale_is_a_number_above_zero(scale: float) -> None:
    with pytest.raises(ParameterError):
        read_concept_set(scale=scale)


def test_plain_score_columns_have_no_scale_of_their_own() -> None:
    assert score_key({"score": 1, "score_0_5": 5}) == ("score", None)
    assert score_key({"points": 1}) == (None, None)


# ---- the fingerprint ---------------------------------------------------------------------------


def test_the_fingerprint_depends_on_the_content_alone(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    written = read_concept_set(write(tmp_path / "a", pairs=PAIRS))
    path = tmp_path / "b" / "pairs.csv"
    path.write_text("sentence1,sentence2,score\nduty,obligation,0.9\nduty,plate tectonics,-0.0\n", encoding="utf-8")
    assert read_concept_set(path).fingerprint == written.fingerprint
    changed = write(tmp_path / "a", pairs=[PAIRS[0], PAIRS[1] | {"expected_similarity": 0.1}])
    assert read_with_issues(changed).fingerprint != written.fingerprint


# ---- other formats -----------------------------------------------------------------------------


def test_parquet_and_csv_hold_the_same_field(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pa.Table.from_pylist(RELATIONS), tmp_path / "one.parquet")
    rows = "".join(",".join(relation.values()) + "\n" for relation in RELATIONS)
    (tmp_path / "two.csv").write_text(f"subject,predicate,object\n{rows}", encoding="utf-8")
    one, two = (read_concept_set(tmp_path / name) for name in ("one.parquet", "two.csv"))
    assert one.relations == two.relations
    assert one.fingerprint == two.fingerprint


# ---- relation files with texts, semicolons, categories and ratings -----------------------------


@pytest.mark.parametrize("ending", ["json", "jsonl"])
def test_relations_are_read_from_the_texts_that_state_them(tmp_path: Path, ending: str) -> None:
    texts = [
        {"text": "Plato wrote the Laws.", "relations": RELATIONS[:1]},
        {"text": "The Laws are by Plato, like Kant's.", "relations": RELATIONS},
    ]
    content = json.dumps(texts) if ending == "json" else "\n".join(map(json.dumps, texts))
    (tmp_path / f"relations.{ending}").write_text(content, encoding="utf-8")
    for path in (tmp_path, tmp_path / f"relations.{ending}"):
        relations = read_concept_set(path).relations
        assert [(one.subject, one.object) for one in relations or ()] == [("Plato", "Laws"), ("Plato", "Kant")]


def test_one_text_with_relations_is_read_and_its_problems_have_a_place(tmp_path: Path) -> None:
    (tmp_path / "relations.json").write_text(json.dumps({"text": "...", "relations": RELATIONS}), encoding="utf-8")
    assert len(read_concept_set(tmp_path).relations or ()) == 2
    lacking = [{"text": "a", "relations": RELATIONS}, {"text": "b", "relations": [{"subject": "Plato"}]}]
    problems = read_with_issues(write(tmp_path, relations=lacking)).problems
    assert [problem.rule for problem in problems] == ["entry", "entry"]
    assert all("entry 2 " in problem.message for problem in problems)


def test_a_semicolon_table_has_decimal_commas(tmp_path: Path) -> None:
    file = tmp_path / "pairs.csv"
    file.write_text("concept_1;concept_2;score;category\nduty, the;obligation;0,85;easy\nduty;tax;1;hard\n", "utf-8")
    assert read_concept_set(file).pairs == (
        ConceptPair("duty, the", "obligation", 0.85, "easy"),
        ConceptPair("duty", "tax", 1.0, "hard"),
    )


def test_several_ratings_are_kept_and_their_mean_is_expected(tmp_path: Path) -> None:
    file = tmp_path / "pairs.csv"
    file.write_text("text1,text2,rater_1,rater_2,rater_3\na,b,4,5,\nc,d,1,0,2\n", encoding="utf-8")
    first, second = read_concept_set(file, scale=5).pairs or ()
    assert first.expected == pytest.approx(0.9)
    assert first.ratings[:2] == (0.8, 1.0)
    assert math.isnan(first.ratings[2])
    assert second.ratings == (0.2, 0.0, 0.4)
    listed = [{"first": "a", "second": "b", "ratings": [0.5, 2]}, {"first": "a", "second": "c", "ratings": 1}]
    assert [one.rule for one in read_with_issues(write(tmp_path, mine=listed) / "mine.json").problems] == [
        "range",
        "entry",
    ]


def test_without_concepts_those_of_the_clusters_are_standard(tmp_path: Path) -> None:
    concept_set = read_concept_set(write(tmp_path, clusters=CLUSTERS))
    assert concept_set.concepts is None
    assert concept_set.standard_concepts == ("duty", "virtue", "syllogism", "modus ponens")
    assert read_concept_set(write(tmp_path, concepts=["a", "b"])).standard_concepts == ("a", "b")


def test_the_annotator_ceiling_is_the_mean_correlation_with_the_other_annotators() -> None:
    from scipy.stats import spearmanr

    rng = np.random.default_rng(0)
    ratings = np.clip(rng.random((40, 1)) + 0.3 * rng.normal(size=(40, 3)), 0, 1)
    pairs = [ConceptPair("a", str(at), 0.5, ratings=tuple(row)) for at, row in enumerate(ratings)]
    wanted = [spearmanr(ratings[:, j], np.delete(ratings, j, axis=1).mean(axis=1))[0] for j in range(3)]
    assert annotator_ceiling(pairs) == pytest.approx(np.mean(wanted))
    assert math.isnan(annotator_ceiling([ConceptPair("a", "b", 0.5, ratings=(0.4,))]))
