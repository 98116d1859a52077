"""``eq concepts check`` from the command line."""

from __future__ import annotations

import json
from pathlib import Path

GOOD = [{"concept_1": f"a{n}", "concept_2": f"b{n}", "expected_similarity": n / 10} for n in range(11)]
ANNOTATED_TEXTS = [
    {"text": "Kant read Hume.", "entities": [{"text": "Kant", "label": "P", "start": 1, "end": 5}]},
    {"text": "The Ethics.", "entities": [{"text": "Ethics", "label": "W", "start": 4, "end": 10}]},
]


def write(folder: Path, **files: object) -> None:
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))


def test_the_built_in_concept_set_is_valid(eq) -> None:
    result = eq("concepts", "check")
    assert result.exit_code == 0
    assert "240  expected similarity 0.00 to 1.00" in result.output
    assert "is valid" in result.output


def test_all_problems_are_listed_with_file_and_entry(eq, folder: Path) -> None:
    contradiction, other_scale = {**GOOD[3], "expected_similarity": 1}, {**GOOD[0], "concept_1": "y"}
    bad = [*GOOD, contradiction, {"concept_1": "x"}, {**other_scale, "expected_similarity": 2}]
    write(folder / "custom", pairs=bad, clusters=[{"theme": "t", "concepts": ["a"]}], concepts=["a", ""])
    result = eq("concepts", "check", "custom")
    assert result.exit_code == 2
    for expected_text in (
        "custom/pairs.json entries 4 and 12 are the same pair",
        "custom/pairs.json entry 13 has no concept_2",
        "custom/pairs.json entry 14 expects the similarity 2, outside 0 to 1",
        "custom/clusters.json has 1 cluster, and at least 2 are needed",
        "custom/concepts.json entry 2 has an empty concept",
        "cannot be used: fix 6 problems first",
    ):
        assert expected_text in result.output


def test_categories_ratings_and_shared_hints_are_shown_once(eq, folder: Path) -> None:
    pairs = [
        {"concept_1": f"a{n}", "concept_2": f"b{n}", "ratings": [n, 5 - n][: 2 - n % 2], "category": "ab"[n > 3]}
        for n in range(6)
    ]
    write(folder / "custom", pairs=pairs)
    scaled_output = " ".join(eq("concepts", "check", "custom", "--similarity-scale", "5").output.split())
    assert "Categories of pairs: a 4, b 2. Each pair has 1 to 2 ratings" in scaled_output
    unscaled_output = eq("concepts", "check", "custom").output
    assert unscaled_output.count("outside 0 to 1") == 5
    assert unscaled_output.count("--similarity-scale 5") == 1


def test_wrong_offsets_fail_the_check_of_a_usable_concept_set(eq, folder: Path) -> None:
    write(folder / "custom", entities=ANNOTATED_TEXTS)
    result = eq("concepts", "check", "custom", "--json")
    assert result.exit_code == 1
    content = json.loads(result.output)
    assert content["usable"] is True
    assert [problem["rule"] for problem in content["problems"]] == ["offsets"]
    assert content["problems"][0]["hint"] == "it is at 0 to 4"
    assert [finding["code"] for finding in content["findings"]] == ["EQ132"]


def test_scores_of_another_scale_need_the_option(eq, folder: Path) -> None:
    rows = "".join(f"a{n},b{n},{n / 2}\n" for n in range(11))
    (folder / "sts.csv").write_text(f"sentence1,sentence2,score\n{rows}")
    unscaled, scaled = eq("concepts", "check", "sts.csv"), eq("concepts", "check", "sts.csv", "--similarity-scale", "5")
    assert unscaled.exit_code == 2
    assert "sts.csv line 5 expects the similarity 1.5, outside 0 to 1" in unscaled.output
    assert scaled.exit_code == 0
    assert "expected similarity 0.00 to 1.00" in scaled.output


def test_a_tip_has_exit_status_0(eq, folder: Path) -> None:
    write(folder / "custom", pairs=GOOD[5:])
    result = eq("concepts", "check", "custom")
    assert result.exit_code == 0
    assert "EQ133" in result.output
    assert "EQ133" not in eq("concepts", "check", "custom", "-q").output


def test_a_long_list_of_problems_is_truncated_without_verbose(eq, folder: Path) -> None:
    rows = "".join(f"a{n},b{n},0.5\n" for n in range(150))
    (folder / "sts.csv").write_text(f"sentence1,sentence2,closeness\n{rows}")
    short, verbose = eq("concepts", "check", "sts.csv"), eq("concepts", "check", "sts.csv", "-v")
    assert "and 50 more (-v shows all)" in short.output
    assert verbose.output.count("has no expected_similarity") == 150


def test_a_missing_folder_is_an_error(eq) -> None:
    result = eq("concepts", "check", "absent/")
    assert result.exit_code == 2
    assert "there is no file absent" in result.stderr


def test_a_concept_set_with_an_undefined_score_is_partly_usable(eq, folder: Path) -> None:
    write(folder / "custom", pairs=[{**pair, "expected_similarity": 0.2} for pair in GOOD])
    result = eq("concepts", "check", "custom")
    assert result.exit_code == 1
    assert "EQ135" in result.output
    assert "is valid in part" in result.output


def test_the_scores_without_data_are_listed_per_missing_file(eq, folder: Path) -> None:
    clusters = [{"theme": name, "concepts": [f"{name}{n}" for n in range(4)]} for name in "ab"]
    write(folder / "custom", clusters=clusters)
    missing = json.loads(eq("concepts", "check", "custom", "--json").output)["missing"]
    assert list(missing) == ["pairs.json", "entities.json", "relations.json", "concepts.json"]
    assert missing["pairs.json"].startswith("semantic_similarity_score, Spearman and composite_score are not computed")
    assert missing["pairs.json"].endswith(
        "no recommendation for Semantic Similarity Tasks or General Knowledge Graph Tasks"
    )
    assert "8 concepts of the clusters" in missing["concepts.json"]
    assert "entities.json: entity_recognition_score, " in eq("concepts", "check", "custom").output
    assert json.loads(eq("concepts", "check", "--json").output)["missing"] == {}


def test_problems_are_in_the_first_lines_with_their_code(eq, folder: Path) -> None:
    (folder / "pairs.json").write_text('[{"concept_1":')
    lines = eq("concepts", "check", "pairs.json").output.splitlines()
    assert lines[0] == "The concept set pairs cannot be used: fix 1 problem first."
    assert lines[2] == "1 problem (EQ130)"
    assert "is not JSON" in lines[4]
