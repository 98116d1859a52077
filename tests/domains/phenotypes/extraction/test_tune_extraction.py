"""Tuning over documents: nested cross-validation, equal grids, stored candidates."""

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
from equipoise.domains.phenotypes.extraction.tuning_results import read_tuned_parameters
from equipoise.domains.phenotypes.index.retriever import TermRetriever
from equipoise.domains.phenotypes.ontology import Ontology
from equipoise.errors import InputError, ParameterError
from equipoise.evidence.sets import Sets
from equipoise.metrics.sets import SetF1
from equipoise.report.terminal import Paragraph
from equipoise.runs.gate import check_gate
from equipoise.runs.run_folder import load_run
from equipoise.tuning.grid import pareto_front
from toy_ontology import retrieve_candidates

CHUNKS: dict[str, Any] = {"dictionary": False, "chunkers": SPLITTER_CHAIN}


@pytest.fixture(scope="module")
def tuning(ontology: Ontology, signs: AnnotatedCorpus) -> Any:
    return tune_extraction(signs, ["tfidf:", "hash"], ontology, budget=12, folds=4, **CHUNKS)


def test_a_document_is_scored_with_settings_selected_without_it(tuning: Any, signs: AnnotatedCorpus) -> None:
    model = tuning.models[0]
    table = model.trials.f1[: len(model.tuning.grid)]
    values = model.result.per_unit[model.tuning.metric]
    from equipoise.domains.phenotypes.extraction.tuning import document_folds

    for train, test in document_folds(tuning.gold, 4, 0):
        means = np.nanmean(table[:, train], axis=1)
        best = np.flatnonzero(means >= means.max() - 1e-12)[0]
        assert values[test] == pytest.approx(table[best][test], nan_ok=True)


def test_the_trials_have_the_scores_of_single_runs(tuning: Any, ontology: Ontology, signs: AnnotatedCorpus) -> None:
    model = tuning.models[0]
    candidates = retrieve_candidates(tuning.gold.documents, TermRetriever("tfidf:", ontology), num_results=MAX_RESULTS)
    for trial_index in (0, 5, 11):
        predictions = predict(candidates, **model.trials.settings[trial_index].selection.record()).sets()
        sets = Sets.of(tuning.gold.sets(), predictions)
        value = SetF1("macro", "id").measure(sets).value
        assert model.tuning.trials[trial_index].value == pytest.approx(value)


def test_every_model_has_the_same_number_of_trials_and_separate_thresholds(tuning: Any) -> None:
    first, second = (model.tuning for model in tuning.models)
    assert len(first.grid) == len(second.grid) == 12
    thresholds = [{trial.params["chunk_threshold"] for trial in model_tuning.grid} for model_tuning in (first, second)]
    assert thresholds[0] != thresholds[1]
    assert not any(finding.code in ("EQ201", "EQ203") for finding in tuning.findings)
    assert tuning.comparison is not None


def test_a_repeated_tuning_loads_finished_models_and_reports_failing_ones(
    tuning: Any, ontology: Ontology, signs: AnnotatedCorpus, tmp_path: Path
) -> None:
    class BrokenModel:
        def encode(self, texts: Any) -> Any:
            raise TimeoutError("no answer")

    first = tune_extraction(signs, ["tfidf:", BrokenModel()], ontology, budget=12, folds=4, output=tmp_path, **CHUNKS)
    assert [model.name for model in first.models] == ["tfidf:"]
    assert [error.code for error in first.failures.values()] == ["E700"]
    repeated = tune_extraction(signs, ["tfidf:", "hash"], ontology, budget=12, folds=4, output=tmp_path, **CHUNKS)
    assert repeated.resumed == ("tfidf:",)
    assert repeated.to_dict() == tuning.to_dict()


def test_the_nested_score_is_at_most_the_optimistic_one(tuning: Any) -> None:
    for model in tuning.models:
        assert model.tuning.nested <= model.tuning.optimistic + 1e-12
        assert model.result[model.tuning.metric].value == pytest.approx(model.tuning.nested)


