"""The frontier is what nothing beats, and a budget buys its best affordable point."""

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


def beats(one: Trial, other: Trial) -> bool:
    """No dearer, no worse, and not the same on both counts."""
    assert one.cost is not None
    assert other.cost is not None
    return one.cost <= other.cost and one.value >= other.value and (one.cost, one.value) != (other.cost, other.value)


@given(TRIALS)
def test_the_frontier_is_exactly_what_no_trial_beats(trials: list[Trial]) -> None:
    known = [trial for trial in trials if trial.cost is not None and trial.value == trial.value]
    unbeaten = {(t.cost, t.value) for t in known if not any(beats(other, t) for other in known)}
    found = pareto_frontier(trials)
    assert {(t.cost, t.value) for t in found} == unbeaten
    assert len(found) == len(unbeaten)
    assert [t.cost for t in found] == sorted(t.cost for t in found if t.cost is not None)


@given(TRIALS)
def test_of_twins_the_first_stands_on_the_frontier(trials: list[Trial]) -> None:
    for each in pareto_frontier(trials):
        twins = [t for t in trials if (t.cost, t.value) == (each.cost, each.value)]
        assert twins[0] is each


@given(TRIALS, st.integers(0, 6))
def test_the_best_within_a_budget_is_found_by_looking_at_all(trials: list[Trial], budget: int) -> None:
    place = best_within_budget(trials, budget)
    best: int | None = None
    for here, trial in enumerate(trials):
        if trial.cost is None or trial.cost > budget or trial.value != trial.value:
            continue
        if best is None or (trial.value, -trial.cost) > (trials[best].value, -(trials[best].cost or 0)):
            best = here
    assert place == best


@given(TRIALS, st.integers(0, 6))
def test_what_a_budget_buys_lies_on_the_frontier(trials: list[Trial], budget: int) -> None:
    place, edge = best_within_budget(trials, budget), pareto_frontier(trials)
    at_edge = best_within_budget(edge, budget)
    assert (place is None) == (at_edge is None)
    if place is not None and at_edge is not None:
        assert trials[place] is edge[at_edge]


def test_nothing_is_affordable_below_the_cheapest() -> None:
    assert best_within_budget([Trial({}, 0.9, cost=100)], 99) is None
    assert pareto_frontier([]) == ()


@pytest.mark.parametrize("budget", [-1, float("nan")])
def test_a_budget_that_is_no_amount_is_refused(budget: float) -> None:
    with pytest.raises(ParameterError):
        best_within_budget([Trial({}, 0.9, cost=100)], budget)
