"""Concept sets are read from folders, files and tables."""

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


def write_files(folder: Path, **files: object) -> Path:
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    return folder


# ---- the sample concept set --------------------------------------------------------------------


def test_the_sample_has_its_size_and_no_problems() -> None:
    concept_set = read_concept_set()
    assert concept_set.problems == ()
    assert len(concept_set.pairs) >= 60
    assert {pair.expected for pair in concept_set.pairs} >= {0.0, 1.0}
    assert len(concept_set.clusters) >= 8
    assert len(concept_set.sentences) >= 40
    assert len(concept_set.relations) >= 80


def test_every_offset_of_the_sample_is_exact() -> None:
    for sentence in read_concept_set().sentences:
        for entity in sentence.entities:
            assert sentence.text[entity.start : entity.end] == entity.text


# ---- folders -----------------------------------------------------------------------------------


def test_folders_may_contain_any_of_the_files(tmp_path: Path) -> None:
    concept_set = read_concept_set(write_files(tmp_path, clusters=CLUSTERS, concepts=["duty", "virtue"]))
    assert concept_set.present == ("clusters", "concepts")
    assert concept_set.pairs is None
    assert concept_set.clusters == (
        ConceptCluster("ethics", ("duty", "virtue")),
        ConceptCluster("cluster 1", ("syllogism", "modus ponens")),
    )


def test_all_files_of_a_folder_are_read(tmp_path: Path) -> None:
    files = {
        "pairs": PAIRS,
        "clusters": CLUSTERS,
        "entities": SENTENCES,
        "relations": {"relations": RELATIONS},
    }
    concept_set = read_concept_set(write_files(tmp_path, **files))
    assert concept_set.pairs == (
        ConceptPair("duty", "obligation", 0.9),
        ConceptPair("duty", "plate tectonics", 0.0),
    )
    assert [(entity.text, entity.start) for entity in concept_set.sentences[0].entities] == [
        ("Plato", 1),
        ("Laws", None),
    ]
    assert [relation.object for relation in concept_set.relations] == ["Laws", "Kant"]
    assert "Plato relates to" in concept_set.texts
    assert len(concept_set.texts) == len(set(concept_set.texts))


def test_other_files_are_listed_as_unread(tmp_path: Path) -> None:
    (tmp_path / "readme.txt").write_text("words", encoding="utf-8")
    assert read_concept_set(write_files(tmp_path, concepts=["a", "b"], pair=PAIRS)).unread == ("pair.json",)


