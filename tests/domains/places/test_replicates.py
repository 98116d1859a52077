"""Comparisons over seeds and users: against scipy, against slow loops, and with too little data."""

from __future__ import annotations

from itertools import product
from math import isnan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ttest_rel

from equipoise.config import StatsConfig
from equipoise.domains.places.run_folders import evaluate_seed
from equipoise.domains.places.seed_comparison import compare_across_seeds, pair_seeds
from equipoise.errors import PairingError, ParameterError
from equipoise.stats.estimate import result_from_values
from equipoise.stats.result import Result
from equipoise.tasks.classification import classify

QUICK = StatsConfig(n_resamples=200, n_permutations=2000)
UNITS, CLASSES = 60, 12
USERS = np.repeat(np.array([f"u{user}" for user in range(10)], dtype=object), [3, 9, 4, 8, 6, 6, 2, 10, 7, 5])


def seeds_of(skill: float, seeds: int, *, start: int = 0, users: np.ndarray | None = USERS) -> dict[str, Result]:
    """Results of a model with several seeds; ``skill`` is added to the score of the target."""
    targets = np.random.default_rng(99).integers(CLASSES, size=UNITS)
    results = {}
    for seed in range(1, seeds + 1):
        logits = np.random.default_rng(start + seed).normal(size=(UNITS, CLASSES))
        logits[np.arange(UNITS), targets] += skill
        results[f"seed{seed}"] = evaluate_seed(classify(logits, targets), users, "model")
    return results


def test_comparisons_over_seeds_equal_scipy() -> None:
    models = {"good": seeds_of(2.0, 5), "bad": seeds_of(0.5, 5, start=50)}
    comparison = compare_across_seeds(models, config=QUICK)
    for metric in ("HR@1", "MRR", "nDCG@10", "F1", "F1(average=macro)"):
        scores = [[result.estimates[metric].value for result in results.values()] for results in models.values()]
        pair = comparison.pair("good", "bad", metric)
        assert pair.p_seeds == pytest.approx(ttest_rel(*scores).pvalue)
        differences = np.subtract(scores[0], scores[1])
        assert pair.seeds.difference == pytest.approx(differences.mean())
        assert pair.seeds.differences.deviation == pytest.approx(np.std(differences, ddof=1))
        flipped = [abs(np.dot(signs, differences)) for signs in product((-1, 1), repeat=5)]
        assert pair.p_seed_permutation == np.mean(np.array(flipped) >= abs(differences.sum()) - 1e-12)


def test_comparisons_over_users_use_means_per_user_averaged_over_seeds() -> None:
    models = {"good": seeds_of(1.5, 3), "bad": seeds_of(1.0, 3, start=50)}
    comparison = compare_across_seeds(models, config=QUICK)
    means: dict[str, list[float]] = {}
    for model, results in models.items():
        for user in sorted(set(USERS.tolist())):
            values = [
                float(result.per_unit["MRR"][unit])
                for result in results.values()
                for unit in range(UNITS)
                if USERS[unit] == user
            ]
            means.setdefault(model, []).append(sum(values) / len(values))
    pair = comparison.pair("good", "bad", "MRR")
    assert pair.t is not None
    assert pair.permutation is not None
    assert pair.t.p == pytest.approx(ttest_rel(means["good"], means["bad"]).pvalue)
    differences = np.subtract(means["good"], means["bad"])
    assert pair.permutation.difference == pytest.approx(differences.mean())
    flipped = np.array([abs(np.dot(signs, differences)) for signs in product((-1, 1), repeat=10)])
    assert pair.permutation.p == pytest.approx(np.mean(flipped >= abs(differences.sum()) - 1e-12))
    row = next(row for row in comparison.rows if (row.metric, row.system) == ("MRR", "good"))
    assert row.by_user is not None
    assert row.pooled is not None
    assert row.by_user.value == pytest.approx(np.mean(means["good"]))
    assert row.pooled.value == pytest.approx(row.seeds.mean)
    assert comparison.n_users == 10


