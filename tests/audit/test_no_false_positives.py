"""Tables computed with the metrics of this package are never impossible, for any data and rounding.

``EQUIPOISE_AUDIT_CASES`` sets the number of random sets of evidence; each gives at least six tables.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.audit.apply_rules import audit_table
from equipoise.config import StatsConfig
from equipoise.errors import ParameterError
from equipoise.evidence.labels import Labels
from equipoise.evidence.ranking import Ranking
from equipoise.evidence.sets import Sets
from equipoise.metrics.parser import parse_metrics
from equipoise.reproduce.presets import PRESETS
from equipoise.reproduce.score import score_like
from equipoise.runs.evaluate import evaluate

pytestmark = pytest.mark.slow

CASES = int(os.environ.get("EQUIPOISE_AUDIT_CASES", "120"))
FRACTIONS = parse_metrics(
    (
        "MRR",
        "MRR@{1,3,10}",
        "HR@{1,2,3,5,10,20}",
        "P@{1,2,3,5,10}",
        "R@{1,3,5,10}",
        "R(capped)@{1,3,5,10}",
        "MAP",
        "MAP@{1,3,5,10}",
        "MAP(norm=R)@{1,3,5,10}",
        "nDCG",
        "nDCG@{1,3,5,10}",
        "nDCG(gain=exp)@{1,5,10}",
        "MaxOntSim@{1,3,10}",
    ),
    evidence=Ranking,
)
RANKS = parse_metrics(("MR", "MedianRank", "MR(over=units)", "MedianRank(over=units)"), evidence=Ranking)

seeds = st.integers(0, 2**32 - 1)


class EvidenceProperties:
    """Random properties of a set of evidence."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.one_relevant = bool(rng.random() < 0.4)
        self.ties = bool(rng.random() < 0.4)
        self.graded = bool(rng.random() < 0.3) and not self.one_relevant
        self.undefined = bool(rng.random() < 0.3)
        self.truncated = bool(rng.random() < 0.4)
        self.skill = float(rng.choice([0.0, 0.3, 1.0, 3.0]))
        self.units = int(rng.integers(1, 13))
        self.items = int(rng.integers(2, 25))

    @property
    def declared(self) -> dict[str, bool]:
        """The declarations that are true for the evidence."""
        return {
            "one_relevant": self.one_relevant,
            "binary": not self.graded,
            "no_ties": not self.ties,
        }


Scores = dict[str, dict[str, float]]


def random_qrels_and_run(
    rng: np.random.Generator, kind: EvidenceProperties
) -> tuple[dict[str, dict[str, int]], Scores]:
    """Qrels, and runs of random scores with ``skill`` added for relevant items."""
    qrels: dict[str, dict[str, int]] = {}
    run: Scores = {}
    for unit in range(kind.units):
        relevant = 1 if kind.one_relevant else int(rng.integers(1, kind.items + 1))
        if kind.undefined and unit and rng.random() < 0.3:
            relevant = 0
        relevant_items = rng.choice(kind.items, relevant, replace=False)
        gains = {f"d{item}": int(rng.integers(1, 4)) if kind.graded else 1 for item in relevant_items}
        scores = rng.normal(size=kind.items)
        scores[relevant_items] += kind.skill
        scores = np.round(scores) if kind.ties else scores
        depth = int(rng.integers(1, kind.items + 1)) if kind.truncated else kind.items
        retrieved_items = np.argsort(-scores, kind="stable")[:depth]
        qrels[f"q{unit}"] = gains
        run[f"q{unit}"] = {f"d{item}": float(scores[item]) for item in retrieved_items}
    return qrels, run


def ranking(rng: np.random.Generator, kind: EvidenceProperties) -> Ranking:
    """Qrels and runs as evidence, with near misses."""
    qrels, run = random_qrels_and_run(rng, kind)
    return with_near_misses(rng, kind, qrels, run)


def with_near_misses(
    rng: np.random.Generator, kind: EvidenceProperties, qrels: dict[str, dict[str, int]], run: Scores
) -> Ranking:
    similar = {
        unit: {item: float(rng.random()) for item in scores if item not in qrels[unit] and rng.random() < 0.5}
        for unit, scores in run.items()
    }
    near_ranking = Ranking.from_runs(similar, run, corpus_size=kind.items)
    return Ranking.from_runs(qrels, run, corpus_size=kind.items).with_near(near_ranking)


def metric_values(evidence: Ranking) -> dict[str, tuple[float, bool]]:
    """Every defined metric, and whether it is a fraction."""
    metrics = [*FRACTIONS, *(RANKS if evidence.complete else ())]
    values = {metric.name: (metric.measure(evidence).value, metric in FRACTIONS) for metric in metrics}
    return {name: pair for name, pair in values.items() if not np.isnan(pair[0])}