def test_trials_do_not_embed_again(ontology: Ontology, signs: AnnotatedCorpus, monkeypatch: pytest.MonkeyPatch) -> None:
    n_queries: list[int] = []
    search = TermRetriever.search

    def counting_search(self: TermRetriever, queries: Any, k: int, progress: Any = None) -> Any:
        n_queries.append(len(queries))
        return search(self, queries, k)

    monkeypatch.setattr(TermRetriever, "search", counting_search)
    tune_extraction(signs, "hash", ontology, budget=30, folds=2, **CHUNKS)
    assert len(n_queries) == 1


def test_without_folds_the_score_is_marked_as_optimistic(
    ontology: Ontology, signs: AnnotatedCorpus, tmp_path: Path
) -> None:
    tuning = tune_extraction(signs, "tfidf:", ontology, budget=5, folds=1)
    assert [finding.code for finding in tuning.findings if finding.code == "EQ201"] == ["EQ201"]
    tuning.write(tmp_path)
    (path,) = (tmp_path / "runs").iterdir()
    assert "EQ201" in [finding.code for finding in load_run(path).result.findings]
    assert tuning.models[0].tuning.metric == "F1(average=macro,mode=id)"


def test_tuned_parameters_on_their_tuning_documents_raise_eq201(
    tuning: Any, ontology: Ontology, signs: AnnotatedCorpus, tmp_path: Path
) -> None:
    tuning.write(tmp_path)
    parameters = read_tuned_parameters(tmp_path, "tfidf:")
    assert parameters.parameters == {**tuning.models[0].best, "chunkers": SPLITTER_CHAIN, "branch": None}
    run_on_same = run_extraction(signs, "tfidf:", ontology, tuned=parameters, bootstrap=False, output=tmp_path / "run")
    stored_run = load_run(tmp_path / "run" / "run")
    assert "EQ201" in [finding.code for finding in stored_run.result.findings]
    gate_result = check_gate(stored_run, [f"{run_on_same.primary}>=0"])
    assert not gate_result.passed
    assert "EQ201" in gate_result.verdicts[0].message
    changed_corpus = AnnotatedCorpus(
        tuple(
            type(document)(document.id, f"{document.text} Seen today.", document.annotations, document.language)
            for document in signs.documents
        )
    )
    run_on_changed = run_extraction(changed_corpus, "tfidf:", ontology, tuned=parameters, bootstrap=False)
    assert "EQ201" not in [finding.code for finding in run_on_changed.findings]
    assert json.loads((tmp_path / "extraction_tuning.json").read_text())["mode"] == "id"


def test_tuned_parameters_are_used_with_the_settings_of_the_tuning(
    ontology: Ontology, signs: AnnotatedCorpus, tmp_path: Path
) -> None:
    settings: dict[str, Any] = {"chunkers": ("sentence",), "multi_vector": False, "include_assertions": True}
    tuning = tune_extraction(signs, "tfidf:", ontology, budget=3, folds=2, output=tmp_path, **settings)
    parameters = read_tuned_parameters(tmp_path)
    run = run_extraction(
        signs, "tfidf:", ontology, tuned=parameters, bootstrap=False, averaging="macro", chunkers=("sentence",)
    )
    assert {name: getattr(run.settings, name) for name in settings} == settings
    record = tuning.models[0].tuning
    assert record.trials[record.baseline].value > record.optimistic  # so the defaults are used
    assert run.result[run.primary].value == pytest.approx(record.trials[record.baseline].value)


def test_parameters_tuned_for_the_dictionary_are_used(
    ontology: Ontology, signs: AnnotatedCorpus, tmp_path: Path
) -> None:
    tune_extraction(signs, "dict:", ontology, budget=3, folds=2, output=tmp_path)
    parameters = read_tuned_parameters(tmp_path)
    assert parameters == read_tuned_parameters(tmp_path, "dict:")
    run = run_extraction(signs, parameters.model, ontology, tuned=parameters, bootstrap=False)
    assert run.result.system.startswith("dict (")


def test_tuned_parameters_and_different_settings_are_an_error(
    tuning: Any, ontology: Ontology, signs: AnnotatedCorpus, tmp_path: Path
) -> None:
    tuning.write(tmp_path)
    parameters = read_tuned_parameters(tmp_path, "tfidf:")
    with pytest.raises(ParameterError, match="chunkers"):
        run_extraction(signs, "tfidf:", ontology, tuned=parameters, chunkers=("sentence",))
    with pytest.raises(ParameterError):
        run_extraction(signs, "hash", ontology, tuned=parameters)
    with pytest.raises(ParameterError):
        run_extraction(signs, "tfidf:", ontology, tuned=replace(parameters, ontology="another"))