def test_folders_without_known_files_raise_input_error_with_a_suggestion(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        read_concept_set(write_files(tmp_path, pair=PAIRS))
    assert error.value.hint == "pair.json: did you mean pairs.json?"


def test_tables_in_two_formats_raise_duplicate_error(tmp_path: Path) -> None:
    (tmp_path / "pairs.csv").write_text("concept_1,concept_2,score\na,b,1\n", encoding="utf-8")
    with pytest.raises(DuplicateError, match=r"pairs\.csv.*pairs\.json"):
        read_concept_set(write_files(tmp_path, pairs=PAIRS))


def test_missing_paths_raise_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        read_concept_set(tmp_path / "absent")


# ---- single files ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "table"),
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
def test_files_of_any_name_are_recognised_by_their_keys(tmp_path: Path, content: object, table: str) -> None:
    concept_set = read_concept_set(write_files(tmp_path, any_name=content) / "any_name.json")
    assert concept_set.present == (table,)
    assert concept_set.name == "any_name"


def test_one_file_can_contain_a_whole_concept_set(tmp_path: Path) -> None:
    concept_set = read_concept_set(write_files(tmp_path, all={"pairs": PAIRS, "clusters": CLUSTERS}) / "all.json")
    assert concept_set.present == ("pairs", "clusters")


def test_files_of_other_content_raise_format_error(tmp_path: Path) -> None:
    with pytest.raises(FormatError):
        read_concept_set(write_files(tmp_path, people=[{"name": "x", "age": 3}]) / "people.json")
    with pytest.raises(FormatError):
        read_concept_set(write_files(tmp_path, pairs={"clusters": CLUSTERS}) / "pairs.json")


# ---- tables ------------------------------------------------------------------------------------


def test_tables_of_texts_and_labels_are_clusters(tmp_path: Path) -> None:
    path = tmp_path / "topics.csv"
    path.write_text("text,label\nduty,ethics\nsyllogism,logic\nvirtue,ethics\n", encoding="utf-8")
    assert read_concept_set(path).clusters == (
        ConceptCluster("ethics", ("duty", "virtue")),
        ConceptCluster("logic", ("syllogism",)),
    )


def test_numeric_labels_are_names(tmp_path: Path) -> None:
    rows = [{"text": "a", "label": 0}, {"text": "b", "label": 1}]
    assert [cluster.name for cluster in read_concept_set(write_files(tmp_path, rows=rows) / "rows.json").clusters] == [
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


def test_scores_above_one_raise_input_error_with_the_option(tmp_path: Path) -> None:
    path = tmp_path / "sts.csv"
    path.write_text("sentence1,sentence2,score\na,b,3.8\nc,d,0.4\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"line 2 expects.*3\.8.*0.*1") as error:
        read_concept_set(path)
    assert "--similarity-scale 5" in error.value.hint
    assert "a,b,3.8" in error.value.excerpt


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf")])
def test_non_positive_scales_raise_parameter_error(scale: float) -> None:
    with pytest.raises(ParameterError):
        read_concept_set(scale=scale)


def test_score_columns_without_a_range_have_no_scale() -> None:
    assert score_key({"score": 1, "score_0_5": 5}) == ("score", None)
    assert score_key({"points": 1}) == (None, None)


# ---- the fingerprint ---------------------------------------------------------------------------


def test_the_fingerprint_depends_on_the_content_only(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    json_set = read_concept_set(write_files(tmp_path / "a", pairs=PAIRS))
    path = tmp_path / "b" / "pairs.csv"
    path.write_text("sentence1,sentence2,score\nduty,obligation,0.9\nduty,plate tectonics,-0.0\n", encoding="utf-8")
    assert read_concept_set(path).fingerprint == json_set.fingerprint
    changed_folder = write_files(tmp_path / "a", pairs=[PAIRS[0], PAIRS[1] | {"expected_similarity": 0.1}])
    assert read_with_issues(changed_folder).fingerprint != json_set.fingerprint


# ---- other formats -----------------------------------------------------------------------------


def test_parquet_and_csv_give_the_same_concept_set(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pa.Table.from_pylist(RELATIONS), tmp_path / "one.parquet")
    rows = "".join(",".join(relation.values()) + "\n" for relation in RELATIONS)
    (tmp_path / "two.csv").write_text(f"subject,predicate,object\n{rows}", encoding="utf-8")
    from_parquet, from_csv = (read_concept_set(tmp_path / name) for name in ("one.parquet", "two.csv"))
    assert from_parquet.relations == from_csv.relations
    assert from_parquet.fingerprint == from_csv.fingerprint


# ---- relation files with texts, semicolons, categories and ratings -----------------------------


@pytest.mark.parametrize("suffix", ["json", "jsonl"])
def test_relations_are_read_from_lists_of_texts(tmp_path: Path, suffix: str) -> None:
    texts = [
        {"text": "Plato wrote the Laws.", "relations": RELATIONS[:1]},
        {"text": "The Laws are by Plato, like Kant's.", "relations": RELATIONS},
    ]
    content = json.dumps(texts) if suffix == "json" else "\n".join(map(json.dumps, texts))
    (tmp_path / f"relations.{suffix}").write_text(content, encoding="utf-8")
    for path in (tmp_path, tmp_path / f"relations.{suffix}"):
        relations = read_concept_set(path).relations
        assert [(relation.subject, relation.object) for relation in relations or ()] == [
            ("Plato", "Laws"),
            ("Plato", "Kant"),
        ]


def test_texts_with_entities_and_relations_are_read_as_both(tmp_path: Path) -> None:
    texts = [
        {"text": "Plato wrote Laws.", "entities": [{"text": "Plato", "label": "PERSON"}], "relations": RELATIONS},
        {"text": "Laws", "entities": [{"text": "Laws", "label": "WORK"}], "relations": []},
    ]
    folder = write_files(tmp_path, relations=texts, annotated=texts)
    both, relations = read_concept_set(folder / "annotated.json"), read_concept_set(folder)
    assert both.present == ("sentences", "relations")
    assert relations.present == ("relations",)
    assert both.relations == relations.relations
    assert len(both.relations or ()) == len(RELATIONS)


def test_problems_of_texts_with_relations_name_their_entry(tmp_path: Path) -> None:
    (tmp_path / "relations.json").write_text(json.dumps({"text": "...", "relations": RELATIONS}), encoding="utf-8")
    assert len(read_concept_set(tmp_path).relations or ()) == 2
    incomplete = [{"text": "a", "relations": RELATIONS}, {"text": "b", "relations": [{"subject": "Plato"}]}]
    problems = read_with_issues(write_files(tmp_path, relations=incomplete)).problems
    assert [problem.rule for problem in problems] == ["entry", "entry"]
    assert all("entry 2 " in problem.message for problem in problems)


def test_semicolon_tables_have_decimal_commas(tmp_path: Path) -> None:
    file = tmp_path / "pairs.csv"
    file.write_text("concept_1;concept_2;score;category\nduty, the;obligation;0,85;easy\nduty;tax;1;hard\n", "utf-8")
    assert read_concept_set(file).pairs == (
        ConceptPair("duty, the", "obligation", 0.85, "easy"),
        ConceptPair("duty", "tax", 1.0, "hard"),
    )


def test_ratings_are_kept_and_averaged(tmp_path: Path) -> None:
    file = tmp_path / "pairs.csv"
    file.write_text("text1,text2,rater_1,rater_2,rater_3\na,b,4,5,\nc,d,1,0,2\n", encoding="utf-8")
    first, second = read_concept_set(file, scale=5).pairs or ()
    assert first.expected == pytest.approx(0.9)
    assert first.ratings[:2] == (0.8, 1.0)
    assert math.isnan(first.ratings[2])
    assert second.ratings == (0.2, 0.0, 0.4)
    rows = [{"first": "a", "second": "b", "ratings": [0.5, 2]}, {"first": "a", "second": "c", "ratings": 1}]
    assert [
        problem.rule for problem in read_with_issues(write_files(tmp_path, ratings=rows) / "ratings.json").problems
    ] == [
        "range",
        "entry",
    ]


def test_standard_concepts_default_to_those_of_the_clusters(tmp_path: Path) -> None:
    concept_set = read_concept_set(write_files(tmp_path, clusters=CLUSTERS))
    assert concept_set.concepts is None
    assert concept_set.standard_concepts == ("duty", "virtue", "syllogism", "modus ponens")
    assert read_concept_set(write_files(tmp_path, concepts=["a", "b"])).standard_concepts == ("a", "b")


def test_the_annotator_ceiling_is_the_mean_leave_one_out_correlation() -> None:
    from scipy.stats import spearmanr

    rng = np.random.default_rng(0)
    ratings = np.clip(rng.random((40, 1)) + 0.3 * rng.normal(size=(40, 3)), 0, 1)
    pairs = [ConceptPair("a", str(index), 0.5, ratings=tuple(row)) for index, row in enumerate(ratings)]
    correlations = [spearmanr(ratings[:, j], np.delete(ratings, j, axis=1).mean(axis=1))[0] for j in range(3)]
    assert annotator_ceiling(pairs) == pytest.approx(np.mean(correlations))
    assert math.isnan(annotator_ceiling([ConceptPair("a", "b", 0.5, ratings=(0.4,))]))
