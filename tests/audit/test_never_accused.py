"""A table that our own metrics computed is never called impossible, whatever the data and the rounding.

``EQUIPOISE_AUDIT_CASES`` sets how many bodies of evidence are drawn; each gives six tables or more.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.audit.audit import audit_table
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
SHARES = parse_metrics(
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


class Kind:
    """What a body of evidence is like."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.one = bool(rng.random() < 0.4)
        self.ties = bool(rng.random() < 0.4)
        self.graded = bool(rng.random() < 0.3) and not self.one
        self.undefined = bool(rng.random() < 0.3)
        self.truncated = bool(rng.random() < 0.4)
        self.skill = float(rng.choice([0.0, 0.3, 1.0, 3.0]))
        self.units = int(rng.integers(1, 13))
        self.items = int(rng.integers(2, 25))

    @property
    def declared(self) -> dict[str, bool]:
        """What may be said of it."""
        return {
            "one_relevant": self.one,
            "binary": not self.graded,
            "no_ties": not self.ties,
        }


Scores = dict[str, dict[str, float]]


def judged(rng: np.random.Generator, kind: Kind) -> tuple[dict[str, dict[str, int]], Scores]:
    """Judgements, and runs of random scores, better for relevant items by ``skill``."""
    qrels: dict[str, dict[str, int]] = {}
    run: Scores = {}
    for unit in range(kind.units):
        relevant = 1 if kind.one else int(rng.integers(1, kind.items + 1))
        if kind.undefined and unit and rng.random() < 0.3:
            relevant = 0
        right = rng.choice(kind.items, relevant, replace=False)
        gain = {f"d{item}": int(rng.integers(1, 4)) if kind.graded else 1 for item in right}
        scores = rng.normal(size=kind.items)
        scores[right] += kind.skill
        scores = np.round(scores) if kind.ties else scores
        depth = int(rng.integers(1, kind.items + 1)) if kind.truncated else kind.items
        kept = np.argsort(-scores, kind="stable")[:depth]
        qrels[f"q{unit}"] = gain
        run[f"q{unit}"] = {f"d{item}": float(scores[item]) for item in kept}
    return qrels, run


def ranking(rng: np.random.Generator, kind: Kind) -> Ranking:
    """Judgements and runs as evidence, with near misses."""
    qrels, run = judged(rng, kind)
    return with_near_misses(rng, kind, qrels, run)


def with_near_misses(rng: np.random.Generator, kind: Kind, qrels: dict[str, dict[str, int]], run: Scores) -> Ranking:
    similar = {
        unit: {item: float(rng.random()) for item in found if item not in qrels[unit] and rng.random() < 0.5}
        for unit, found in run.items()
    }
    near = Ranking.from_runs(similar, run, corpus_size=kind.items)
    return Ranking.from_runs(qrels, run, corpus_size=kind.items).with_near(near)


def figures(evidence: Ranking) -> dict[str, tuple[float, bool]]:
    """Every metric that is defined, and whether it is a share."""
    metrics = [*SHARES, *(RANKS if evidence.complete else ())]
    found = {metric.name: (metric.measure(evidence).value, metric in SHARES) for metric in metrics}
    return {name: pair for name, pair in found.items() if not np.isnan(pair[0])}


def tables(found: Mapping[str, tuple[float, bool]]) -> list[dict[str, str]]:
    """The figures as people print them: 2, 3 and 4 digits, as fractions and as percent, signed or not."""
    written = []
    for digits in (2, 3, 4):
        written.append({name: f"{value:.{digits}f}" for name, (value, _) in found.items()})
        percent = {
            name: f"{100 * value:.{digits - 1}f}{'%' if share else ''}" if share else f"{value:.{digits - 1}f}"
            for name, (value, share) in found.items()
        }
        written.append(percent)
        bare = {name: text.removesuffix("%") for name, text in percent.items()}
        if any(float(bare[name]) > 1 for name, (_, share) in found.items() if share):
            written.append(bare)
        written.append({f"{name} (%)" if found[name][1] else name: text for name, text in bare.items()})
    return written


