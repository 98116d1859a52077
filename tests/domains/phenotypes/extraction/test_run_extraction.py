"""A run of extraction as its users call it, on a small ontology."""

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
def found(ontology: Ontology, signs: AnnotatedCorpus) -> Any:
    return run_extraction(signs, "tfidf:", ontology, **QUICK)


def counts(found: Any, mode: str) -> list[tuple[int, int, int]]:
    """Hits, gold and predicted of each document, by plain sets."""
    rows = []
    for name, given in found.predictions.sets().items():
        sides = [set(found.gold.sets()[name]), set(given)]
        if mode == "present":
            sides = [{each for each in side if each[1] == "affirmed"} for side in sides]
        if mode == "id":
            sides = [{term for term, _ in side} for side in sides]
        rows.append((len(sides[0] & sides[1]), len(sides[0]), len(sides[1])))
    return rows


@pytest.mark.parametrize("mode", ["strict", "present", "id"])
def test_the_figures_are_those_of_plain_sets(found: Any, mode: str) -> None:
    rows = counts(found, mode)
    hits, gold, given = map(sum, zip(*rows, strict=True))
    f1 = [2 * h / (g + p) for h, g, p in rows if g + p]
    recall = [h / g for h, g, _ in rows if g]
    suffix = "" if mode == "strict" else f"mode={mode}"
    micro, macro = (f"({suffix})" if suffix else ""), f"(average=macro{',' if suffix else ''}{suffix})"
    result = found.result
    assert result[f"P{micro}"].value == pytest.approx(hits / given)
    assert result[f"R{micro}"].value == pytest.approx(hits / gold)
    assert result[f"F1{micro}"].value == pytest.approx(2 * hits / (gold + given))
    assert result[f"F1{macro}"].value == pytest.approx(np.mean(f1))
    assert result[f"R{macro}"].value == pytest.approx(np.mean(recall))
    weighted = macro.replace("macro", "weighted")
    assert result[f"R{weighted}"].value == pytest.approx(hits / gold)


def test_soft_scores_are_never_below_the_exact_ones(found: Any) -> None:
    for name in ("F1(mode=id)", "P(mode=id)", "R(mode=id)"):
        soft = found.result[name.replace(")", ",soft)")]
        assert found.result[name].value <= soft.value <= 1.0


def test_a_document_without_gold_is_undefined_and_counted(found: Any) -> None:
    assert found.gold.annotated.without_gold == ("d",)
    assert found.result["R(average=macro,mode=id)"].undefined == 1
    assert any("without gold" in note for note in found.gold.notes)


def test_every_gold_entry_is_traced_once_and_found_ones_are_hits(found: Any) -> None:
    stages = found.stages
    assert sum(stages.values()) == sum(len(each) for each in found.gold.sets().values())
    assert stages["found"] == sum(hits for hits, _, _ in counts(found, "strict"))
    assert found.errors_by_kind.gold["right"] == stages["found"]


def test_gold_spans_part_the_losses_of_chunker_and_model(found: Any) -> None:
    spans = found.gold_span_oracle
    marked = sum(len(each) for each in found.gold.sets().values())
    assert spans.n_found + spans.n_lost_by_chunking + spans.n_lost_by_model == marked
    # Every span is a label or a synonym of its term, word for word.
    assert spans.retrieval["gold span finds its term first"].value == 1.0
    assert spans.n_lost_by_model == 0


def test_alternative_ids_are_followed_and_unknown_ones_are_listed(ontology: Ontology, signs: AnnotatedCorpus) -> None:
    first = signs.documents[0]
    odd = replace(first, annotations=(*first.annotations, Annotation("T:77")))
    gold = resolve_annotations(replace(signs, documents=(odd, *signs.documents[1:])), ontology)
    assert ("T:07", "affirmed") in gold.sets()["b"]
    assert [resolution.how for resolution in gold.moved] == ["alternative"]
    assert "'T:77'" in gold.annotated.problems[0].message
    assert gold.sets()["a"] == resolve_annotations(signs, ontology).sets()["a"]


