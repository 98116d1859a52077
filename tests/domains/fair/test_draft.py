"""Draft questions: contents, dropped drafts, and the check that a comparison needs edited questions."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from embedding_server import Handler, serving, status
from equipoise.cli.main import cli
from equipoise.domains.fair.draft import GAP, draft_questions
from equipoise.domains.fair.questions import read_questions, timekeeping
from equipoise.domains.fair.validation import near_duplicates, validate_fixture
from equipoise.errors import InputError, MissingExtraError, ParameterError, PartialError
from equipoise.fair import FairConfig, run_fair_comparison

TEXT, _ = timekeeping()
GERMAN = """\
# Die Mühle

Die alte Mühle an der Ilse wurde im Jahr 1871 von Jonas Weber und seinem Bruder gebaut.
Nach dem Brand von 1903 kaufte sie die Familie Hartmann aus Augsburg für 4200 Mark.

# Die Bahn

Die Bahn nach Ulm war schon im Sommer 1850 fertig und wurde von Karl Etzel geplant.
"""
CONFIG = FairConfig(chunk_sizes=[100], overlaps=[20], top_ks=[2], tokenizer="words", repeats=2)
WITH_DRAFTS = replace(CONFIG, allow_drafts=True)


@pytest.fixture(scope="module")
def drafts() -> Any:
    return draft_questions(TEXT, 60)


def test_drafts_are_valid_questions_spread_over_the_document(drafts: Any) -> None:
    result = validate_fixture(drafts.questions, TEXT, tokenizer="words")
    assert len(drafts) == 60
    assert (result.answers_missing, result.duplicates_found) == (0, 0)
    assert {finding.code for finding in result.findings} == {"EQ116"}
    assert not near_duplicates([question for question in drafts.questions if drafts.methods[question.id] == "cloze"])
    positions = [TEXT.replace("\n", " ").find(question.answer) / len(TEXT) for question in drafts.questions]
    assert max(second - first for first, second in zip(sorted(positions), sorted(positions)[1:], strict=False)) < 0.1


def test_a_cloze_question_with_its_answer_is_its_passage(drafts: Any) -> None:
    cloze = [question for question in drafts.questions if drafts.methods[question.id] == "cloze"]
    assert len(cloze) >= 40
    for question in cloze:
        assert question.question.replace(GAP, question.answer) == question.passages[0]
        assert question.draft


def test_heading_questions_are_in_the_language_of_the_document() -> None:
    drafts = draft_questions(GERMAN, 8)
    headings = {question.question for question in drafts.questions if drafts.methods[question.id] == "heading"}
    assert headings == {"Was sagt das Dokument über Die Mühle?", "Was sagt das Dokument über Die Bahn?"}
    english = draft_questions(GERMAN, 8, language="en")
    assert "What does the document say about Die Bahn?" in {question.question for question in english.questions}


@pytest.mark.parametrize("name", ["drafts.jsonl", "drafts.json"])
def test_the_file_is_a_question_set_with_draft_marks(tmp_path: Path, drafts: Any, name: str) -> None:
    file = tmp_path / name
    drafts.write(file)
    assert read_questions(file) == drafts.questions


def test_a_comparison_of_drafts_is_an_error_unless_allowed(drafts: Any) -> None:
    with pytest.raises(InputError):
        run_fair_comparison(["bm25:"], TEXT, drafts.questions, config=CONFIG)
    with_drafts = run_fair_comparison(["bm25:", "hash"], TEXT, drafts.questions, config=WITH_DRAFTS)
    assert "EQ116" in {finding.code for finding in with_drafts.findings}
    assert with_drafts.to_dict()["settings"]["drafts"] == 60
    edited = [{**row, "draft": False} for row in drafts.to_dicts()]
    without_drafts = run_fair_comparison(["bm25:", "hash"], TEXT, edited, config=CONFIG)
    assert "EQ116" not in {finding.code for finding in without_drafts.findings}
    assert without_drafts.plan.dataset.fingerprints != with_drafts.plan.dataset.fingerprints


@pytest.mark.parametrize("options", [{"n_questions": 0}, {"n_questions": 2.5}, {"language": "fr"}])
def test_wrong_options_are_errors(options: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        draft_questions(TEXT, **options)


def test_a_text_without_sentences_is_an_error() -> None:
    with pytest.raises(InputError):
        draft_questions("A list of words.")


class ScriptedModel:
    """A chat model with prepared answers."""

    name = "scripted"

    def __init__(self, answer: str) -> None:
        self.answer, self.prompts = answer, list[str]()

    def complete(self, prompt: str) -> str:
        self.prompts.append(prompt)
        return self.answer


PAIRS = [
    {"question": "Wer errichtete das Gebäude?", "answer": "Jonas Weber"},
    {"question": "Wann baute Jonas Weber?", "answer": "Jonas Weber"},
    {"question": "Wo?", "answer": "in Nürnberg"},
    {"question": "Was?", "answer": "Mühle"},
    {"question": "Wer plante die Strecke?", "answer": "Karl Etzel"},
    {"question": 3, "answer": "Ulm"},
]


def test_answers_of_a_model_are_checked() -> None:
    model: Any = ScriptedModel(f"Here you are:\n```json\n{json.dumps(PAIRS)}\n```")
    drafts = draft_questions(GERMAN, 5, model=model)
    assert [(question.question, question.answer) for question in drafts.questions] == [
        ("Wer errichtete das Gebäude?", "Jonas Weber"),
        ("Wer plante die Strecke?", "Karl Etzel"),
    ]
    assert set(drafts.methods.values()) == {"scripted"}
    assert all("Die alte Mühle" in prompt or "Die Bahn" in prompt for prompt in model.prompts)
    assert all(question.answer in question.passages[0] for question in drafts.questions)
    assert sum(drafts.dropped.values()) >= 3


def test_a_model_that_answers_without_json_gives_no_drafts() -> None:
    model: Any = ScriptedModel("I cannot do that [sorry].")
    assert len(draft_questions(GERMAN, 5, model=model)) == 0


def answer_chat(handler: Handler, request: dict[str, Any]) -> None:
    message = {"role": "assistant", "content": json.dumps(PAIRS[:1])}
    handler.answer({"id": "1", "object": "chat.completion", "created": 1, "model": request["model"],
                    "choices": [{"index": 0, "finish_reason": "stop", "message": message}]})  # fmt: skip


@pytest.mark.slow
@pytest.mark.engines("openai", "litellm")
@pytest.mark.filterwarnings("ignore::UserWarning")  # pydantic, about types of litellm
@pytest.mark.parametrize("model", ["openai:tiny", "litellm:openai/tiny"])
def test_a_hosted_model_is_called_with_the_key_of_the_environment(monkeypatch: pytest.MonkeyPatch, model: str) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-real-key")
    with serving() as service:
        service.always = answer_chat
        spec = f"{model},base_url={service.url}"
        drafts = draft_questions(GERMAN, 3, model=spec)
        assert [question.answer for question in drafts.questions] == ["Jonas Weber"]
        assert service.headers[0]["authorization"] == "Bearer sk-not-a-real-key"
        assert service.paths[0].endswith("/chat/completions")
        service.always = status(401, "wrong key sk-not-a-real-key")
        with pytest.raises(PartialError) as error:
            draft_questions(GERMAN, 3, model=spec)
        assert "sk-not-a-real-key" not in error.value.render()


@pytest.mark.engines("openai")
def test_a_model_without_a_key_or_of_another_kind_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(MissingExtraError):
        draft_questions(GERMAN, 3, model="openai:tiny")
    with pytest.raises(ParameterError):
        draft_questions(GERMAN, 3, model="minilm")


def test_the_command_writes_a_question_set(tmp_path: Path) -> None:
    document, fixture = tmp_path / "mill.md", tmp_path / "drafts.jsonl"
    document.write_text(GERMAN, encoding="utf-8")
    result = CliRunner().invoke(
        cli, ["fair", "draft", "--doc", str(document), "-n", "4", "-o", str(fixture)], prog_name="eq"
    )
    assert result.exit_code == 0, result.output
    assert [question.draft for question in read_questions(fixture)] == [True] * 4
    stdout_result = CliRunner().invoke(cli, ["fair", "draft", "--doc", str(document), "-n", "4"], prog_name="eq")
    assert stdout_result.stdout == fixture.read_text(encoding="utf-8")


def test_drafts_of_a_pdf_with_hyphenated_lines_are_in_the_document() -> None:
    text = (
        "There were a lot of differ-\nences between the styles of Oren Patash-\nnik and his teacher in 1988.\n"
        "The well-\nknown manual of the program was written by Leslie Lamport two years before."
    )
    drafts = draft_questions(text, 4)
    assert not any("- " in question.passages[0] for question in drafts.questions)
    assert validate_fixture(drafts.questions, text, tokenizer="words").answers_missing == 0
    assert len(run_fair_comparison(["bm25:"], text, drafts.questions, config=WITH_DRAFTS)) == 1


def test_lines_of_symbols_ranges_and_compounds_with_numbers_are_not_drafted() -> None:
    lines = (
        "~~~~~~~~~~ Lesson 12 of the tutorial explains how words are deleted in one step.",
        "The lessons take about 25-30 minutes and a 12-hour day is enough for all of them together.",
        "The tutorial has been translated by volunteers since 1998 and is part of the editor.",
    )
    drafts = draft_questions("\n\n".join(lines), 20)
    assert "1998" in [question.answer for question in drafts.questions]
    assert not any("~" in question.question or "____-" in question.question for question in drafts.questions)


def test_a_model_is_called_for_further_passages_if_drafts_are_dropped() -> None:
    text = "\n\n".join(
        f"# Part {number}\n\nThe village number {number} in the valley was first mentioned by the monk Brother{number}."
        for number in range(10, 22)
    )

    class LateModel(ScriptedModel):
        def complete(self, prompt: str) -> str:
            super().complete(prompt)
            name = prompt.rpartition("Brother")[2].split(".")[0]
            pairs = [{"question": f"Who wrote about place {name}?", "answer": f"Brother{name}"}]
            return json.dumps(pairs) if int(name) >= 18 else "I cannot do that."

    model: Any = LateModel("")
    drafts = draft_questions(text, 1, model=model)
    assert [question.answer for question in drafts.questions] == ["Brother18"]
    assert drafts.dropped == {"no question or no answer": len(model.prompts) - 1}


def test_a_command_without_any_draft_is_an_error(tmp_path: Path) -> None:
    document = tmp_path / "mill.md"
    document.write_text("the mill is old and the mill is old and the mill is old.", encoding="utf-8")
    result = CliRunner().invoke(cli, ["fair", "draft", "--doc", str(document)], prog_name="eq")
    assert result.exit_code == 2
    assert "no draft passed the checks" in result.stderr


def test_headings_without_markup_are_section_titles() -> None:
    text = (
        "3.2. Early and late selection\nThe engineer Karl Etzel selected the route to Ulm in the summer of 1850.\n"
        "MAINTENANCE WORK\nThe bridge over the river was repaired by Jonas Weber and his sons every spring.\n"
        "DESCRIPTION\nThe toll house at the bridge was built by Anton Huber and closed in the winter of 1911.\n"
    )
    drafts = draft_questions(text, 12)
    headings = [question.question for question in drafts.questions if drafts.methods[question.id] == "heading"]
    assert headings == [
        "What does the document say about Early and late selection?",
        "What does the document say about MAINTENANCE WORK?",
    ], "DESCRIPTION is a part of a manual page and no topic"
    assert not any("selection The" in question.passages[0] for question in drafts.questions)


def test_items_of_a_list_are_separate_sentences_without_emphasis() -> None:
    text = (
        "Some notes on the mill and the people in it:\n"
        "- **Owner**: the mill was bought by the family Hartmann of Augsburg in the spring\n"
        "- the wheel was built by a carpenter with the name Jonas Weber and his two sons\n"
    )
    drafts = draft_questions(text, 8)
    assert {question.passages[0] for question in drafts.questions} <= {
        "Some notes on the mill and the people in it:",
        "Owner: the mill was bought by the family Hartmann of Augsburg in the spring",
        "the wheel was built by a carpenter with the name Jonas Weber and his two sons",
    }
    assert validate_fixture(drafts.questions, text, tokenizer="words").answers_missing == 0


def test_numbers_of_cross_references_are_no_answers() -> None:
    text = "The options that are listed in Table 12 and on page 34 were added in 1998, see Section 3.14 of the book."
    answers = [draft.answer for draft in draft_questions(text, 9).questions]
    assert "1998" in answers
    assert not {"12", "34", "3.14"} & set(answers)


def test_parts_of_commands_and_paths_are_no_answers() -> None:
    text = "Use the option draft=Visible with \\KOMAoptions or edit /etc/Defaults before the Monday of the release."
    assert [draft.answer for draft in draft_questions(text, 9).questions] == ["Monday"]


class FailingModel(ScriptedModel):
    """A chat model that stops to answer after the first passage."""

    def complete(self, prompt: str) -> str:
        if self.prompts:
            raise PartialError("scripted did not answer: the server answered 500")
        return super().complete(prompt)


def test_drafts_until_a_failure_of_the_model_are_kept() -> None:
    model: Any = FailingModel(json.dumps(PAIRS[:1]))
    drafts = draft_questions(GERMAN, 9, model=model)
    assert [question.answer for question in drafts.questions] == ["Jonas Weber"]
    assert "answered 500" in drafts.failure
    nothing: Any = FailingModel("no")
    with pytest.raises(PartialError):
        draft_questions(GERMAN, 9, model=nothing)


@pytest.mark.parametrize("model", ["gpt-4o-mini", "openai:", "minilm", "openai:tiny,retries=1"])
def test_wrong_chat_models_are_errors_with_an_example(model: str) -> None:
    with pytest.raises(ParameterError) as wrong:
        draft_questions(GERMAN, 3, model=model)
    assert "openai:" in wrong.value.hint or "attempts" in wrong.value.hint


@pytest.mark.parametrize("name", ["drafts.xlsx", "drafts"])
def test_another_file_name_is_an_error_before_anything_runs(tmp_path: Path, name: str) -> None:
    failed = CliRunner().invoke(cli, ["fair", "draft", "--doc", "no.md", "-o", str(tmp_path / name)], prog_name="eq")
    assert failed.exit_code == 2
    assert ".jsonl" in failed.stderr
    assert not (tmp_path / name).exists()


def test_a_file_with_edited_questions_is_not_replaced(tmp_path: Path) -> None:
    document, fixture = tmp_path / "mill.md", tmp_path / "drafts.jsonl"
    document.write_text(GERMAN, encoding="utf-8")
    command = ["fair", "draft", "--doc", str(document), "-n", "4", "-o", str(fixture)]
    assert [CliRunner().invoke(cli, command, prog_name="eq").exit_code for _ in range(2)] == [0, 0]
    edited = fixture.read_text(encoding="utf-8").replace(', "draft": true', "")
    fixture.write_text(edited, encoding="utf-8")
    for more in ([], ["--model", "openai:any"]):
        refused = CliRunner().invoke(cli, [*command, *more], prog_name="eq")
        assert refused.exit_code == 2
        assert "error[E500]" in refused.stderr
        assert fixture.read_text(encoding="utf-8") == edited
