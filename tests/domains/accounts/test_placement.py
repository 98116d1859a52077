"""Parents of new accounts: ranking, confidence, misfiled accounts, and the evaluation on held-out accounts."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.config import StatsConfig
from equipoise.domains.accounts.embedders import tree_embedder
from equipoise.domains.accounts.misfiled import misfiled_accounts
from equipoise.domains.accounts.placement import AccountPlacer, evaluate_placement
from equipoise.domains.accounts.trees.tree import Tree
from equipoise.errors import ParameterError, UndefinedError, UnknownNameError

GROUPS = {
    "cash": ["petty cash", "cash in transit", "cash at bank", "foreign cash"],
    "taxes": ["income tax", "sales tax", "property tax", "payroll tax"],
    "vehicles": ["vehicle fuel", "vehicle repairs", "vehicle insurance", "vehicle leasing"],
}


def chart(misfiled: str = "", other_group: str = "") -> Tree:
    """Three groups of four accounts below one root; one account may be below another group."""
    nodes = ["accounts", *GROUPS, *(name for names in GROUPS.values() for name in names)]
    parents = {name: group for group, names in GROUPS.items() for name in names} | dict.fromkeys(GROUPS, "accounts")
    if misfiled:
        parents[misfiled] = other_group
    return Tree.of(nodes, list(parents.items()))


def test_a_name_is_placed_next_to_similar_names() -> None:
    ranked = AccountPlacer(chart()).rank("vehicle tyres", k=4)
    assert ranked[0].id == "vehicles"
    assert ranked[0].similar_child in GROUPS["vehicles"]
    confidences = [item.confidence for item in ranked]
    assert confidences == sorted(confidences, reverse=True)
    assert sum(confidences) == pytest.approx(1.0)


def test_a_sibling_outweighs_a_misleading_name() -> None:
    placer = AccountPlacer(chart())
    assert placer.rank("cash")[0].id == "cash"
    assert placer.rank("cash", siblings=["sales tax"])[0].id == "taxes"
    assert placer.rank(siblings=["vehicle fuel"])[0].id == "vehicles"


def test_a_misfiled_account_is_listed_with_its_likely_parent() -> None:
    progress_values: list[int] = []
    misfiled = misfiled_accounts(AccountPlacer(chart("payroll tax", "vehicles")), progress=progress_values.append)
    assert progress_values == list(range(1, sum(map(len, GROUPS.values())) + 1))
    assert [(item.id, item.parent, item.likely_parent) for item in misfiled] == [("payroll tax", "vehicles", "taxes")]
    assert misfiled[0].confidence >= 0.5 > misfiled[0].parent_confidence
    assert not misfiled_accounts(AccountPlacer(chart()))


def numbered_chart(parents: dict[str, str]) -> Tree:
    """Assets and expenses with the same names; ``parents`` moves accounts, whose numbers stay the same."""
    groups = {"10": "Stock", "20": "Tax claims", "30": "Materials", "40": "Taxes"}
    names = ["raw materials", "auxiliary materials", "packaging materials", "fuel"]
    taxes = ["income tax", "sales tax", "property tax", "payroll tax"]
    rows = {f"{group}{at}": name for group in groups for at, name in enumerate(taxes if group in "2040" else names)}
    nodes = [("1", "Assets"), ("3", "Expenses"), *groups.items(), *rows.items()]
    edges = [("10", "1"), ("20", "1"), ("30", "3"), ("40", "3"), *((key, parents.get(key, key[:2])) for key in rows)]
    return Tree.of(nodes, edges)


def test_an_account_next_to_a_sibling_by_number_is_not_misfiled() -> None:
    found = misfiled_accounts(AccountPlacer(numbered_chart({})))
    assert (len(found), found.uses_numbers, found.n_accounts) == (0, True, 16)
    assert 0.0 < found.detection_rate < 1.0
    moved = misfiled_accounts(AccountPlacer(numbered_chart({"101": "20"})))
    assert "101" in [item.id for item in moved]
    assert set(moved[0].likely_parent) <= set("10 30")


def test_the_present_place_includes_ancestors_and_descendants_of_the_parent() -> None:
    tree = chart("petty cash", "accounts")
    assert not misfiled_accounts(AccountPlacer(tree), min_confidence=0.1)


def test_the_list_is_limited_to_a_share_and_to_five_accounts() -> None:
    tree = chart()
    moves = dict.fromkeys(GROUPS["vehicles"], "taxes") | dict.fromkeys(GROUPS["taxes"], "vehicles")
    edges = [(child, moves.get(child, parent)) for child, parent in tree.named_edges()]
    placer = AccountPlacer(Tree.of(tree.ids, edges))
    everything = misfiled_accounts(placer, min_confidence=0.0, max_share=1.0)
    listed = misfiled_accounts(placer, min_confidence=0.0, max_share=0.0)
    assert everything.n_suspects == len(everything) == listed.n_suspects
    assert [item.id for item in listed] == [item.id for item in everything][:5]
    assert listed.detection_rate <= everything.detection_rate


def test_held_out_accounts_are_not_candidates_and_chance_is_one_in_all_candidates() -> None:
    tree = chart()
    evaluation = evaluate_placement(tree, held_out=0.5, config=StatsConfig(n_resamples=50))
    assert evaluation.n_held_out == 6
    assert evaluation.n_candidates == len(tree) - 6
    name_result = evaluation.results[0]
    assert name_result.estimates["HR@1"].value == 1.0
    assert name_result.estimates["HR@1"].chance == pytest.approx(1 / evaluation.n_candidates)
    assert [result.system for result in evaluation.results] == ["name (tfidf)", "sibling", "name + sibling"]


def test_only_children_that_are_held_out_are_counted() -> None:
    tree = Tree.of(["root", "cash", "bank", "till"], [("cash", "root"), ("bank", "root"), ("till", "cash")])
    evaluation = evaluate_placement(tree, held_out=0.99, config=StatsConfig(n_resamples=50))
    assert (evaluation.n_held_out, evaluation.n_only_children) == (2, 1)
    assert evaluate_placement(chart(), held_out=0.1, config=StatsConfig(n_resamples=50)).n_only_children == 0


def test_structure_alone_ranks_lower_than_names() -> None:
    tree = chart()
    evaluation = evaluate_placement(
        tree,
        held_out=0.5,
        embed=lambda part: tree_embedder("combinatorial").fit(part, 3),
        config=StatsConfig(n_resamples=50),
    )
    structure = evaluation.results[-1]
    assert structure.system == "structure alone"
    assert structure.estimates["MRR"].value < evaluation.results[0].estimates["MRR"].value


def test_confidences_are_computed_by_leaving_out_each_account() -> None:
    placer = AccountPlacer(chart())
    nodes, probabilities = placer.leave_one_out()
    assert len(nodes) == 12
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, atol=1e-6)


def test_invalid_arguments_are_errors() -> None:
    tree = chart()
    with pytest.raises(ParameterError):
        AccountPlacer(tree).rank(" ")
    with pytest.raises(UnknownNameError):
        AccountPlacer(tree).rank(siblings=["cahs"])
    with pytest.raises(ParameterError):
        evaluate_placement(tree, held_out=1.0)
    with pytest.raises(UndefinedError):
        AccountPlacer(Tree.of(["a", "b"], []))
