"""Runs of extraction on a small ontology."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from equipoise.config import StatsConfig
from equipoise.domains.phenotypes.extraction import experiment
from equipoise.domains.phenotypes.extraction.annotated_corpus import (
    AnnotatedCorpus,
    Annotation,
    AnnotationIssue,
    resolve_annotations,
)
from equipoise.domains.phenotypes.extraction.candidates import SPLITTER_CHAIN, Candidates
from equipoise.domains.phenotypes.extraction.experiment import compare_extractions, run_extraction
from equipoise.domains.phenotypes.extraction.predict import predict
from equipoise.domains.phenotypes.ontology import Ontology
from equipoise.errors import InputError, PairingError, ParameterError, UnknownNameError
from equipoise.runs.gate import BaselineCheck, check_gate
from equipoise.runs.run_folder import load_run

CHUNKS: dict[str, Any] = {"dictionary": False, "chunkers": SPLITTER_CHAIN, "top_term_only": False}
QUICK: dict[str, Any] = {"config": StatsConfig(n_resamples=100), "chunk_threshold": 0.5, **CHUNKS}


@pytest.fixture(scope="module")
def extraction(ontology: Ontology, signs: AnnotatedCorpus) -> Any:
    return run_extraction(signs, "tfidf:", ontology, **QUICK)


def document_counts(extraction: Any, mode: str) -> list[tuple[int, int, int]]:
    """The numbers of hits, gold and predicted entries per document, by plain sets."""
    rows = []
    for name, predicted in extraction.predictions.sets().items():
        gold_and_predicted = [set(extraction.gold.sets()[name]), set(predicted)]
        if mode == "present":
            gold_and_predicted = [
                {entry for entry in entries if entry[1] == "affirmed"} for entries in gold_and_predicted
            ]
        if mode == "id":
            gold_and_predicted = [{term for term, _ in entries} for entries in gold_and_predicted]
        rows.append(
            (len(gold_and_predicted[0] & gold_and_predicted[1]), len(gold_and_predicted[0]), len(gold_and_predicted[1]))
        )
    return rows


@pytest.mark.parametrize("mode", ["strict", "present", "id"])
def test_scores_equal_those_of_plain_sets(extraction: Any, mode: str) -> None:
    rows = document_counts(extraction, mode)
    hits, gold, predicted = map(sum, zip(*rows, strict=True))
    f1 = [2 * h / (g + p) for h, g, p in rows if g + p]
    recall = [h / g for h, g, _ in rows if g]
    suffix = "" if mode == "strict" else f"mode={mode}"
    micro, macro = (f"({suffix})" if suffix else ""), f"(average=macro{',' if suffix else ''}{suffix})"
    result = extraction.result
    assert result[f"P{micro}"].value == pytest.approx(hits / predicted)
    assert result[f"R{micro}"].value == pytest.approx(hits / gold)
    assert result[f"F1{micro}"].value == pytest.approx(2 * hits / (gold + predicted))
    assert result[f"F1{macro}"].value == pytest.approx(np.mean(f1))
    assert result[f"R{macro}"].value == pytest.approx(np.mean(recall))
    weighted = macro.replace("macro", "weighted")
    assert result[f"R{weighted}"].value == pytest.approx(hits / gold)


def test_soft_scores_are_at_least_the_exact_ones(extraction: Any) -> None:
    for name in ("F1(mode=id)", "P(mode=id)", "R(mode=id)"):
        soft = extraction.result[name.replace(")", ",soft)")]
        assert extraction.result[name].value <= soft.value <= 1.0


def test_a_document_without_gold_is_undefined_and_counted(extraction: Any) -> None:
    assert extraction.gold.annotated.without_gold == ("d",)
    assert extraction.result["R(average=macro,mode=id)"].undefined == 1
    assert any("without gold" in note for note in extraction.gold.notes)


def test_every_gold_entry_is_traced_once_and_found_ones_are_hits(extraction: Any) -> None:
    stages = extraction.stages
    assert sum(stages.values()) == sum(len(entries) for entries in extraction.gold.sets().values())
    assert stages["found"] == sum(hits for hits, _, _ in document_counts(extraction, "strict"))
    assert extraction.errors_by_kind.gold["right"] == stages["found"]


def test_gold_spans_separate_losses_of_chunker_and_model(extraction: Any) -> None:
    spans = extraction.gold_span_oracle
    n_gold = sum(len(entries) for entries in extraction.gold.sets().values())
    assert spans.n_found + spans.n_lost_by_chunking + spans.n_lost_by_model == n_gold
    # Every span is a label or a synonym of its term verbatim.
    assert spans.retrieval["share of gold spans whose term ranks first"].value == 1.0
    assert spans.n_lost_by_model == 0


def test_alternative_ids_are_resolved_and_unknown_ones_are_listed(ontology: Ontology, signs: AnnotatedCorpus) -> None:
    first = signs.documents[0]
    document_with_unknown_id = replace(first, annotations=(*first.annotations, Annotation("T:77")))
    gold = resolve_annotations(replace(signs, documents=(document_with_unknown_id, *signs.documents[1:])), ontology)
    assert ("T:07", "affirmed") in gold.sets()["b"]
    assert [resolution.how for resolution in gold.moved] == ["alternative"]
    assert "'T:77'" in gold.annotated.problems[0].message
    assert gold.sets()["a"] == resolve_annotations(signs, ontology).sets()["a"]


def test_a_document_without_any_known_id_is_lost_and_not_without_gold(
    ontology: Ontology, signs: AnnotatedCorpus
) -> None:
    unknown_document = replace(signs.documents[0], annotations=(Annotation("T:77"),))
    gold = resolve_annotations(replace(signs, documents=(unknown_document, *signs.documents[1:])), ontology)
    assert unknown_document.id not in gold.sets()
    assert gold.annotated.without_gold == ("d",)
    assert [(issue.where, bool(issue.hint)) for issue in gold.lost] == [("document a", True)]
    assert gold.problem_messages[-1].startswith("document a has no gold id")


def test_ids_of_another_ontology_are_errors(ontology: Ontology, signs: AnnotatedCorpus) -> None:
    foreign_documents = tuple(
        replace(document, annotations=(Annotation("HP:0001250"),)) for document in signs.documents
    )
    with pytest.raises(InputError):
        resolve_annotations(replace(signs, documents=foreign_documents), ontology)


def test_documents_without_annotations_are_errors(ontology: Ontology, signs: AnnotatedCorpus) -> None:
    unannotated = tuple(replace(document, annotations=()) for document in signs.documents)
    with pytest.raises(InputError, match=r"8"):
        resolve_annotations(replace(signs, documents=unannotated), ontology)


def test_a_language_without_rules_gives_a_note_and_guessed_rules(ontology: Ontology, signs: AnnotatedCorpus) -> None:
    first, *others = signs.documents
    gold = resolve_annotations(replace(signs, documents=(replace(first, language="fr"), *others)), ontology)
    assert gold.documents[0].language is None
    assert any("assertions in fr" in note for note in gold.notes)


def test_gold_without_negations_is_a_finding_about_assertions(ontology: Ontology, signs: AnnotatedCorpus) -> None:
    affirmed_only = replace(signs, documents=(signs.documents[1], signs.documents[2]))
    extraction = run_extraction(affirmed_only, "tfidf:", ontology, bootstrap=False)
    assert [finding.code for finding in extraction.findings if finding.code == "EQ140"] == ["EQ140"]
    assert extraction.result.findings == extraction.findings
    assert not any(estimate.interval.known for estimate in extraction.result.estimates.values())


def test_chance_levels_are_exact_and_soft_ones_are_at_least_as_high(extraction: Any) -> None:
    rows = list(extraction.gold.sets())
    gold = [{term for term, _ in extraction.gold.sets()[name]} for name in rows]
    predicted = [{term for term, _ in extraction.predictions.sets()[name]} for name in rows]
    hits = np.mean([[len(gold_terms & predicted_terms) for gold_terms in gold] for predicted_terms in predicted]) * len(
        rows
    )
    total = sum(map(len, gold)) + sum(map(len, predicted))
    assert extraction.result["F1(mode=id)"].chance == pytest.approx(2 * hits / total)
    for name in ("F1", "P", "R"):
        for average in ("", "average=macro,"):
            exact, soft = (extraction.result[f"{name}({average}mode=id{suffix})"].chance for suffix in ("", ",soft"))
            assert exact <= soft + 1e-12


def test_gold_spans_are_searched_for_the_first_term_once(ontology: Ontology, signs: AnnotatedCorpus) -> None:
    single = run_extraction(signs, "tfidf:", ontology, num_results=1, bootstrap=False)
    assert single.gold_span_oracle is not None
    assert single.gold_span_oracle.retrieval.names == ("share of gold spans whose term ranks first",)


def test_stored_candidates_give_the_same_predictions_and_scores(extraction: Any, tmp_path: Path) -> None:
    file = extraction.write(tmp_path / "default")
    content = json.loads(file.read_text())
    candidates = Candidates.load(file.parent / "candidates.npz")
    predictions = predict(candidates, **extraction.settings.pipeline.record())
    assert predictions.sets() == extraction.predictions.sets()
    assert content["mode"] == "id"
    assert content["primary"] == "F1(mode=id)"
    run = load_run(file.parent / content["run"])
    assert run.result.names == extraction.result.names
    assert run.manifest.complete


def test_a_repeated_run_loads_its_candidates_and_has_the_same_content(
    ontology: Ontology, signs: AnnotatedCorpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run_extraction(signs, "tfidf:", ontology, output=tmp_path, **QUICK)
    with monkeypatch.context() as patch:
        patch.setattr(experiment.TermExtractor, "candidates", lambda *args, **options: pytest.fail("retrieved again"))
        repeated = run_extraction(signs, "tfidf:", ontology, output=tmp_path, **QUICK)
    assert (first.resumed, repeated.resumed) == (False, True)
    assert repeated.to_dict() == first.to_dict()
    other = run_extraction(signs, "tfidf:", ontology, output=tmp_path, **{**QUICK, "num_results": 3})
    assert not other.resumed


def test_a_lost_document_makes_the_run_partial(ontology: Ontology, signs: AnnotatedCorpus, tmp_path: Path) -> None:
    corpus_with_lost_document = replace(signs, problems=(AnnotationIssue("x.json", "is not JSON", lost=True),))
    extraction = run_extraction(
        corpus_with_lost_document, "tfidf:", ontology, output=tmp_path, bootstrap=False, **QUICK
    )
    run = load_run(tmp_path / json.loads((tmp_path / "extraction_results.json").read_text())["run"])
    assert extraction.gold.lost_message == "1 document could not be read: x.json"
    assert "x.json" in run.caution


def test_unknown_settings_are_errors(ontology: Ontology, signs: AnnotatedCorpus) -> None:
    with pytest.raises(UnknownNameError) as error_info:
        run_extraction(signs, "tfidf:", ontology, num_result=3)
    assert error_info.value.hint.startswith("did you mean num_results")
    with pytest.raises(UnknownNameError, match="averaging"):
        run_extraction(signs, "tfidf:", ontology, averaging="mean")
    with pytest.raises(ParameterError):
        run_extraction(signs, ["tfidf:", "hash"], ontology)


def write_extraction(extraction: Any, folder: Path) -> Path:
    file: Path = extraction.write(folder)
    return file


def test_runs_are_compared_by_document_and_equal_names_are_replaced_by_folders(
    extraction: Any, ontology: Ontology, signs: AnnotatedCorpus, tmp_path: Path
) -> None:
    strict = run_extraction(signs, "tfidf:", ontology, **{**QUICK, "chunk_threshold": 0.9})
    files = [write_extraction(extraction, tmp_path / "default"), write_extraction(strict, tmp_path / "high")]
    comparison = compare_extractions(files, config=StatsConfig(n_permutations=100, n_resamples=100))
    assert comparison.primary == "F1(mode=id)"
    assert set(comparison.order) == {extraction.result.system, strict.result.system}
    same_name_comparison = compare_extractions(
        [files[0], write_extraction(extraction, tmp_path / "twin")], "F1(average=macro,mode=id)",
        primary="F1(average=macro,mode=id)", config=StatsConfig(n_permutations=100, n_resamples=100),
    )  # fmt: skip
    assert set(same_name_comparison.order) == {"default", "twin"}
    assert same_name_comparison.contrasts[0].difference == 0.0


def test_different_modes_and_different_documents_are_not_compared(
    extraction: Any, ontology: Ontology, signs: AnnotatedCorpus, tmp_path: Path
) -> None:
    first = write_extraction(extraction, tmp_path / "id")
    strict = run_extraction(signs, "tfidf:", ontology, include_assertions=True, **QUICK)
    with pytest.raises(ParameterError):
        compare_extractions([first, write_extraction(strict, tmp_path / "strict")])
    fewer = replace(signs, documents=signs.documents[:-1])
    other = run_extraction(fewer, "tfidf:", ontology, **QUICK)
    with pytest.raises(PairingError):
        compare_extractions([first, write_extraction(other, tmp_path / "fewer")])


@pytest.mark.slow
def test_the_gate_fails_for_another_mode_and_passes_for_the_same_run(
    extraction: Any, ontology: Ontology, signs: AnnotatedCorpus, tmp_path: Path
) -> None:
    def stored_run(run: Any, name: str) -> Any:
        file = write_extraction(run, tmp_path / name)
        return load_run(file.parent / json.loads(file.read_text())["run"])

    base_run = stored_run(extraction, "base")
    strict = run_extraction(signs, "tfidf:", ontology, include_assertions=True, **QUICK)
    macro = run_extraction(signs, "tfidf:", ontology, averaging="macro", **QUICK)
    assert check_gate(base_run, against=BaselineCheck(base_run, 0.01)).passed
    for other_extraction in (strict, macro):
        gate_result = check_gate(stored_run(other_extraction, "other"), against=BaselineCheck(base_run, 0.01))
        assert not gate_result.passed
        assert "different ways" in gate_result.verdicts[-1].message