def refuse_accusation(table: object, **options: object) -> None:
    found = audit_table(table, **options)  # type: ignore[arg-type]
    assert not found.impossible, (table, options, [(str(each), each.evidence) for each in found.impossible])


@settings(max_examples=CASES)
@given(seeds)
def test_no_ranking_of_any_kind_is_accused(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kind = Kind(rng)
    evidence = ranking(rng, kind)
    found = figures(evidence)
    n = int(np.count_nonzero(evidence.counts))
    written = tables(found)
    for table in written:
        refuse_accusation(table, n=n if n else None)
    refuse_accusation(written[int(rng.integers(len(written)))], **kind.declared, **({"n": n} if n else {}))
    refuse_accusation({name: value for name, (value, _) in found.items()}, **kind.declared)


@settings(max_examples=max(CASES // 3, 20))
@given(seeds)
def test_no_mixture_of_percent_and_fractions_is_accused(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kind = Kind(rng)
    kind.skill = float(rng.choice([-3.0, -1.0, 0.0]))
    found = figures(ranking(rng, kind))
    shares = [name for name in found if found[name][1]]
    few = rng.choice(shares, min(len(shares), int(rng.integers(2, 7))), replace=False)
    percent = {name: bool(rng.random() < 0.5) for name in few}
    written = {name: f"{found[name][0] * (100 if percent[name] else 1):.3f}" for name in few}
    if any(float(text) > 1 for text in written.values()):
        refuse_accusation(written, **kind.declared)


@settings(max_examples=max(CASES // 3, 20))
@given(seeds)
def test_no_random_run_is_accused_of_its_luck(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kind = Kind(rng)
    kind.skill, kind.truncated, kind.undefined = 0.0, False, False
    evidence = ranking(rng, kind)
    counted = {"classes": kind.items} if kind.one else {}
    for table in tables(figures(evidence)):
        named = {"system": str(rng.choice(["random", "Chance", "random baseline"]))} | counted | table
        refuse_accusation([named])
        refuse_accusation([named], n=len(evidence), **kind.declared)


@settings(max_examples=max(CASES // 6, 20))
@given(seeds)
def test_names_in_brackets_keep_columns_apart(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kinds = [Kind(rng) for _ in range(2)]
    halves = [tables(figures(ranking(rng, kind))) for kind in kinds]
    for first, second in zip(*halves, strict=False):
        table = {f"{name} (dev)": text for name, text in first.items()}
        refuse_accusation(table | {f"{name} (test)": text for name, text in second.items()})


def over_hits(qrels: Mapping[str, Mapping[str, int]], run: Scores, k: int) -> float:
    """Average precision at k, divided by the relevant items among the first k."""
    values = []
    for unit, scores in run.items():
        best = sorted(scores, key=lambda item: -scores[item])[:k]
        at = [rank for rank, item in enumerate(best, start=1) if item in qrels[unit]]
        values.append(sum(found / rank for found, rank in enumerate(at, start=1)) / max(len(at), 1))
    return float(np.mean(values))


@settings(max_examples=max(CASES // 6, 20))
@given(seeds)
def test_average_precision_over_items_found_is_not_accused(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kind = Kind(rng)
    kind.graded = kind.ties = kind.undefined = False
    qrels, run = judged(rng, kind)
    found = figures(with_near_misses(rng, kind, qrels, run))
    plain = {name: pair for name, pair in found.items() if not name.startswith("MAP")}
    average = {f"MAP@{k}": (over_hits(qrels, run, k), True) for k in (1, 3, 5, 10)}
    for table in tables(plain | average):
        refuse_accusation(table, **kind.declared)


def offers(preset: str, name: str) -> bool:
    """Whether a library has a metric."""
    try:
        PRESETS[preset].rules(parse_metrics(name, evidence=Ranking)[0])
    except ParameterError:
        return False
    return True


@settings(max_examples=max(CASES // 4, 30))
@given(seeds, st.sampled_from(sorted(PRESETS)))
def test_results_scored_like_a_library_are_not_accused(seed: int, preset: str) -> None:
    rng = np.random.default_rng(seed)
    kind = Kind(rng)
    qrels, run = judged(rng, kind)
    names = ["nDCG@1", "nDCG@10", "MRR@10", "HR@1", "HR@10", "P@1", "P@5", "R@5", "R@10", "MAP@10"]
    for unit in list(run)[1:]:
        if rng.random() < 0.3:
            del run[unit]
    offered = [name for name in [*names, "MRR@1", "MRR", "MAP"] if offers(preset, name)]
    result = score_like(run, qrels, offered, like=preset, config=StatsConfig(n_resamples=20))
    refuse_accusation(result.to_dict())


@settings(max_examples=max(CASES // 6, 20))
@given(seeds)
def test_several_systems_in_one_table_are_not_accused(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kind = Kind(rng)
    kind.truncated = False
    rows = [tables(figures(ranking(rng, kind))) for _ in range(3)]
    for which in range(min(len(row) for row in rows)):
        names = set.intersection(*(set(row[which]) for row in rows))
        refuse_accusation(
            [{"system": f"s{at}"} | {k: v for k, v in row[which].items() if k in names} for at, row in enumerate(rows)]
        )


@settings(max_examples=max(CASES // 6, 20))
@given(seeds)
def test_no_classes_are_accused(seed: int) -> None:
    rng = np.random.default_rng(seed)
    units, classes = int(rng.integers(1, 30)), int(rng.integers(1, 6))
    true = rng.integers(0, classes, units)
    guessed = np.where(rng.random(units) < rng.random(), true, rng.integers(0, classes, units))
    labels = Labels.of([f"c{each}" for each in true], [f"c{each}" for each in guessed])
    names = [
        "Acc",
        *(f"{symbol}(average={how})" for symbol in ("P", "R", "F1") for how in ("micro", "macro", "weighted")),
    ]
    found = {name: (parse_metrics(name, evidence=Labels)[0].measure(labels).value, True) for name in names}
    for table in tables(found):
        refuse_accusation(table, n=units, no_ties=True)
    plain = {name: found[f"{name}(average=weighted)"] for name in ("P", "R", "F1")}
    for table in tables(plain):
        refuse_accusation(table)


@settings(max_examples=max(CASES // 6, 20))
@given(seeds)
def test_no_sets_of_terms_are_accused(seed: int) -> None:
    rng = np.random.default_rng(seed)
    gold, said = {}, {}
    for document in range(int(rng.integers(1, 8))):
        terms = [f"t{term}" for term in range(8)]
        gold[f"d{document}"] = [term for term in terms if rng.random() < 0.3]
        said[f"d{document}"] = [term for term in terms if rng.random() < (0.7 if term in gold[f"d{document}"] else 0.2)]
    sets = Sets.of(gold, said)
    for how in ("micro", "macro", "weighted"):
        named = {symbol: parse_metrics(f"{symbol}(average={how})", evidence=Sets)[0] for symbol in ("P", "R", "F1")}
        values = {symbol: metric.measure(sets).value for symbol, metric in named.items()}
        known = {symbol: (value, True) for symbol, value in values.items() if not np.isnan(value)}
        for table in tables(known) if known else []:
            refuse_accusation(table)
        spelled = {f"{symbol}(average={how})": figure for symbol, figure in known.items()}
        for table in tables(spelled) if spelled else []:
            refuse_accusation(table)


@settings(max_examples=max(CASES // 10, 20))
@given(seeds)
def test_results_with_their_intervals_are_not_accused(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kind = Kind(rng)
    evidence = ranking(rng, kind)
    clusters = rng.integers(0, 4, len(evidence)) if rng.random() < 0.3 else None
    result = evaluate(
        evidence,
        ["nDCG@10", "MRR", "HR@{1,3,10}", "P@{1,3}", "R@3", "MAP"],
        config=StatsConfig(clusters=clusters, n_resamples=30),
    )
    refuse_accusation(result.to_dict())
    assert audit_table(result.to_dict()).n_values == sum(
        not np.isnan(estimate.value) for estimate in result.estimates.values()
    )
