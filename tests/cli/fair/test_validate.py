"""``eq fair validate`` from the command line."""

from __future__ import annotations

import csv
import json
import subprocess
from pathlib import Path

import pytest

DOCUMENT = "\n".join(
    f"The orchard number {number} in the valley yielded {1000 + 37 * number} barrels of cider." for number in range(200)
)


def pairs(n: int = 80) -> list[dict[str, str]]:
    return [
        {
            "question": f"How much did orchard {number} of the valley yield?",
            "answer": f"{1000 + 37 * number} barrels",
            "category": "multi_hop" if number % 4 == 0 else "exact",
            "difficulty": "hard" if number % 2 == 0 else "easy",
        }
        for number in range(n)
    ]


@pytest.fixture(autouse=True)
def files(folder: Path) -> None:
    (folder / "doc.txt").write_text(DOCUMENT)
    (folder / "qa.json").write_text(json.dumps(pairs()))
    (folder / "qa.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs()))
    invalid_pairs = pairs(60)
    invalid_pairs[7]["answer"] = "1259 barels"
    (folder / "broken.json").write_text(json.dumps(invalid_pairs))


SMALL = ("--chunk-size", "60", "--overlap", "20")


def test_the_process_exits_with_status_0_1_or_2(folder: Path, command, environment) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, "fair", "validate", *arguments],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    valid = run("--qa", "qa.json", "--doc", "doc.txt", *SMALL)
    assert (valid.returncode, valid.stderr) == (0, "")
    assert "✓ Answers verified: 80/80 in the document" in valid.stdout
    assert "✓ Status: valid (every answer found, every minimum met)" in valid.stdout.splitlines()[1]
    invalid = run("--qa", "broken.json", "--doc", "doc.txt", "--json", *SMALL)
    assert (invalid.returncode, invalid.stderr) == (1, "")
    content = json.loads(invalid.stdout)
    assert (content["is_valid"], content["answers_missing"]) == (False, 1)
    assert content["answer_issues"][0]["suggestion"].endswith('"1259 barrels"')
    missing = run("--qa", "nothing.json", "--json")
    assert (missing.returncode, missing.stdout) == (2, "")
    assert json.loads(missing.stderr)["error"]["code"] == "E200"


def test_jsonl_and_json_give_the_same_report(eq) -> None:
    json_result, jsonl_result = (
        eq("fair", "validate", "--qa", name, "--doc", "doc.txt", *SMALL, "--json") for name in ("qa.json", "qa.jsonl")
    )
    assert json_result.exit_code == jsonl_result.exit_code == 0
    assert json_result.stdout == jsonl_result.stdout


def test_the_json_has_the_documented_keys(eq) -> None:
    content = json.loads(eq("fair", "validate", "--qa", "qa.json", "--json").stdout)
    assert {
        "total_questions", "answers_found", "answers_missing", "duplicates_found", "category_counts",
        "difficulty_counts", "category_percentages", "difficulty_percentages", "meets_min_questions",
        "meets_recommended_questions", "meets_min_multihop", "meets_recommended_multihop", "meets_min_hard",
        "meets_recommended_hard", "is_valid", "answer_issues", "duplicate_questions",
    } <= set(content)  # fmt: skip
    assert content["answers_found"] is None
    assert content["verified"] is False


def test_without_a_document_nothing_is_verified(eq) -> None:
    result = eq("fair", "validate", "--qa", "qa.json")
    assert result.exit_code == 0
    assert "not verified: no document given" in result.stdout
    assert "Answers verified" not in result.stdout


def test_csv_has_all_numbers_of_the_validation(eq) -> None:
    rows = dict(csv.reader(eq("fair", "validate", "--qa", "qa.json", "--to", "csv").stdout.splitlines()))
    assert rows.pop("name") == "value"
    assert (rows["total_questions"], rows["verified"], rows["answers_found"]) == ("80", "0", "")
    assert all(value == "" or float(value) >= 0 for value in rows.values())


@pytest.mark.parametrize(
    ("option", "minimum", "expected_text"),
    [("--min-questions", "81", "80"), ("--min-multihop", "25.5", "Multi-hop"), ("--min-hard", "50.5", "Hard")],
)
def test_an_unmet_minimum_is_reported_once_and_fails_with_strict(
    eq, option: str, minimum: str, expected_text: str
) -> None:
    arguments = ("fair", "validate", "--qa", "qa.json", option, minimum)
    result = eq(*arguments)
    assert result.exit_code == 0
    assert result.stderr == ""
    (threshold,) = (line for line in result.stdout.splitlines() if line.strip().startswith("✗"))
    assert expected_text in threshold
    assert "~ Status: " in result.stdout
    assert "EQ105" not in result.stdout, "the line of the threshold reports it"
    strict = eq(*arguments, "--strict")
    assert strict.exit_code == 1
    assert "Status: failed with --strict (" in strict.stdout
    assert json.loads(eq(*arguments, "--json").stdout)["is_valid"] is False


