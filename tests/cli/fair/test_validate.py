"""``eq fair validate``, run as people run it."""

from __future__ import annotations

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
    broken = pairs(60)
    broken[7]["answer"] = "1259 barels"
    (folder / "broken.json").write_text(json.dumps(broken))


SMALL = ("--chunk-size", "60", "--overlap", "20")


def test_a_process_of_its_own_ends_with_0_1_or_2(folder: Path, command, environment) -> None:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, "fair", "validate", *words],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    valid = run("--qa", "qa.json", "--doc", "doc.txt", *SMALL)
    assert (valid.returncode, valid.stderr) == (0, "")
    assert "✓ Answers verified: 80/80 in the document" in valid.stdout
    assert valid.stdout.rstrip().endswith("✓ Status: valid (every answer found, every minimum met)")
    invalid = run("--qa", "broken.json", "--doc", "doc.txt", "--json", *SMALL)
    assert (invalid.returncode, invalid.stderr) == (1, "")
    content = json.loads(invalid.stdout)
    assert (content["is_valid"], content["answers_missing"]) == (False, 1)
    assert content["answer_issues"][0]["suggestion"].endswith('"1259 barrels"')
    refused = run("--qa", "nothing.json", "--json")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert json.loads(refused.stderr)["error"]["code"] == "E200"


def test_jsonl_says_the_same_as_json(eq) -> None:
    one, other = (
        eq("fair", "validate", "--qa", name, "--doc", "doc.txt", *SMALL, "--json") for name in ("qa.json", "qa.jsonl")
    )
    assert one.exit_code == other.exit_code == 0
    assert one.stdout == other.stdout


def test_the_json_has_the_keys_of_the_package_that_named_them(eq) -> None:
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
    done = eq("fair", "validate", "--qa", "qa.json")
    assert done.exit_code == 0
    assert "not verified: no document given" in done.stdout
    assert "Answers verified" not in done.stdout


def test_thresholds_decide(eq) -> None:
    words = ("fair", "validate", "--qa", "qa.json", "-q")
    assert eq(*words).exit_code == 0
    assert eq(*words, "--min-questions", "81").exit_code == 1
    assert eq(*words, "--min-multihop", "25.5").exit_code == 1
    assert eq(*words, "--min-hard", "50.5").exit_code == 1
    strict = eq(*words, "--min-hard", "50", "--min-multihop", "25", "--recommended-questions", "100")
    assert strict.exit_code == 0
    assert "~ Questions: 80 (minimum 50, recommended 100)" in strict.stdout


def test_several_documents_and_folders_are_read(eq, folder: Path) -> None:
    (folder / "notes").mkdir()
    half = DOCUMENT.splitlines()
    (folder / "notes" / "one.md").write_text("\n".join(half[:20]))
    (folder / "notes" / "two.txt").write_text("\n".join(half[20:40]))
    (folder / "rest.txt").write_text("\n".join(half[40:]))
    done = eq("fair", "validate", "--qa", "qa.json", "--doc", "notes", "rest.txt", "--json", *SMALL)
    assert json.loads(done.stdout)["answers_found"] == 80
    done = eq("fair", "validate", "--doc", "notes", "--qa", "qa.json", "--json", *SMALL)
    assert json.loads(done.stdout)["answers_found"] == 40


def test_a_quiet_report_keeps_the_table_and_drops_the_advice(eq) -> None:
    words = ("fair", "validate", "--qa", "broken.json", "--doc", "doc.txt", *SMALL)
    loud, quiet = eq(*words), eq(*words, "-q")
    assert "closest passage" in loud.stdout
    assert "closest passage" not in quiet.stdout
    assert "multi_hop" in quiet.stdout
    assert "✗ Status: invalid (1 answer missing)" in quiet.stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "no fixture was specified"),
        (("--qa", "qb.json"), "there is no file qb.json"),
        (("--qa", "doc.txt"), "cannot be read as a fixture"),
        (("--qa", "qa.json", "--doc", "nothing.txt"), "there is no file nothing.txt"),
        (("--qa", "qa.json", "--doc", "empty.txt"), "empty.txt is empty"),
        (("--qa", "none.json"), "none.json contains no question"),
        (("--qa", "blank.json"), "question 1 has an empty answer"),
        (("--qa", "qa.json", "--min-hard", "130"), "a percentage is between 0 and 100"),
        (("--qa", "qa.json", "--min-hard", "many"), "is not a valid float"),
        (("--qa", "qa.json", "--matcher", "wrods"), "no matcher is called 'wrods'"),
        (("--qa", "qa.json", "--doc", "doc.txt", "--overlap", "600"), "leaves no room"),
        (("--qa", "qa.json", "--min-qestions", "5"), "has no option --min-qestions"),
    ],
)
def test_bad_input_is_a_sentence_and_exit_code_2(eq, folder: Path, words: tuple[str, ...], sentence: str) -> None:
    (folder / "empty.txt").write_text("")
    (folder / "none.json").write_text("[]")
    (folder / "blank.json").write_text('[{"question": "Why?", "answer": " "}]')
    done = eq("fair", "validate", *words)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error[")
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