def test_a_document_of_which_no_id_is_known_is_lost_and_not_without_gold(
    ontology: Ontology, signs: AnnotatedCorpus
) -> None:
    strange = replace(signs.documents[0], annotations=(Annotation("T:77"),))
    gold = resolve_annotations(replace(signs, documents=(strange, *signs.documents[1:])), ontology)
    assert strange.id not in gold.sets()
    assert gold.annotated.without_gold == ("d",)
    assert [(each.where, bool(each.hint)) for each in gold.lost] == [("document a", True)]
    assert gold.problem_messages[-1].startswith("document a has no gold id")


def test_ids_of_another_ontology_are_refused(ontology: Ontology, signs: AnnotatedCorpus) -> None:
    strange = tuple(replace(each, annotations=(Annotation("HP:0001250"),)) for each in signs.documents)
    with pytest.raises(InputError):
        resolve_annotations(replace(signs, documents=strange), ontology)


def test_documents_that_nobody_annotated_are_refused(ontology: Ontology, signs: AnnotatedCorpus) -> None:
    bare = tuple(replace(each, annotations=()) for each in signs.documents)
    with pytest.raises(InputError, match=r"8"):
        resolve_annotations(replace(signs, documents=bare), ontology)


def test_a_language_without_rules_is_noted_and_read_all_the_same(ontology: Ontology, signs: AnnotatedCorpus) -> None:
    first, *others = signs.documents
    gold = resolve_annotations(replace(signs, documents=(replace(first, language="fr"), *others)), ontology)
    assert gold.documents[0].language is None
    assert any("assertions in fr" in note for note in gold.notes)


def test_gold_that_is_all_affirmed_is_said_to_measure_no_assertions(ontology: Ontology, signs: AnnotatedCorpus) -> None:
    plain = replace(signs, documents=(signs.documents[1], signs.documents[2]))
    found = run_extraction(plain, "tfidf:", ontology, bootstrap=False)
    assert [each.code for each in found.findings if each.code == "EQ140"] == ["EQ140"]
    assert found.result.findings == found.findings
    assert not any(each.interval.known for each in found.result.estimates.values())


def test_chance_levels_are_exact_and_soft_ones_are_never_below(found: Any) -> None:
    rows = list(found.gold.sets())
    wanted = [{term for term, _ in found.gold.sets()[name]} for name in rows]
    given = [{term for term, _ in found.predictions.sets()[name]} for name in rows]
    hits = np.mean([[len(truth & answer) for truth in wanted] for answer in given]) * len(rows)
    total = sum(map(len, wanted)) + sum(map(len, given))
    assert found.result["F1(mode=id)"].chance == pytest.approx(2 * hits / total)
    for name in ("F1", "P", "R"):
        for average in ("", "average=macro,"):
            exact, soft = (found.result[f"{name}({average}mode=id{more})"].chance for more in ("", ",soft"))
            assert exact <= soft + 1e-12


def test_gold_spans_are_asked_for_the_first_term_once(ontology: Ontology, signs: AnnotatedCorpus) -> None:
    single = run_extraction(signs, "tfidf:", ontology, num_results=1, bootstrap=False)
    assert single.gold_span_oracle is not None
    assert single.gold_span_oracle.retrieval.names == ("gold span finds its term first",)


def test_what_was_written_can_be_predicted_from_again_and_scored(found: Any, tmp_path: Path) -> None:
    file = found.write(tmp_path / "default")
    content = json.loads(file.read_text())
    kept = Candidates.load(file.parent / "candidates.npz")
    again = predict(kept, **found.settings.pipeline.record())
    assert again.sets() == found.predictions.sets()
    assert content["mode"] == "id"
    assert content["primary"] == "F1(mode=id)"
    run = load_run(file.parent / content["run"])
    assert run.result.names == found.result.names
    assert run.manifest.complete


