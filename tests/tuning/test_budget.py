"""The Pareto frontier, and the best trial within a budget."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.errors import ParameterError
from equipoise.tuning.grid import Trial, best_within_budget, pareto_frontier

TRIALS = st.lists(
    st.builds(
        Trial,
        params=st.fixed_dictionaries({"k": st.integers(1, 99)}),
        value=st.integers(0, 5).map(lambda hits: hits / 5) | st.just(float("nan")),
        cost=st.integers(0, 5) | st.none(),
    ),
    max_size=12,
)


def dominates(trial: Trial, other: Trial) -> bool:
    """Not more expensive, not worse, and not equal in both."""
    assert trial.cost is not None
    assert other.cost is not None
    return (
        trial.cost <= other.cost
        and trial.value >= other.value
        and (trial.cost, trial.value) != (other.cost, other.value)
    )


@given(TRIALS)
def test_the_frontier_is_the_set_of_non_dominated_trials(trials: list[Trial]) -> None:
    known = [trial for trial in trials if trial.cost is not None and trial.value == trial.value]
    non_dominated = {(t.cost, t.value) for t in known if not any(dominates(other, t) for other in known)}
    frontier = pareto_frontier(trials)
    assert {(t.cost, t.value) for t in frontier} == non_dominated
    assert len(frontier) == len(non_dominated)
    assert [t.cost for t in frontier] == sorted(t.cost for t in frontier if t.cost is not None)


@given(TRIALS)
def test_the_first_of_equal_trials_is_on_the_frontier(trials: list[Trial]) -> None:
    for trial in pareto_frontier(trials):
        equal_trials = [t for t in trials if (t.cost, t.value) == (trial.cost, trial.value)]
        assert equal_trials[0] is trial


@given(TRIALS, st.integers(0, 6))
def test_the_best_within_a_budget_agrees_with_a_loop(trials: list[Trial], budget: int) -> None:
    index = best_within_budget(trials, budget)
    best: int | None = None
    for trial_index, trial in enumerate(trials):
        if trial.cost is None or trial.cost > budget or trial.value != trial.value:
            continue
        if best is None or (trial.value, -trial.cost) > (trials[best].value, -(trials[best].cost or 0)):
            best = trial_index
    assert index == best


@given(TRIALS, st.integers(0, 6))
def test_the_best_within_a_budget_is_on_the_frontier(trials: list[Trial], budget: int) -> None:
    index, frontier = best_within_budget(trials, budget), pareto_frontier(trials)
    frontier_index = best_within_budget(frontier, budget)
    assert (index is None) == (frontier_index is None)
    if index is not None and frontier_index is not None:
        assert trials[index] is frontier[frontier_index]


def test_budgets_below_the_cheapest_trial_give_none() -> None:
    assert best_within_budget([Trial({}, 0.9, cost=100)], 99) is None
    assert pareto_frontier([]) == ()


@pytest.mark.parametrize("budget", [-1, float("nan")])
def test_invalid_budgets_raise_parameter_error(budget: float) -> None:
    with pytest.raises(ParameterError):
        best_within_budget([Trial({}, 0.9, cost=100)], budget)