def test_intervals_are_clustered_by_users() -> None:
    targets = np.zeros(UNITS, dtype=int)
    hits = np.isin(USERS, ["u1", "u3", "u7"])
    logits = np.where(hits[:, None], np.eye(CLASSES)[0], np.eye(CLASSES)[1])
    widths = []
    for users in (None, USERS):
        model = {"seed1": evaluate_seed(classify(logits, targets), users, "m")}
        other = {"seed1": evaluate_seed(classify(logits + 0.0, targets), users, "m")}
        comparison = compare_across_seeds({"a": model, "b": other}, config=QUICK)
        assert comparison.rows[0].pooled is not None
        widths.append(comparison.rows[0].pooled.interval.width)
    assert widths[1] > 1.5 * widths[0]


def test_one_seed_gives_no_spread_and_a_note() -> None:
    comparison = compare_across_seeds({"a": seeds_of(3.0, 1), "b": seeds_of(0.0, 1, start=9)}, config=QUICK)
    assert str(comparison.rows[0].seeds).endswith("(one seed)")
    assert isnan(comparison.pairs[0].p_seeds)
    assert comparison.pairs[0].seeds.reason == "one seed"
    assert comparison.pairs[0].permutation is not None
    assert comparison.pairs[0].permutation.p < 0.05
    notes = [note for section in comparison.view().sections for table in section.tables for note in table.notes]
    assert any(note.startswith("One seed") for note in notes)
    assert comparison.verdict().endswith("may be due to the seed.")


def test_a_corpus_metric_is_compared_over_seeds_only() -> None:
    comparison = compare_across_seeds({"a": seeds_of(2.0, 3), "b": seeds_of(1.0, 3, start=9)}, config=QUICK)
    pair = comparison.pair("a", "b", "F1")
    assert pair.t is None
    assert pair.permutation is None
    assert not isnan(pair.p_seeds)
    assert comparison.pair("a", "b", "Acc@1").permutation is not None


def test_seeds_pair_by_name_in_any_order() -> None:
    results = seeds_of(1.0, 3)
    reversed_results = dict(reversed(results.items()))
    paired, notes = pair_seeds({"a": results, "b": reversed_results})
    assert list(paired["b"]) == list(results)
    assert notes == []
    assert all(paired["b"][seed] is results[seed] for seed in results)


def test_seeds_of_different_names_pair_by_order_with_a_note() -> None:
    results = seeds_of(1.0, 2)
    renamed = dict(zip(["run7", "run9"], results.values(), strict=True))
    paired, notes = pair_seeds({"a": results, "b": renamed})
    assert paired["b"]["seed2"] is results["seed2"]
    assert "seed1 with run7, seed2 with run9" in notes[0]
    assert notes[0] in compare_across_seeds({"a": results, "b": renamed}, config=QUICK).notes


def test_unequal_numbers_of_seeds_are_an_error() -> None:
    with pytest.raises(PairingError, match=r"2 seeds.*3"):
        pair_seeds({"a": seeds_of(1.0, 2), "b": seeds_of(1.0, 3)})


def test_three_models_are_corrected_for_three_pairs() -> None:
    models = {
        name: seeds_of(skill, 4, start=10 * index)
        for index, (name, skill) in enumerate((("a", 2.0), ("b", 1.5), ("c", 0.2)))
    }
    comparison = compare_across_seeds(models, config=QUICK)
    pairs = [pair for pair in comparison.pairs if pair.metric == "HR@1"]
    p_values = sorted(pair.seeds.p for pair in pairs)
    assert min(pair.p_seeds for pair in pairs) == pytest.approx(min(1.0, 3 * p_values[0]))
    assert "3 pairs of each metric and test (Holm)" in comparison.family
    assert len(comparison.decision.contrasts) == 3


def test_equal_models_are_equal() -> None:
    results = seeds_of(1.0, 3)
    comparison = compare_across_seeds({"a": results, "b": dict(results)}, config=QUICK)
    assert comparison.verdict().startswith("Inconclusive: a and b share the best Acc@1 on 60 visits of 10 users")
    assert comparison.pairs[0].p_seeds == 1.0