def test_a_repeated_run_loads_its_candidates_and_has_the_same_content(
    ontology: Ontology, signs: AnnotatedCorpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run_extraction(signs, "tfidf:", ontology, output=tmp_path, **QUICK)
    with monkeypatch.context() as patch:
        patch.setattr(experiment.TermExtractor, "candidates", lambda *args, **options: pytest.fail("retrieved again"))
        again = run_extraction(signs, "tfidf:", ontology, output=tmp_path, **QUICK)
    assert (first.resumed, again.resumed) == (False, True)
    assert again.to_dict() == first.to_dict()
    other = run_extraction(signs, "tfidf:", ontology, output=tmp_path, **{**QUICK, "num_results": 3})
    assert not other.resumed


def test_a_lost_document_makes_the_run_partial(ontology: Ontology, signs: AnnotatedCorpus, tmp_path: Path) -> None:
    lost = replace(signs, problems=(AnnotationIssue("x.json", "is not JSON", lost=True),))
    found = run_extraction(lost, "tfidf:", ontology, output=tmp_path, bootstrap=False, **QUICK)
    run = load_run(tmp_path / json.loads((tmp_path / "extraction_results.json").read_text())["run"])
    assert found.gold.lost_message == "1 document could not be read: x.json"
    assert "x.json" in run.caution


def test_settings_that_nobody_knows_are_refused(ontology: Ontology, signs: AnnotatedCorpus) -> None:
    with pytest.raises(UnknownNameError) as caught:
        run_extraction(signs, "tfidf:", ontology, num_result=3)
    assert caught.value.hint.startswith("did you mean num_results")
    with pytest.raises(UnknownNameError, match="averaging"):
        run_extraction(signs, "tfidf:", ontology, averaging="mean")
    with pytest.raises(ParameterError):
        run_extraction(signs, ["tfidf:", "hash"], ontology)


def written(found: Any, folder: Path) -> Path:
    file: Path = found.write(folder)
    return file


def test_runs_are_compared_by_document_and_namesakes_go_by_folder(
    found: Any, ontology: Ontology, signs: AnnotatedCorpus, tmp_path: Path
) -> None:
    strict = run_extraction(signs, "tfidf:", ontology, **{**QUICK, "chunk_threshold": 0.9})
    files = [written(found, tmp_path / "default"), written(strict, tmp_path / "high")]
    compared = compare_extractions(files, config=StatsConfig(n_permutations=100, n_resamples=100))
    assert compared.primary == "F1(mode=id)"
    assert set(compared.order) == {found.result.system, strict.result.system}
    twins = compare_extractions(
        [files[0], written(found, tmp_path / "twin")], "F1(average=macro,mode=id)",
        primary="F1(average=macro,mode=id)", config=StatsConfig(n_permutations=100, n_resamples=100),
    )  # fmt: skip
    assert set(twins.order) == {"default", "twin"}
    assert twins.contrasts[0].difference == 0.0


def test_other_modes_and_other_documents_are_not_compared(
    found: Any, ontology: Ontology, signs: AnnotatedCorpus, tmp_path: Path
) -> None:
    first = written(found, tmp_path / "id")
    strict = run_extraction(signs, "tfidf:", ontology, include_assertions=True, **QUICK)
    with pytest.raises(ParameterError):
        compare_extractions([first, written(strict, tmp_path / "strict")])
    fewer = replace(signs, documents=signs.documents[:-1])
    other = run_extraction(fewer, "tfidf:", ontology, **QUICK)
    with pytest.raises(PairingError):
        compare_extractions([first, written(other, tmp_path / "fewer")])


@pytest.mark.slow
def test_the_gate_fails_closed_on_another_mode_and_opens_for_itself(
    found: Any, ontology: Ontology, signs: AnnotatedCorpus, tmp_path: Path
) -> None:
    def stored(run: Any, name: str) -> Any:
        file = written(run, tmp_path / name)
        return load_run(file.parent / json.loads(file.read_text())["run"])

    base = stored(found, "base")
    strict = run_extraction(signs, "tfidf:", ontology, include_assertions=True, **QUICK)
    macro = run_extraction(signs, "tfidf:", ontology, averaging="macro", **QUICK)
    assert check_gate(base, against=BaselineCheck(base, 0.01)).passed
    for other in (strict, macro):
        closed = check_gate(stored(other, "other"), against=BaselineCheck(base, 0.01))
        assert not closed.passed
        assert "different ways" in closed.verdicts[-1].message
