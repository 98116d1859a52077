"""Digit for digit with trec_eval: score down, then document id down."""

from __future__ import annotations

import numpy as np
import pytest
import pytrec_eval

from equipoise.evidence.ranking import Ranking
from equipoise.metrics.parser import parse_metrics

CUTOFFS = (1, 3, 5, 10, 100)
PAIRS = {
    "MRR": "recip_rank",
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
        depth = int(rng.integers(1, 120))
        documents = [f"d{number}" for number in rng.choice(300, depth, replace=False)]
        # Scores that a 32-bit float holds exactly: trec_eval keeps no more of them.
        scores = rng.integers(0, rng.choice([3, 40, 10**6]), depth) / 64
        run[f"q{unit}"] = {name: float(score) for name, score in zip(documents, scores, strict=True)}
        judged = rng.choice(300, int(rng.integers(1, 40)), replace=False)
        grades = rng.integers(0, 4, len(judged))
        qrels[f"q{unit}"] = {f"d{number}": int(grade) for number, grade in zip(judged, grades, strict=True)}
        qrels[f"q{unit}"]["surely"] = 1
    return qrels, run


@pytest.mark.parametrize("seed", range(5))
def test_all_measures_agree_with_trec_eval_unit_by_unit(seed):
    qrels, run = random_case(seed)
    cut = ",".join(map(str, CUTOFFS))
    measures = {
        "recip_rank",
        "map",
        "ndcg",
        *(f"{m}.{cut}" for m in ("success", "P", "recall", "ndcg_cut", "map_cut")),
    }
    theirs = pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(run)
    ranking = Ranking.from_runs(qrels, run).ordered("by_id")
    for ours, name in PAIRS.items():
        values = parse_metrics(ours)[0].per_unit(ranking)
        expected = [theirs[unit][name] for unit in ranking.unit_ids]
        np.testing.assert_allclose(values, expected, rtol=0, atol=1e-12, err_msg=ours)


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
        one, two = from_dicts.ordered(policy), from_arrays.ordered(policy)
        np.testing.assert_array_equal(one.above, two.above)
        np.testing.assert_array_equal(one.gain, two.gain)