def with_effects(by_user: float, by_seed: list[float], seed: int = 1) -> dict[str, dict[str, Result]]:
    """Two models: b is worse by these means in every seed, with a standard deviation over users."""
    rng = np.random.default_rng(seed)
    users = [f"u{user}" for user in range(40)]
    score, difference = rng.uniform(0.4, 0.6, 40), rng.normal(0, by_user, 40)
    difference -= difference.mean()
    return {
        "a": {f"s{at}": result_from_values("a", users, {"MRR": score}) for at in range(len(by_seed))},
        "b": {
            f"s{at}": result_from_values("b", users, {"MRR": np.clip(score - effect - difference, 0, 1)})
            for at, effect in enumerate(by_seed)
        },
    }


@pytest.mark.parametrize(
    ("by_user", "by_seed", "undecided"),
    [
        (0.01, [0.05, 0.06, 0.05], None),
        (0.01, [0.15, -0.02, 0.01], "b is significantly worse over visits, but not over seeds (p = 0."),
        (0.20, [0.03, 0.035, 0.03], "b is significantly worse over seeds, but not over visits (p = 0."),
        (0.20, [0.15, -0.02, 0.01], "but b is not significantly worse."),
    ],
)
def test_a_model_is_best_only_if_both_tests_show_it(
    by_user: float, by_seed: list[float], undecided: str | None
) -> None:
    comparison = compare_across_seeds(with_effects(by_user, by_seed), config=QUICK)
    decision, (pair,) = comparison.decision, comparison.pairs
    assert pair.permutation is not None
    assert decision.contrasts[0].adjusted == max(pair.p_seeds, pair.permutation.adjusted)
    assert decision.leader == "a"
    if undecided is None:
        assert dict(decision.ranks) == {"a": (1, 1), "b": (2, 2)}
        assert comparison.verdict().startswith("a is the best of 2 models")
    else:
        assert dict(decision.ranks) == {"a": (1, 2), "b": (1, 2)}
        assert undecided in comparison.verdict()
        assert any("would be needed" in note for note in comparison.view().answer.notes)


def test_different_units_are_an_error() -> None:
    results = seeds_of(1.0, 2)
    fewer = {
        seed: evaluate_seed(classify(np.zeros((5, CLASSES)), np.zeros(5, dtype=int)), None, "m") for seed in results
    }
    with pytest.raises(PairingError):
        compare_across_seeds({"a": results, "b": fewer}, config=QUICK)


def test_metrics_are_selected_by_any_of_their_names() -> None:
    models = {"a": seeds_of(1.0, 2), "b": seeds_of(1.0, 2, start=9)}
    comparison = compare_across_seeds(models, metrics=["acc@3", "f1"], primary="MRR", config=QUICK)
    assert list(dict.fromkeys(row.metric for row in comparison.rows)) == ["MRR", "HR@3", "F1"]
    with pytest.raises(ParameterError):
        compare_across_seeds({"a": seeds_of(1.0, 2)}, config=QUICK)
    with pytest.raises(ParameterError):
        comparison.pair("b", "a", "MRR")


def test_the_same_seed_gives_the_same_values() -> None:
    models = {"a": seeds_of(1.0, 2), "b": seeds_of(0.5, 2, start=9)}
    first, second = (compare_across_seeds(models, config=QUICK).to_dict() for _ in range(2))
    assert repr(first) == repr(second)


@pytest.mark.slow
@settings(max_examples=25)
@given(st.lists(st.tuples(st.floats(0.01, 0.99), st.floats(0.01, 0.99)), min_size=2, max_size=6, unique=True))
def test_swapping_the_models_reverses_the_differences(scores: list[tuple[float, float]]) -> None:
    def model(index: int) -> dict[str, Result]:
        return {
            f"s{seed}": result_from_values(
                "m", ["x", "y"], {"MRR": [pair[index], pair[index] / 2]}, config=StatsConfig(n_resamples=20)
            )
            for seed, pair in enumerate(scores)
        }

    a, b = model(0), model(1)
    forward = compare_across_seeds({"a": a, "b": b}, config=QUICK).pairs[0]
    reverse = compare_across_seeds({"b": b, "a": a}, config=QUICK).pairs[0]
    assert forward.seeds.difference == pytest.approx(-reverse.seeds.difference)
    assert forward.p_seeds == pytest.approx(reverse.p_seeds, nan_ok=True)
    assert forward.p_seed_permutation == pytest.approx(reverse.p_seed_permutation)