def test_a_selection_that_is_no_better_than_the_default_gives_a_note(tuning: Any) -> None:
    def view_text(model: Any, default_score: float) -> str:
        trials = list(model.tuning.trials)
        trials[model.tuning.baseline] = replace(trials[model.tuning.baseline], value=default_score)
        changed_model = replace(tuning.models[0], tuning=replace(model.tuning, trials=tuple(trials)))
        parts = tuning_view(replace(tuning, models=(changed_model,), comparison=None)).parts()
        return " ".join(part.text for part in parts if isinstance(part, Paragraph))

    first = tuning.models[0]
    assert "no trial scores higher" in view_text(first, first.tuning.optimistic)
    assert "no trial scores higher" not in view_text(first, first.tuning.optimistic - 0.01)
    assert "If you use tfidf:, use " in view_text(first, 0.0)


def test_more_folds_than_documents_are_an_error(ontology: Ontology, signs: AnnotatedCorpus) -> None:
    with pytest.raises(InputError, match="9 folds"):
        tune_extraction(signs, "tfidf:", ontology, folds=9)


def test_the_frontier_has_the_trials_that_no_trial_dominates() -> None:
    precision, recall = (0.9, 0.5, 0.6, 0.6, 0.1, 1.0), (0.1, 0.5, 0.5, 0.4, 0.9, 0.99)
    # The last trial is a baseline outside the grid.
    frontier = pareto_front(-np.array(recall[:5]), np.array(precision[:5]))[::-1]
    dominated = {
        trial
        for trial in range(5)
        for other in range(5)
        if (precision[other] >= precision[trial] and recall[other] > recall[trial])
        or (precision[other] > precision[trial] and recall[other] >= recall[trial])
    }
    assert set(frontier) == set(range(5)) - dominated
    assert [recall[trial] for trial in frontier] == sorted(recall[trial] for trial in frontier)


def test_the_nested_interval_has_the_requested_confidence_level(ontology: Ontology, signs: AnnotatedCorpus) -> None:
    narrow_tuning, wide_tuning = (
        tune_extraction(signs, "tfidf:", ontology, budget=3, folds=2, config=StatsConfig(confidence_level=level))
        for level in (0.8, 0.95)
    )
    narrow, wide = (
        result.models[0].result.estimates[result.models[0].result.names[0]].interval
        for result in (narrow_tuning, wide_tuning)
    )
    assert (narrow.confidence_level, wide.confidence_level) == (0.8, 0.95)
    assert wide.low <= narrow.low <= narrow.high <= wide.high


def test_candidate_generators_are_selected_unless_they_are_fixed(ontology: Ontology, signs: AnnotatedCorpus) -> None:
    settings = make_config({"branch": "T:02"})
    generators = candidate_generators(settings, ontology, "tfidf:", ())
    assert len(generators) == len(set(generators)) == 8
    assert generators[0] == CandidateGenerator(True, ("span",), "T:02")
    assert {generator.branch for generator in candidate_generators(settings, ontology, "tfidf:", ("branch",))} == {
        "T:02"
    }
    assert all(generator.dictionary for generator in candidate_generators(settings, ontology, "dict", ()))
    tuning = tune_extraction(signs, "tfidf:", ontology, budget=9, folds=2)
    tried_generators = {setting.generator for setting in tuning.models[0].trials.settings}
    assert tried_generators == set(candidate_generators(make_config({}), ontology, "tfidf:", ()))
    assert len(tuning.models[0].tuning.grid) == 9


def test_refined_thresholds_are_near_the_best_one(ontology: Ontology, signs: AnnotatedCorpus) -> None:
    documents = {document.id: document.text for document in signs.documents}
    candidates = TermExtractor(ontology, TermRetriever("tfidf:", ontology), dictionary=False).candidates(documents)
    best = SelectionSettings(chunk_threshold=0.5)
    scores = np.unique(candidates.scores[:, 0])
    refined = list(refined_configurations(candidates, best))
    best_level = np.mean(scores < 0.5)
    for setting in refined:
        assert abs(np.mean(scores < setting.chunk_threshold) - best_level) <= 0.075 + 1 / len(scores)
        assert replace(setting, chunk_threshold=0.5) == best
