"""Seeds and users: against scipy, against slow loops, and where the data cannot speak."""

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
from equipoise.stats.result import Result
from equipoise.tasks.classification import classify

QUICK = StatsConfig(n_resamples=200, n_permutations=2000)
UNITS, CLASSES = 60, 12
USERS = np.repeat(np.array([f"u{user}" for user in range(10)], dtype=object), [3, 9, 4, 8, 6, 6, 2, 10, 7, 5])


def seeds_of(skill: float, seeds: int, *, start: int = 0, users: np.ndarray | None = USERS) -> dict[str, Result]:
    """Results of a model that lifts the right class by so much, trained with several seeds."""
    targets = np.random.default_rng(99).integers(CLASSES, size=UNITS)
    found = {}
    for seed in range(1, seeds + 1):
        logits = np.random.default_rng(start + seed).normal(size=(UNITS, CLASSES))
        logits[np.arange(UNITS), targets] += skill
        found[f"seed{seed}"] = evaluate_seed(classify(logits, targets), users, "model")
    return found


def test_seeds_are_tested_as_scipy_tests_them() -> None:
    models = {"good": seeds_of(2.0, 5), "bad": seeds_of(0.5, 5, start=50)}
    found = compare_across_seeds(models, config=QUICK)
    for metric in ("HR@1", "MRR", "nDCG@10", "F1", "F1(average=macro)"):
        figures = [[each.estimates[metric].value for each in own.values()] for own in models.values()]
        pair = found.pair("good", "bad", metric)
        assert pair.p_seeds == pytest.approx(ttest_rel(*figures).pvalue)
        differences = np.subtract(figures[0], figures[1])
        assert pair.seeds.difference == pytest.approx(differences.mean())
        assert pair.seeds.differences.deviation == pytest.approx(np.std(differences, ddof=1))
        flipped = [abs(np.dot(signs, differences)) for signs in product((-1, 1), repeat=5)]
        assert pair.p_seed_permutation == np.mean(np.array(flipped) >= abs(differences.sum()) - 1e-12)


def test_users_are_tested_on_their_own_means_averaged_over_seeds() -> None:
    models = {"good": seeds_of(1.5, 3), "bad": seeds_of(1.0, 3, start=50)}
    found = compare_across_seeds(models, config=QUICK)
    means: dict[str, list[float]] = {}
    for model, own in models.items():
        for user in sorted(set(USERS.tolist())):
            values = [
                float(result.per_unit["MRR"][unit])
                for result in own.values()
                for unit in range(UNITS)
                if USERS[unit] == user
            ]
            means.setdefault(model, []).append(sum(values) / len(values))
    pair = found.pair("good", "bad", "MRR")
    assert pair.t is not None
    assert pair.permutation is not None
    assert pair.t.p == pytest.approx(ttest_rel(means["good"], means["bad"]).pvalue)
    differences = np.subtract(means["good"], means["bad"])
    assert pair.permutation.difference == pytest.approx(differences.mean())
    flipped = np.array([abs(np.dot(signs, differences)) for signs in product((-1, 1), repeat=10)])
    assert pair.permutation.p == pytest.approx(np.mean(flipped >= abs(differences.sum()) - 1e-12))
    row = next(row for row in found.rows if (row.metric, row.system) == ("MRR", "good"))
    assert row.by_user is not None
    assert row.pooled is not None
    assert row.by_user.value == pytest.approx(np.mean(means["good"]))
    assert row.pooled.value == pytest.approx(row.seeds.mean)
    assert found.n_users == 10


def test_intervals_follow_users_where_users_are_alike_within() -> None:
    targets = np.zeros(UNITS, dtype=int)
    hits = np.isin(USERS, ["u1", "u3", "u7"])
    logits = np.where(hits[:, None], np.eye(CLASSES)[0], np.eye(CLASSES)[1])
    widths = []
    for users in (None, USERS):
        model = {"seed1": evaluate_seed(classify(logits, targets), users, "m")}
        other = {"seed1": evaluate_seed(classify(logits + 0.0, targets), users, "m")}
        found = compare_across_seeds({"a": model, "b": other}, config=QUICK)
        assert found.rows[0].pooled is not None
        widths.append(found.rows[0].pooled.interval.width)
    assert widths[1] > 1.5 * widths[0]


def test_one_seed_says_one_seed_and_gives_no_spread() -> None:
    found = compare_across_seeds({"a": seeds_of(3.0, 1), "b": seeds_of(0.0, 1, start=9)}, config=QUICK)
    assert str(found.rows[0].seeds).endswith("(one seed)")
    assert isnan(found.pairs[0].p_seeds)
    assert found.pairs[0].seeds.reason == "one seed"
    assert found.pairs[0].permutation is not None
    assert found.pairs[0].permutation.p < 0.05
    assert any(line.startswith("One seed") for line in found.method_notes())
    assert "it may be due to the seed" in found.verdict()


