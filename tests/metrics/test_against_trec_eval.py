"""Agreement with trec_eval, ir_measures, ranx and gdeval; trec_eval orders ties by descending document id."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import pytrec_eval

from equipoise.evidence.ranking import Ranking
from equipoise.metrics.parser import parse_metrics

CUTOFFS = (1, 3, 5, 10, 100)
TREC_EVAL_NAMES = {
    "MRR": "recip_rank",
    "Rprec": "Rprec",
    "bpref": "bpref",
    "infAP": "infAP",
    "MAP(norm=R)": "map",
    "nDCG": "ndcg",
    **{f"HR@{k}": f"success_{k}" for k in CUTOFFS},
    **{f"P@{k}": f"P_{k}" for k in CUTOFFS},
    **{f"R@{k}": f"recall_{k}" for k in CUTOFFS},
    **{f"nDCG@{k}": f"ndcg_cut_{k}" for k in CUTOFFS},
    **{f"MAP(norm=R)@{k}": f"map_cut_{k}" for k in CUTOFFS},
}


def random_case(seed: int) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    """Graded judgements and runs full of ties, with judged items that were not retrieved."""
    rng = np.random.default_rng(seed)
    qrels, run = {}, {}
    for unit in range(40):
        n_retrieved = int(rng.integers(1, 120))
        documents = [f"d{number}" for number in rng.choice(300, n_retrieved, replace=False)]
        # Scores that are exact in 32 bits, because trec_eval stores 32-bit floats.
        scores = rng.integers(0, rng.choice([3, 40, 10**6]), n_retrieved) / 64
        run[f"q{unit}"] = {name: float(score) for name, score in zip(documents, scores, strict=True)}
        judged = rng.choice(300, int(rng.integers(1, 40)), replace=False)
        grades = rng.integers(-1, 4, len(judged))  # -1: pooled but not judged
        qrels[f"q{unit}"] = {f"d{number}": int(grade) for number, grade in zip(judged, grades, strict=True)}
        qrels[f"q{unit}"]["always-judged"] = 1
    return qrels, run


@pytest.mark.parametrize("seed", range(5))
def test_all_measures_agree_with_trec_eval_per_unit(seed):
    qrels, run = random_case(seed)
    cutoffs = ",".join(map(str, CUTOFFS))
    measures = {
        "recip_rank",
        "Rprec",
        "bpref",
        "infAP",
        "map",
        "ndcg",
        *(f"{m}.{cutoffs}" for m in ("success", "P", "recall", "ndcg_cut", "map_cut")),
    }
    expected_values = pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(run)
    ranking = Ranking.from_runs(qrels, run).ordered("by_id")
    for metric, name in TREC_EVAL_NAMES.items():
        values = parse_metrics(metric)[0].per_unit(ranking)
        expected = [expected_values[unit][name] for unit in ranking.unit_ids]
        np.testing.assert_allclose(values, expected, rtol=0, atol=1e-12, err_msg=metric)


@pytest.mark.parametrize("seed", range(3))
def test_arrays_and_dicts_give_the_same_ranking(seed):
    qrels, run = random_case(seed)
    units = list(qrels)
    from_dicts = Ranking.from_runs(qrels, run)
    from_arrays = Ranking.from_lists(
        [list(run[unit]) for unit in units],
        [list(qrels[unit]) for unit in units],
        scores=[list(run[unit].values()) for unit in units],
        gains=[list(qrels[unit].values()) for unit in units],
        unit_ids=units,
    )
    for name in ("starts", "above", "tied", "candidates", "depth"):
        np.testing.assert_array_equal(getattr(from_dicts, name), getattr(from_arrays, name), err_msg=name)
    for policy in ("by_id", "optimistic", "pessimistic"):
        left, right = from_dicts.ordered(policy), from_arrays.ordered(policy)
        np.testing.assert_array_equal(left.above, right.above)
        np.testing.assert_array_equal(left.gain, right.gain)


# Other libraries: ir_measures (with gdeval for ERR) and ranx.

BY_THRESHOLD = [
    "AP(rel=2)",
    "P(rel=2)@5",
    "R(rel=3)@10",
    "RR(rel=2)",
    "Rprec(rel=2)",
    "Bpref(rel=2)",
    "Success(rel=3)@5",
]


def untied_case(seed: int) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    """Numeric query ids, as gdeval needs, and distinct scores, because every library orders ties differently."""
    rng = np.random.default_rng(seed)
    qrels, run = {}, {}
    for unit in range(1, 21):
        judged = rng.choice(60, 25, replace=False)
        qrels[str(unit)] = {f"d{number}": int(rng.integers(0, 4)) for number in judged} | {"always-judged": 3}
        retrieved = rng.choice(60, 30, replace=False)
        run[str(unit)] = {
            f"d{number}": float(score) for number, score in zip(retrieved, rng.permutation(30), strict=True)
        }
    return qrels, run


def ir_measures_values(names: list[str], qrels, run) -> dict[str, list[float]]:
    import ir_measures

    measures = [ir_measures.parse_measure(name) for name in names]
    value_of = {(str(row.measure), row.query_id): row.value for row in ir_measures.iter_calc(measures, qrels, run)}
    return {
        name: [value_of[str(measure), unit] for unit in qrels] for name, measure in zip(names, measures, strict=True)
    }


@pytest.mark.engines("ir_measures")
@pytest.mark.parametrize("seed", range(3))
def test_names_of_ir_measures_give_the_values_of_ir_measures(seed):
    qrels, run = untied_case(seed)
    names = [*BY_THRESHOLD, "Judged@10", "Judged@100", "AP", "Bpref", "Rprec", "infAP", "nDCG@10"]
    ranking = Ranking.from_runs(qrels, run)
    for name, expected in ir_measures_values(names, qrels, run).items():
        (metric,) = parse_metrics(name)
        np.testing.assert_allclose(metric.per_unit(ranking), expected, rtol=0, atol=1e-12, err_msg=name)


@pytest.mark.engines("ir_measures", "perl")
def test_err_agrees_with_gdeval():
    qrels, run = untied_case(7)
    ranking = Ranking.from_runs(qrels, run)
    for name, expected in ir_measures_values(["ERR@5", "ERR@20", "nDCG(dcg='exp-log2')@10"], qrels, run).items():
        (metric,) = parse_metrics(name)
        np.testing.assert_allclose(metric.per_unit(ranking), expected, rtol=0, atol=6e-6, err_msg=name)  # five digits


@pytest.mark.engines("ranx")
def test_names_of_ranx_give_the_values_of_ranx():
    with warnings.catch_warnings(action="ignore"):  # the package is compiled with warnings at its first import
        import ranx

    qrels, run = untied_case(11)
    binary = {unit: {item: int(gain > 0) for item, gain in gains.items()} for unit, gains in qrels.items()}
    graded = ["ndcg_burges@5", "r-precision", "f1@5", "hit_rate@3", "precision@5", "recall@5", "mrr@10"]
    # The RBP of ranx sums graded gains and can exceed 1, so it is compared on binary judgements.
    for judgements, names in ((qrels, graded), (binary, ["rbp.80", "rbp.95"])):
        with warnings.catch_warnings(action="ignore"):  # of numba
            expected_values = ranx.evaluate(ranx.Qrels(judgements), ranx.Run(run), names, return_mean=False)
        ranking = Ranking.from_runs(judgements, run)
        order = [sorted(judgements).index(unit) for unit in ranking.unit_ids]
        for name in names:
            (metric,) = parse_metrics(name, evidence=Ranking)
            values = expected_values[name] if isinstance(expected_values, dict) else expected_values
            np.testing.assert_allclose(metric.per_unit(ranking), values[order], rtol=0, atol=1e-12, err_msg=name)


def test_infap_and_bpref_need_no_judged_nonrelevant_items():
    qrels = {"q": {"a": 1, "b": 2}}
    run = {"q": {"x": 0.9, "a": 0.8, "y": 0.3, "b": 0.2}}
    expected = pytrec_eval.RelevanceEvaluator(qrels, {"bpref", "infAP"}).evaluate(run)["q"]
    ranking = Ranking.from_runs(qrels, run)
    for name in ("bpref", "infAP"):
        assert parse_metrics(name)[0].measure(ranking).value == pytest.approx(expected[name], abs=1e-12)