def format_tables(values: Mapping[str, tuple[float, bool]]) -> list[dict[str, str]]:
    """Format the values with 2, 3 and 4 digits, as fractions and as percentages with and without a sign."""
    formatted = []
    for digits in (2, 3, 4):
        formatted.append({name: f"{value:.{digits}f}" for name, (value, _) in values.items()})
        percent = {
            name: f"{100 * value:.{digits - 1}f}{'%' if is_fraction else ''}"
            if is_fraction
            else f"{value:.{digits - 1}f}"
            for name, (value, is_fraction) in values.items()
        }
        formatted.append(percent)
        without_sign = {name: text.removesuffix("%") for name, text in percent.items()}
        if any(float(without_sign[name]) > 1 for name, (_, is_fraction) in values.items() if is_fraction):
            formatted.append(without_sign)
        formatted.append({f"{name} (%)" if values[name][1] else name: text for name, text in without_sign.items()})
    return formatted


def assert_possible(table: object, **options: object) -> None:
    audit = audit_table(table, **options)  # type: ignore[arg-type]
    assert not audit.impossible, (table, options, [(str(finding), finding.evidence) for finding in audit.impossible])


@settings(max_examples=CASES)
@given(seeds)
def test_rankings_are_never_impossible(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kind = EvidenceProperties(rng)
    evidence = ranking(rng, kind)
    values = metric_values(evidence)
    n = int(np.count_nonzero(evidence.counts))
    formatted = format_tables(values)
    for table in formatted:
        assert_possible(table, n=n if n else None)
    assert_possible(formatted[int(rng.integers(len(formatted)))], **kind.declared, **({"n": n} if n else {}))
    assert_possible({name: value for name, (value, _) in values.items()}, **kind.declared)


@settings(max_examples=max(CASES // 3, 20))
@given(seeds)
def test_mixed_percentages_and_fractions_are_never_impossible(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kind = EvidenceProperties(rng)
    kind.skill = float(rng.choice([-3.0, -1.0, 0.0]))
    values = metric_values(ranking(rng, kind))
    fractions = [name for name in values if values[name][1]]
    sample = rng.choice(fractions, min(len(fractions), int(rng.integers(2, 7))), replace=False)
    percent = {name: bool(rng.random() < 0.5) for name in sample}
    row = {name: f"{values[name][0] * (100 if percent[name] else 1):.3f}" for name in sample}
    if any(float(text) > 1 for text in row.values()):
        assert_possible(row, **kind.declared)


@settings(max_examples=max(CASES // 3, 20))
@given(seeds)
def test_random_runs_are_never_impossible(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kind = EvidenceProperties(rng)
    kind.skill, kind.truncated, kind.undefined = 0.0, False, False
    evidence = ranking(rng, kind)
    counts = {"classes": kind.items} if kind.one_relevant else {}
    for table in format_tables(metric_values(evidence)):
        row = {"system": str(rng.choice(["random", "Chance", "random baseline"]))} | counts | table
        assert_possible([row])
        assert_possible([row], n=len(evidence), **kind.declared)


@settings(max_examples=max(CASES // 6, 20))
@given(seeds)
def test_columns_with_groups_in_brackets_are_never_impossible(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kinds = [EvidenceProperties(rng) for _ in range(2)]
    tables_by_kind = [format_tables(metric_values(ranking(rng, kind))) for kind in kinds]
    for first, second in zip(*tables_by_kind, strict=False):
        table = {f"{name} (dev)": text for name, text in first.items()}
        assert_possible(table | {f"{name} (test)": text for name, text in second.items()})


def average_precision_over_hits(qrels: Mapping[str, Mapping[str, int]], run: Scores, k: int) -> float:
    """Average precision at k, divided by the relevant items among the first k."""
    values = []
    for unit, scores in run.items():
        top_items = sorted(scores, key=lambda item: -scores[item])[:k]
        hit_ranks = [rank for rank, item in enumerate(top_items, start=1) if item in qrels[unit]]
        values.append(sum(n_hits / rank for n_hits, rank in enumerate(hit_ranks, start=1)) / max(len(hit_ranks), 1))
    return float(np.mean(values))


@settings(max_examples=max(CASES // 6, 20))
@given(seeds)
def test_average_precision_over_hits_is_never_impossible(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kind = EvidenceProperties(rng)
    kind.graded = kind.ties = kind.undefined = False
    qrels, run = random_qrels_and_run(rng, kind)
    values = metric_values(with_near_misses(rng, kind, qrels, run))
    without_map = {name: pair for name, pair in values.items() if not name.startswith("MAP")}
    average_precision = {f"MAP@{k}": (average_precision_over_hits(qrels, run, k), True) for k in (1, 3, 5, 10)}
    for table in format_tables(without_map | average_precision):
        assert_possible(table, **kind.declared)


def is_supported(preset: str, name: str) -> bool:
    """Whether a library has a metric."""
    try:
        PRESETS[preset].rules(parse_metrics(name, evidence=Ranking)[0])
    except ParameterError:
        return False
    return True


@settings(max_examples=max(CASES // 4, 30))
@given(seeds, st.sampled_from(sorted(PRESETS)))
def test_results_of_presets_are_never_impossible(seed: int, preset: str) -> None:
    rng = np.random.default_rng(seed)
    kind = EvidenceProperties(rng)
    qrels, run = random_qrels_and_run(rng, kind)
    names = ["nDCG@1", "nDCG@10", "MRR@10", "HR@1", "HR@10", "P@1", "P@5", "R@5", "R@10", "MAP@10"]
    for unit in list(run)[1:]:
        if rng.random() < 0.3:
            del run[unit]
    supported = [name for name in [*names, "MRR@1", "MRR", "MAP"] if is_supported(preset, name)]
    result = score_like(run, qrels, supported, like=preset, config=StatsConfig(n_resamples=20))
    assert_possible(result.to_dict())


@settings(max_examples=max(CASES // 6, 20))
@given(seeds)
def test_tables_of_several_systems_are_never_impossible(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kind = EvidenceProperties(rng)
    kind.truncated = False
    rows = [format_tables(metric_values(ranking(rng, kind))) for _ in range(3)]
    for format_index in range(min(len(row) for row in rows)):
        names = set.intersection(*(set(row[format_index]) for row in rows))
        assert_possible(
            [
                {"system": f"s{index}"} | {k: v for k, v in row[format_index].items() if k in names}
                for index, row in enumerate(rows)
            ]
        )


@settings(max_examples=max(CASES // 6, 20))
@given(seeds)
def test_classification_metrics_are_never_impossible(seed: int) -> None:
    rng = np.random.default_rng(seed)
    units, classes = int(rng.integers(1, 30)), int(rng.integers(1, 6))
    true_classes = rng.integers(0, classes, units)
    predicted_classes = np.where(rng.random(units) < rng.random(), true_classes, rng.integers(0, classes, units))
    labels = Labels.of([f"c{label}" for label in true_classes], [f"c{label}" for label in predicted_classes])
    names = [
        "Acc",
        *(f"{symbol}(average={average})" for symbol in ("P", "R", "F1") for average in ("micro", "macro", "weighted")),
    ]
    values = {name: (parse_metrics(name, evidence=Labels)[0].measure(labels).value, True) for name in names}
    for table in format_tables(values):
        assert_possible(table, n=units, no_ties=True)
    weighted = {name: values[f"{name}(average=weighted)"] for name in ("P", "R", "F1")}
    for table in format_tables(weighted):
        assert_possible(table)


@settings(max_examples=max(CASES // 6, 20))
@given(seeds)
def test_metrics_of_sets_are_never_impossible(seed: int) -> None:
    rng = np.random.default_rng(seed)
    gold, predicted = {}, {}
    for document in range(int(rng.integers(1, 8))):
        terms = [f"t{term}" for term in range(8)]
        gold[f"d{document}"] = [term for term in terms if rng.random() < 0.3]
        predicted[f"d{document}"] = [
            term for term in terms if rng.random() < (0.7 if term in gold[f"d{document}"] else 0.2)
        ]
    sets = Sets.of(gold, predicted)
    for average in ("micro", "macro", "weighted"):
        metrics = {
            symbol: parse_metrics(f"{symbol}(average={average})", evidence=Sets)[0] for symbol in ("P", "R", "F1")
        }
        values = {symbol: metric.measure(sets).value for symbol, metric in metrics.items()}
        defined = {symbol: (value, True) for symbol, value in values.items() if not np.isnan(value)}
        for table in format_tables(defined) if defined else []:
            assert_possible(table)
        with_averages = {f"{symbol}(average={average})": figure for symbol, figure in defined.items()}
        for table in format_tables(with_averages) if with_averages else []:
            assert_possible(table)


@settings(max_examples=max(CASES // 10, 20))
@given(seeds)
def test_results_with_intervals_are_never_impossible(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kind = EvidenceProperties(rng)
    evidence = ranking(rng, kind)
    clusters = rng.integers(0, 4, len(evidence)) if rng.random() < 0.3 else None
    result = evaluate(
        evidence,
        ["nDCG@10", "MRR", "HR@{1,3,10}", "P@{1,3}", "R@3", "MAP"],
        config=StatsConfig(clusters=clusters, n_resamples=30),
    )
    assert_possible(result.to_dict())
    assert audit_table(result.to_dict()).n_values == sum(
        not np.isnan(estimate.value) for estimate in result.estimates.values()
    )
