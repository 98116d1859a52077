"""Tuning over documents: nested, on equal terms, from stored candidates."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from equipoise.config import StatsConfig
from equipoise.domains.phenotypes.config import make_config
from equipoise.domains.phenotypes.extraction.annotated_corpus import AnnotatedCorpus
from equipoise.domains.phenotypes.extraction.candidates import SPLITTER_CHAIN, SelectionSettings
from equipoise.domains.phenotypes.extraction.experiment import run_extraction
from equipoise.domains.phenotypes.extraction.extractor import TermExtractor
from equipoise.domains.phenotypes.extraction.predict import predict
from equipoise.domains.phenotypes.extraction.report import tuning_view
from equipoise.domains.phenotypes.extraction.tuning import (
    MAX_RESULTS,
    CandidateGenerator,
    candidate_generators,
    refined_configurations,
    tune_extraction,
)
from equipoise.domains.phenotypes.extraction.tuning_results import pareto_frontier, read_tuned_parameters
from equipoise.domains.phenotypes.index.retriever import TermRetriever
from equipoise.domains.phenotypes.ontology import Ontology
from equipoise.errors import InputError, ParameterError
from equipoise.evidence.sets import Sets
from equipoise.metrics.sets import SetF1
from equipoise.report.terminal import Paragraph
from equipoise.runs.gate import check_gate
from equipoise.runs.run_folder import load_run
from toy_ontology import retrieve_candidates

CHUNKS: dict[str, Any] = {"dictionary": False, "chunkers": SPLITTER_CHAIN}


@pytest.fixture(scope="module")
def tuned(ontology: Ontology, signs: AnnotatedCorpus) -> Any:
    return tune_extraction(signs, ["tfidf:", "hash"], ontology, budget=12, folds=4, **CHUNKS)


def test_a_document_is_scored_by_what_was_chosen_without_it(tuned: Any, signs: AnnotatedCorpus) -> None:
    model = tuned.models[0]
    table = model.trials.f1[: len(model.tuning.grid)]
    values = model.result.per_unit[model.tuning.metric]
    from equipoise.domains.phenotypes.extraction.tuning import document_folds

    for train, test in document_folds(tuned.gold, 4, 0):
        means = np.nanmean(table[:, train], axis=1)
        best = np.flatnonzero(means >= means.max() - 1e-12)[0]
        assert values[test] == pytest.approx(table[best][test], nan_ok=True)


def test_the_trials_are_the_scores_of_plain_runs(tuned: Any, ontology: Ontology, signs: AnnotatedCorpus) -> None:
    model = tuned.models[0]
    found = retrieve_candidates(tuned.gold.documents, TermRetriever("tfidf:", ontology), num_results=MAX_RESULTS)
    for place in (0, 5, 11):
        answer = predict(found, **model.trials.settings[place].selection.record()).sets()
        sets = Sets.of(tuned.gold.sets(), answer)
        value = SetF1("macro", "id").measure(sets).value
        assert model.tuning.trials[place].value == pytest.approx(value)


def test_every_model_gets_the_same_trials_and_thresholds_of_its_own(tuned: Any) -> None:
    first, other = (model.tuning for model in tuned.models)
    assert len(first.grid) == len(other.grid) == 12
    thresholds = [{trial.params["chunk_threshold"] for trial in each.grid} for each in (first, other)]
    assert thresholds[0] != thresholds[1]
    assert not any(finding.code in ("EQ201", "EQ203") for finding in tuned.findings)
    assert tuned.comparison is not None


def test_a_repeated_tuning_loads_finished_models_and_a_failing_one_is_reported(
    tuned: Any, ontology: Ontology, signs: AnnotatedCorpus, tmp_path: Path
) -> None:
    class Broken:
        def encode(self, texts: Any) -> Any:
            raise TimeoutError("no answer")

    first = tune_extraction(signs, ["tfidf:", Broken()], ontology, budget=12, folds=4, output=tmp_path, **CHUNKS)
    assert [model.name for model in first.models] == ["tfidf:"]
    assert [error.code for error in first.failures.values()] == ["E700"]
    again = tune_extraction(signs, ["tfidf:", "hash"], ontology, budget=12, folds=4, output=tmp_path, **CHUNKS)
    assert again.resumed == ("tfidf:",)
    assert again.to_dict() == tuned.to_dict()


def test_the_nested_figure_is_not_above_the_optimistic_one(tuned: Any) -> None:
    for model in tuned.models:
        assert model.tuning.nested <= model.tuning.optimistic + 1e-12
        assert model.result[model.tuning.metric].value == pytest.approx(model.tuning.nested)


def test_sweeps_embed_nothing(ontology: Ontology, signs: AnnotatedCorpus, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    search = TermRetriever.search

    def counting(self: TermRetriever, queries: Any, k: int, progress: Any = None) -> Any:
        asked.append(len(queries))
        return search(self, queries, k)

    monkeypatch.setattr(TermRetriever, "search", counting)
    tune_extraction(signs, "hash", ontology, budget=30, folds=2, **CHUNKS)
    assert len(asked) == 1


def test_without_folds_the_figure_is_called_what_it_is(
    ontology: Ontology, signs: AnnotatedCorpus, tmp_path: Path
) -> None:
    found = tune_extraction(signs, "tfidf:", ontology, budget=5, folds=1)
    assert [each.code for each in found.findings if each.code == "EQ201"] == ["EQ201"]
    found.write(tmp_path)
    (path,) = (tmp_path / "runs").iterdir()
    assert "EQ201" in [each.code for each in load_run(path).result.findings]
    assert found.models[0].tuning.metric == "F1(average=macro,mode=id)"


def test_tuned_parameters_on_the_documents_that_chose_them_raise_eq201(
    tuned: Any, ontology: Ontology, signs: AnnotatedCorpus, tmp_path: Path
) -> None:
    tuned.write(tmp_path)
    kept = read_tuned_parameters(tmp_path, "tfidf:")
    assert kept.parameters == {**tuned.models[0].best, "chunkers": SPLITTER_CHAIN, "branch": None}
    same = run_extraction(signs, "tfidf:", ontology, tuned=kept, bootstrap=False, output=tmp_path / "run")
    stored = load_run(tmp_path / "run" / "run")
    assert "EQ201" in [each.code for each in stored.result.findings]
    judged = check_gate(stored, [f"{same.primary}>=0"])
    assert not judged.passed
    assert "EQ201" in judged.verdicts[0].message
    others = AnnotatedCorpus(
        tuple(
            type(each)(each.id, f"{each.text} Seen today.", each.annotations, each.language) for each in signs.documents
        )
    )
    unseen = run_extraction(others, "tfidf:", ontology, tuned=kept, bootstrap=False)
    assert "EQ201" not in [each.code for each in unseen.findings]
    assert json.loads((tmp_path / "extraction_tuning.json").read_text())["mode"] == "id"


def test_a_tuning_is_deployed_with_all_that_it_was_made_with(
    ontology: Ontology, signs: AnnotatedCorpus, tmp_path: Path
) -> None:
    made: dict[str, Any] = {"chunkers": ("sentence",), "multi_vector": False, "include_assertions": True}
    found = tune_extraction(signs, "tfidf:", ontology, budget=3, folds=2, output=tmp_path, **made)
    kept = read_tuned_parameters(tmp_path)
    run = run_extraction(
        signs, "tfidf:", ontology, tuned=kept, bootstrap=False, averaging="macro", chunkers=("sentence",)
    )
    assert {name: getattr(run.settings, name) for name in made} == made
    assert run.result[run.primary].value == pytest.approx(found.models[0].tuning.optimistic)


def test_a_tuning_is_not_deployed_beside_settings_that_say_otherwise(
    tuned: Any, ontology: Ontology, signs: AnnotatedCorpus, tmp_path: Path
) -> None:
    tuned.write(tmp_path)
    kept = read_tuned_parameters(tmp_path, "tfidf:")
    with pytest.raises(ParameterError, match="chunkers"):
        run_extraction(signs, "tfidf:", ontology, tuned=kept, chunkers=("sentence",))
    with pytest.raises(ParameterError):
        run_extraction(signs, "hash", ontology, tuned=kept)
    with pytest.raises(ParameterError):
        run_extraction(signs, "tfidf:", ontology, tuned=replace(kept, ontology="another"))


def test_a_choice_that_is_no_better_than_the_usual_parameters_is_remarked_on(tuned: Any) -> None:
    def told(model: Any, usual: float) -> str:
        trials = list(model.tuning.trials)
        trials[model.tuning.baseline] = replace(trials[model.tuning.baseline], value=usual)
        part = replace(tuned.models[0], tuning=replace(model.tuning, trials=tuple(trials)))
        shown = tuning_view(replace(tuned, models=(part,), comparison=None)).parts()
        return " ".join(each.text for each in shown if isinstance(each, Paragraph))

    first = tuned.models[0]
    assert "no trial is better" in told(first, first.tuning.optimistic)
    assert "no trial is better" not in told(first, first.tuning.optimistic - 0.01)
    assert "Deploy tfidf: with" in told(first, 0.0)


def test_more_folds_than_documents_are_refused(ontology: Ontology, signs: AnnotatedCorpus) -> None:
    with pytest.raises(InputError, match="9 folds"):
        tune_extraction(signs, "tfidf:", ontology, folds=9)


def test_the_frontier_holds_what_nothing_beats() -> None:
    precision, recall = (0.9, 0.5, 0.6, 0.6, 0.1, 1.0), (0.1, 0.5, 0.5, 0.4, 0.9, 0.99)
    # The last trial is a baseline outside the grid.
    frontier = pareto_frontier(precision[:5], recall[:5])
    beaten = {
        place
        for place in range(5)
        for other in range(5)
        if (precision[other] >= precision[place] and recall[other] > recall[place])
        or (precision[other] > precision[place] and recall[other] >= recall[place])
    }
    assert set(frontier) == set(range(5)) - beaten
    assert [recall[place] for place in frontier] == sorted(recall[place] for place in frontier)


def test_the_nested_interval_has_the_requested_confidence_level(ontology: Ontology, signs: AnnotatedCorpus) -> None:
    found, wide = (
        tune_extraction(signs, "tfidf:", ontology, budget=3, folds=2, config=StatsConfig(confidence_level=level))
        for level in (0.8, 0.95)
    )
    narrow, usual = (each.models[0].result.estimates[each.models[0].result.names[0]].interval for each in (found, wide))
    assert (narrow.confidence_level, usual.confidence_level) == (0.8, 0.95)
    assert usual.low <= narrow.low <= narrow.high <= usual.high


def test_generators_of_candidates_are_chosen_unless_they_are_fixed(ontology: Ontology, signs: AnnotatedCorpus) -> None:
    settings = make_config({"branch": "T:02"})
    every = candidate_generators(settings, ontology, "tfidf:", ())
    assert len(every) == len(set(every)) == 8
    assert every[0] == CandidateGenerator(True, ("span",), "T:02")
    assert {choice.branch for choice in candidate_generators(settings, ontology, "tfidf:", ("branch",))} == {"T:02"}
    assert all(choice.dictionary for choice in candidate_generators(settings, ontology, "dict:", ()))
    found = tune_extraction(signs, "tfidf:", ontology, budget=9, folds=2)
    tried = {setting.generator for setting in found.models[0].trials.settings}
    assert tried == set(candidate_generators(make_config({}), ontology, "tfidf:", ()))
    assert len(found.models[0].tuning.grid) == 9


def test_refined_thresholds_are_near_the_best_one(ontology: Ontology, signs: AnnotatedCorpus) -> None:
    documents = {document.id: document.text for document in signs.documents}
    candidates = TermExtractor(ontology, TermRetriever("tfidf:", ontology), dictionary=False).candidates(documents)
    best = SelectionSettings(chunk_threshold=0.5)
    scores = np.unique(candidates.scores[:, 0])
    refined = list(refined_configurations(candidates, best))
    level = np.mean(scores < 0.5)
    for setting in refined:
        assert abs(np.mean(scores < setting.chunk_threshold) - level) <= 0.075 + 1 / len(scores)
        assert replace(setting, chunk_threshold=0.5) == best