def test_without_categories_and_difficulties_their_thresholds_are_skipped(eq, folder: Path) -> None:
    minimal_pairs = [{name: pair[name] for name in ("question", "answer")} for pair in pairs()]
    (folder / "plain.json").write_text(json.dumps(minimal_pairs))
    result = eq("fair", "validate", "--qa", "plain.json", "--strict")
    assert result.exit_code == 0
    assert "Multi-hop" not in result.stdout
    assert "Hard" not in result.stdout
    assert "not given" not in result.stdout


def test_shares_are_no_failure_if_most_questions_have_no_category(eq, folder: Path) -> None:
    few_labels = [pair if number < 20 else pair | {"category": None} for number, pair in enumerate(pairs())]
    (folder / "few.json").write_text(json.dumps(few_labels))
    result = eq("fair", "validate", "--qa", "few.json", "--min-multihop", "30", "--strict")
    assert result.exit_code == 0
    assert f"Multi-hop: categories not given for {len(few_labels) - 20} of {len(few_labels)} questions" in result.stdout
    half = [pair if number % 2 else pair | {"category": None} for number, pair in enumerate(pairs())]
    (folder / "half.json").write_text(json.dumps(half))
    assert eq("fair", "validate", "--qa", "half.json", "--min-multihop", "30", "--strict").exit_code == 1


def test_the_status_of_drafts_says_that_they_are_rejected(eq, folder: Path) -> None:
    (folder / "drafts.json").write_text(json.dumps([pair | {"draft": True} for pair in pairs()]))
    result = eq("fair", "validate", "--qa", "drafts.json")
    assert result.exit_code == 0
    assert "usable" not in result.stdout
    assert "--allow-drafts" in result.stdout.splitlines()[1]
    assert eq("fair", "validate", "--qa", "drafts.json", "--strict").exit_code == 1


def test_unmet_recommendations_do_not_fail(eq) -> None:
    arguments = ("fair", "validate", "--qa", "qa.json", "--strict", "-q")
    assert eq(*arguments).exit_code == 0
    assert eq(*arguments, "--min-hard", "50", "--min-multihop", "25", "--recommended-questions", "100").exit_code == 0


def test_missing_answers_and_duplicate_questions_are_errors_without_strict(eq, folder: Path) -> None:
    assert eq("fair", "validate", "--qa", "broken.json", "--doc", "doc.txt", *SMALL).exit_code == 1
    (folder / "twice.json").write_text(json.dumps([*pairs(), pairs()[0]]))
    assert eq("fair", "validate", "--qa", "twice.json").exit_code == 1


def test_several_documents_and_folders_are_read(eq, folder: Path) -> None:
    (folder / "notes").mkdir()
    lines = DOCUMENT.splitlines()
    (folder / "notes" / "one.md").write_text("\n".join(lines[:20]))
    (folder / "notes" / "two.txt").write_text("\n".join(lines[20:40]))
    (folder / "rest.txt").write_text("\n".join(lines[40:]))
    result = eq("fair", "validate", "--qa", "qa.json", "--doc", "notes", "rest.txt", "--json", *SMALL)
    assert json.loads(result.stdout)["answers_found"] == 80
    result = eq("fair", "validate", "--doc", "notes", "--qa", "qa.json", "--json", *SMALL)
    assert json.loads(result.stdout)["answers_found"] == 40


def test_quiet_prints_the_table_without_hints(eq) -> None:
    arguments = ("fair", "validate", "--qa", "broken.json", "--doc", "doc.txt", *SMALL)
    loud, quiet = eq(*arguments), eq(*arguments, "-q")
    assert "closest passage" in loud.stdout
    assert "closest passage" not in quiet.stdout
    assert "multi_hop" in quiet.stdout
    assert "✗ Status: invalid (1 answer missing)" in quiet.stdout


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((), "E100"),
        (("--qa", "qb.json"), "E200"),
        (("--qa", "doc.txt"), "E204"),
        (("--qa", "qa.json", "--doc", "nothing.txt"), "E200"),
        (("--qa", "qa.json", "--doc", "empty.txt"), "E200"),
        (("--qa", "none.json"), "E200"),
        (("--qa", "blank.json"), "E204"),
        (("--qa", "qa.json", "--min-hard", "130"), "E310"),
        (("--qa", "qa.json", "--min-hard", "many"), "E100"),
        (("--qa", "qa.json", "--matcher", "wrods"), "E300"),
        (("--qa", "qa.json", "--doc", "doc.txt", "--overlap", "600"), "E310"),
        (("--qa", "qa.json", "--min-qestions", "5"), "E100"),
    ],
)
def test_bad_input_is_an_error_with_exit_status_2(eq, folder: Path, arguments: tuple[str, ...], code: str) -> None:
    (folder / "empty.txt").write_text("")
    (folder / "none.json").write_text("[]")
    (folder / "blank.json").write_text('[{"question": "Why?", "answer": " "}]')
    result = eq("fair", "validate", *arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("error[")
    assert f"error[{code}]" in result.stderr
    assert "Traceback" not in result.stderr
