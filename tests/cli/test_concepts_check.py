"""``eq concepts check``, run as people run it."""

from __future__ import annotations

import json
from pathlib import Path

GOOD = [{"concept_1": f"a{n}", "concept_2": f"b{n}", "expected_similarity": n / 10} for n in range(11)]
MARKED = [
    {"text": "Kant read Hume.", "entities": [{"text": "Kant", "label": "P", "start": 1, "end": 5}]},
    {"text": "The Ethics.", "entities": [{"text": "Ethics", "label": "W", "start": 4, "end": 10}]},
]


def write(folder: Path, **files: object) -> None:
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))


def test_the_field_of_the_program_can_be_used(eq) -> None:
    done = eq("concepts", "check")
    assert done.exit_code == 0
    assert "240  expected 0.00 to 1.00" in done.output
    assert "can be used" in done.output


def test_all_problems_are_listed_with_file_and_entry(eq, folder: Path) -> None:
    contradiction, other_scale = {**GOOD[3], "expected_similarity": 1}, {**GOOD[0], "concept_1": "y"}
    bad = [*GOOD, contradiction, {"concept_1": "x"}, {**other_scale, "expected_similarity": 2}]
    write(folder / "mine", pairs=bad, clusters=[{"theme": "t", "concepts": ["a"]}], concepts=["a", ""])
    done = eq("concepts", "check", "mine")
    assert done.exit_code == 2
    for sentence in (
        "mine/pairs.json entries 4 and 12 are the same pair",
        "mine/pairs.json entry 13 has no concept_2",
        "mine/pairs.json entry 14 expects the similarity 2, outside 0 to 1",
        "mine/clusters.json has 1 cluster, and at least 2 are needed",
        "mine/concepts.json entry 2 has an empty concept",
        "cannot be used: fix 6 problems first",
    ):
        assert sentence in done.output


def test_categories_ratings_and_shared_hints_are_shown_once(eq, folder: Path) -> None:
    pairs = [
        {"concept_1": f"a{n}", "concept_2": f"b{n}", "ratings": [n, 5 - n][: 2 - n % 2], "category": "ab"[n > 3]}
        for n in range(6)
    ]
    write(folder / "mine", pairs=pairs)
    read = " ".join(eq("concepts", "check", "mine", "--similarity-scale", "5").output.split())
    assert "categories: a 4, b 2; 1 to 2 ratings per pair" in read
    refused = eq("concepts", "check", "mine").output
    assert refused.count("outside 0 to 1") == 5
    assert refused.count("--similarity-scale 5") == 1


def test_wrong_offsets_leave_the_field_of_use_and_fail_the_check(eq, folder: Path) -> None:
    write(folder / "mine", entities=MARKED)
    done = eq("concepts", "check", "mine", "--json")
    assert done.exit_code == 1
    told = json.loads(done.output)
    assert told["usable"] is True
    assert [problem["rule"] for problem in told["problems"]] == ["offsets"]
    assert told["problems"][0]["hint"] == "it is at 0 to 4"
    assert [finding["code"] for finding in told["findings"]] == ["EQ132"]


def test_scores_of_another_scale_need_the_option(eq, folder: Path) -> None:
    rows = "".join(f"a{n},b{n},{n / 2}\n" for n in range(11))
    (folder / "sts.csv").write_text(f"sentence1,sentence2,score\n{rows}")
    refused, read = eq("concepts", "check", "sts.csv"), eq("concepts", "check", "sts.csv", "--similarity-scale", "5")
    assert refused.exit_code == 2
    assert "sts.csv line 5 expects the similarity 1.5, outside 0 to 1" in refused.output
    assert read.exit_code == 0
    assert "expected 0.00 to 1.00" in read.output


def test_a_tip_does_not_fail_the_check(eq, folder: Path) -> None:
    write(folder / "mine", pairs=GOOD[5:])
    done = eq("concepts", "check", "mine")
    assert done.exit_code == 0
    assert "EQ133" in done.output
    assert "EQ133" not in eq("concepts", "check", "mine", "-q").output


def test_a_long_list_of_problems_is_cut_unless_all_are_asked_for(eq, folder: Path) -> None:
    rows = "".join(f"a{n},b{n},0.5\n" for n in range(150))
    (folder / "sts.csv").write_text(f"sentence1,sentence2,closeness\n{rows}")
    short, whole = eq("concepts", "check", "sts.csv"), eq("concepts", "check", "sts.csv", "-v")
    assert "and 50 more (-v shows all)" in short.output
    assert whole.output.count("has no expected_similarity") == 150


def test_a_folder_that_is_not_there_is_bad_input(eq) -> None:
    done = eq("concepts", "check", "absent/")
    assert done.exit_code == 2
    assert "there is no file absent" in done.stderr


def test_a_field_on_which_a_score_is_undefined_can_be_used_in_part(eq, folder: Path) -> None:
    write(folder / "mine", pairs=[{**each, "expected_similarity": 0.2} for each in GOOD])
    done = eq("concepts", "check", "mine")
    assert done.exit_code == 1
    assert "EQ135" in done.output
    assert "can be used in part" in done.output


def test_the_cost_of_every_missing_file_is_listed(eq, folder: Path) -> None:
    clusters = [{"theme": name, "concepts": [f"{name}{n}" for n in range(4)]} for name in "ab"]
    write(folder / "mine", clusters=clusters)
    missing = json.loads(eq("concepts", "check", "mine", "--json").output)["missing"]
    assert list(missing) == ["pairs.json", "entities.json", "relations.json", "concepts.json"]
    assert missing["pairs.json"].startswith("no semantic_similarity_score, no Spearman")
    assert missing["pairs.json"].endswith("no composite_score and no advice for General Knowledge Graph Tasks")
    assert "8 concepts of the clusters" in missing["concepts.json"]
    assert "entities.json: no entity_recognition_score" in eq("concepts", "check", "mine").output
    assert json.loads(eq("concepts", "check", "--json").output)["missing"] == {}


def test_problems_are_in_the_first_lines_with_their_code(eq, folder: Path) -> None:
    (folder / "pairs.json").write_text('[{"concept_1":')
    lines = eq("concepts", "check", "pairs.json").output.splitlines()
    assert lines[0] == "The concept set pairs cannot be used: fix 1 problem first."
    assert lines[2] == "1 problem (EQ130)"
    assert "is not JSON" in lines[4]
