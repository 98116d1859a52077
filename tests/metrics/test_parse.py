"""Metric names: parsing, aliases, plugins and errors."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.errors import EquipoiseError, InputError, ParameterError, UndefinedError, UnknownNameError
from equipoise.evidence.labels import Labels
from equipoise.evidence.ranking import Ranking
from equipoise.evidence.sets import Sets
from equipoise.metrics.base import BaseMetric
from equipoise.metrics.parser import builtin, parse_metrics

RANKING = Ranking.from_ranks([1, 3], candidates=5)


def names(*expressions: str) -> list[str]:
    return [metric.name for metric in parse_metrics(expressions)]


def test_cutoffs_in_braces_give_one_metric_each():
    assert names("HR@{1,3,5,10}") == ["HR@1", "HR@3", "HR@5", "HR@10"]


@pytest.mark.parametrize(
    ("alias", "canonical"),
    [
        ("nDCG@10", "nDCG@10"),
        ("NDCG@10", "nDCG@10"),
        ("ndcg @ 10", "nDCG@10"),
        ("RR", "MRR"),
        ("mrr", "MRR"),
        ("Acc@5", "HR@5"),
        ("acc@1", "HR@1"),
        ("Hit@1", "HR@1"),
        ("Success@5", "HR@5"),
        ("hit_rate@3", "HR@3"),
        ("top_k_accuracy@3", "HR@3"),
        ("Precision@3", "P@3"),
        ("Recall@3", "R@3"),
        ("R(capped)@3", "R(capped)@3"),
        ("R(capped=false)@3", "R@3"),
        ("AP@5", "MAP@5"),
        ("MAP", "MAP"),
        ("MAP(norm=r)@10", "MAP(norm=R)@10"),
        ("MAP(norm=min)@10", "MAP@10"),
        ("nDCG(gain=exp)@10", "nDCG(gain=exp)@10"),
        ("MR", "MR"),
        ("MR(over=units)", "MR(over=units)"),
        ("MR(over=units, filtered)", "MR(over=units,filtered)"),
        ("median_rank", "MedianRank"),
        ("MaxOntSim@3", "MaxOntSim@3"),
        ("recip_rank", "MRR"),
        ("ndcg_cut_10", "nDCG@10"),
        ("ndcg_at_10", "nDCG@10"),
        ("P_10", "P@10"),
        ("recall_100", "R@100"),
        ("success_5", "HR@5"),
        ("map", "MAP"),
        ("map_cut_10", "MAP(norm=R)@10"),
        ("map_at_10", "MAP(norm=R)@10"),
        ("mrr_at_10", "MRR@10"),
        ("hit_rate_at_3", "HR@3"),
        ("Rprec", "Rprec"),
        ("r-precision", "Rprec"),
        ("Bpref", "bpref"),
        ("infAP", "infAP"),
        ("AP(rel=2)@100", "MAP(rel=2)@100"),
        ("AP(rel=1)@100", "MAP@100"),
        ("nDCG(dcg='exp-log2')@10", "nDCG(gain=exp)@10"),
        ("rbp.95", "RBP(p=0.95)"),
        ("RBP(p=0.8)", "RBP"),
        ("ERR@20", "ERR@20"),
        ("Judged@10", "Judged@10"),
        ("f1@10", "F1@10"),
    ],
)
def test_aliases_are_parsed(alias, canonical):
    assert names(alias) == [canonical]
    assert names(canonical) == [canonical]


def test_repeated_metrics_are_parsed_once():
    assert names("nDCG@10", "HR@{1,1}", "NDCG@10", "Acc@1") == ["nDCG@10", "HR@1"]


def test_the_evidence_selects_among_metrics_of_the_same_name():
    assert parse_metrics("F1", evidence=Labels)[0].evidence is Labels
    assert parse_metrics("F1", evidence=Sets)[0].evidence is Sets
    assert parse_metrics("F1(average=macro)", evidence=Labels)[0].name == "F1(average=macro)"
    assert parse_metrics("Precision", evidence=Sets)[0].evidence is Sets
    assert parse_metrics("Precision@3", evidence=Ranking)[0].name == "P@3"


@pytest.mark.parametrize(
    ("name", "error_type", "fragment"),
    [
        ("nDGC@10", UnknownNameError, "did you mean nDCG"),
        ("HR", ParameterError, "HR@10"),
        ("nDCG@0", ParameterError, "cutoff below 1"),
        ("nDCG@-5", ParameterError, "cutoff below 1"),
        ("nDCG@ten", ParameterError, "not an integer"),
        ("HR@{1,x}", ParameterError, "not an integer"),
        ("HR@{}", ParameterError, "not an integer"),
        ("MR@5", ParameterError, "takes no cutoff"),
        ("MAP(norm=Q)@5", ParameterError, "choose min or R"),
        ("MAP(nrom=R)@5", UnknownNameError, "did you mean norm"),
        ("R(capped=maybe)@5", ParameterError, "neither true nor false"),
        ("", ParameterError, "not a metric name"),
        ("a b c", ParameterError, "not a metric name"),
    ],
)
def test_misspelled_metrics_raise_errors_with_a_hint(name, error_type, fragment):
    with pytest.raises(error_type) as error:
        parse_metrics(name)
    assert fragment in error.value.render()


def test_metrics_of_another_kind_of_evidence_raise_parameter_error():
    with pytest.raises(ParameterError):
        parse_metrics("nDCG@10", evidence=Labels)


@given(st.text(max_size=20))
def test_any_text_gives_metrics_or_an_equipoise_error(text):
    with suppress(EquipoiseError):  # any other exception fails the test
        assert parse_metrics(text)


def test_every_built_in_metric_is_documented_and_parses_its_own_name():
    for metric_class in builtin():
        assert metric_class.title, metric_class
        assert metric_class.formula, metric_class
        assert metric_class.undefined, metric_class
        assert metric_class.__doc__, metric_class
        low, high = metric_class.bounds
        assert low < high
        instance = metric_class(k=3) if metric_class.needs_cutoff else metric_class()
        assert parse_metrics(instance.name, evidence=metric_class.evidence) == (instance,)


class ShareFirst(BaseMetric):
    """The share of units whose best answer is first."""

    def __init__(self) -> None:
        super().__init__(name="share_first")

    def calculate(self, results):
        return results.best_ranks == 1


def test_subclasses_with_a_name_and_calculate_are_metrics():
    (metric,) = parse_metrics([ShareFirst()])
    assert metric.measure(RANKING).value == 0.5
    assert metric.measure(RANKING).per_unit.tolist() == [1.0, 0.0]
    assert metric.title == "The share of units whose best answer is first."


def test_metrics_that_return_too_few_values_raise_undefined_error():
    class Short(ShareFirst):
        def calculate(self, results):
            return np.zeros(1)

    with pytest.raises(UndefinedError, match=r"\(1,\).*2 units"):
        Short().measure(RANKING)


def test_plugin_files_add_their_metrics(tmp_path):
    path = tmp_path / "plugin.py"
    path.write_text(
        "from equipoise.metrics.base import BaseMetric\n"
        "class Quarter(BaseMetric):\n"
        "    def __init__(self):\n        super().__init__(name='quarter')\n"
        "    def calculate(self, results):\n        return 0.25\n"
    )
    (metric,) = parse_metrics("quarter", catalogue=builtin().with_plugin(path))
    assert metric.measure(RANKING).value == 0.25
    with pytest.raises(InputError):
        builtin().with_plugin(path).with_plugin(path)


@pytest.mark.parametrize(
    ("content", "fragment"),
    [("1/0", "ZeroDivisionError"), ("x = 1", "defines no metric"), ("def (", "SyntaxError")],
)
def test_broken_plugins_raise_input_error(tmp_path, content, fragment):
    path = tmp_path / "bad.py"
    path.write_text(content)
    with pytest.raises(InputError, match=fragment):
        builtin().with_plugin(path)
    with pytest.raises(InputError):
        builtin().with_plugin(tmp_path / "none.py")


def test_metrics_that_fail_raise_undefined_error():
    class Broken(ShareFirst):
        def calculate(self, results):
            return 1 / 0

    with pytest.raises(UndefinedError, match=r"share_first.*ZeroDivisionError"):
        Broken().measure(RANKING)


def test_the_name_may_be_an_attribute_of_the_class():
    class Named(BaseMetric):
        name = "my_name"

        def calculate(self, results):
            return 0.5

    (metric,) = parse_metrics([Named])
    assert metric.name == "my_name"
    assert metric.measure(RANKING).value == 0.5


def test_other_objects_raise_parameter_error():
    with pytest.raises(ParameterError, match="3"):
        parse_metrics([3])