def test_a_corpus_metric_is_compared_over_seeds_alone() -> None:
    found = compare_across_seeds({"a": seeds_of(2.0, 3), "b": seeds_of(1.0, 3, start=9)}, config=QUICK)
    pair = found.pair("a", "b", "F1")
    assert pair.t is None
    assert pair.permutation is None
    assert not isnan(pair.p_seeds)
    assert found.pair("a", "b", "Acc@1").permutation is not None


def test_seeds_pair_by_name_whatever_their_order() -> None:
    own = seeds_of(1.0, 3)
    turned = dict(reversed(own.items()))
    lined_up, notes = pair_seeds({"a": own, "b": turned})
    assert list(lined_up["b"]) == list(own)
    assert notes == []
    assert all(lined_up["b"][seed] is own[seed] for seed in own)


def test_seeds_of_other_names_pair_by_order_and_say_so() -> None:
    own = seeds_of(1.0, 2)
    other = dict(zip(["run7", "run9"], own.values(), strict=True))
    lined_up, notes = pair_seeds({"a": own, "b": other})
    assert lined_up["b"]["seed2"] is own["seed2"]
    assert "seed1 with run7, seed2 with run9" in notes[0]
    assert notes[0] in compare_across_seeds({"a": own, "b": other}, config=QUICK).notes


def test_an_odd_number_of_seeds_is_refused() -> None:
    with pytest.raises(PairingError, match=r"2 seeds.*3"):
        pair_seeds({"a": seeds_of(1.0, 2), "b": seeds_of(1.0, 3)})


def test_three_models_are_corrected_for_three_pairs() -> None:
    models = {
        name: seeds_of(skill, 4, start=10 * at) for at, (name, skill) in enumerate((("a", 2.0), ("b", 1.5), ("c", 0.2)))
    }
    found = compare_across_seeds(models, config=QUICK)
    pairs = [pair for pair in found.pairs if pair.metric == "HR@1"]
    raw = sorted(pair.seeds.p for pair in pairs)
    assert min(pair.p_seeds for pair in pairs) == pytest.approx(min(1.0, 3 * raw[0]))
    assert "Holm over the 3 pairs" in found.family
    assert len(found.claims()) == 3


def test_equal_models_are_equal() -> None:
    own = seeds_of(1.0, 3)
    found = compare_across_seeds({"a": own, "b": dict(own)}, config=QUICK)
    assert found.verdict() == "On Acc@1 a and b are equal."
    assert found.pairs[0].p_seeds == 1.0


def test_units_that_differ_are_refused() -> None:
    own = seeds_of(1.0, 2)
    fewer = {seed: evaluate_seed(classify(np.zeros((5, CLASSES)), np.zeros(5, dtype=int)), None, "m") for seed in own}
    with pytest.raises(PairingError):
        compare_across_seeds({"a": own, "b": fewer}, config=QUICK)


def test_metrics_are_chosen_by_any_of_their_names() -> None:
    models = {"a": seeds_of(1.0, 2), "b": seeds_of(1.0, 2, start=9)}
    found = compare_across_seeds(models, metrics=["acc@3", "f1"], primary="MRR", config=QUICK)
    assert list(dict.fromkeys(row.metric for row in found.rows)) == ["MRR", "HR@3", "F1"]
    with pytest.raises(ParameterError):
        compare_across_seeds({"a": seeds_of(1.0, 2)}, config=QUICK)
    with pytest.raises(ParameterError):
        found.pair("b", "a", "MRR")


def test_the_same_seed_gives_the_same_figures() -> None:
    models = {"a": seeds_of(1.0, 2), "b": seeds_of(0.5, 2, start=9)}
    one, other = (compare_across_seeds(models, config=QUICK).to_dict() for _ in range(2))
    assert repr(one) == repr(other)


@pytest.mark.slow
@settings(max_examples=25)
@given(st.lists(st.tuples(st.floats(0.01, 0.99), st.floats(0.01, 0.99)), min_size=2, max_size=6, unique=True))
def test_swapping_the_models_turns_the_differences_round(figures: list[tuple[float, float]]) -> None:
    from equipoise.stats.estimate import result_from_values

    def model(side: int) -> dict[str, Result]:
        return {
            f"s{seed}": result_from_values(
                "m", ["x", "y"], {"MRR": [pair[side], pair[side] / 2]}, config=StatsConfig(n_resamples=20)
            )
            for seed, pair in enumerate(figures)
        }

    a, b = model(0), model(1)
    there = compare_across_seeds({"a": a, "b": b}, config=QUICK).pairs[0]
    back = compare_across_seeds({"b": b, "a": a}, config=QUICK).pairs[0]
    assert there.seeds.difference == pytest.approx(-back.seeds.difference)
    assert there.p_seeds == pytest.approx(back.p_seeds, nan_ok=True)
    assert there.p_seed_permutation == pytest.approx(back.p_seed_permutation)
