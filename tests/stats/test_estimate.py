"""Estimates of small metrics on small evidence."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, isnan
from typing import Any, ClassVar, Self

import numpy as np
import pytest
from numpy.typing import NDArray
from studies.interval_calibration_data import NumberRows

from equipoise.config import StatsConfig
from equipoise.errors import ParameterError, ShapeError, UndefinedError, UnknownNameError
from equipoise.evidence.base import Arrays, Evidence
from equipoise.metrics.base import CorpusMetric, UnitMetric
from equipoise.stats.bootstrap_mean import mean_intervals
from equipoise.stats.estimate import estimate
from equipoise.stats.intervals import wilson_interval
from equipoise.types import Direction, Finding, Floats, Ints, Severity


class Table(NumberRows):
    """Rows of score and weight."""

    kind = "table"


class PointTable(Table):
    """Rows that are points of a space."""

    kind = "space"


@dataclass(frozen=True)
class Score(UnitMetric[Table]):
    symbol, title, evidence = "Score", "the first column", Table

    def per_unit(self, evidence: Table) -> Floats:
        return evidence.table[:, 0]


@dataclass(frozen=True)
class Hit(UnitMetric[Table]):
    symbol, title, evidence = "Hit", "first column above a half", Table
    k: int | None = None

    def per_unit(self, evidence: Table) -> Floats:
        return np.where(np.isnan(evidence.table[:, 0]), np.nan, evidence.table[:, 0] > 0.5)


@dataclass(frozen=True)
class Rank(UnitMetric[Table]):
    symbol, title, evidence = "Rank", "a rank weighted by the second column", Table
    bounds: ClassVar[tuple[float, float]] = (1.0, inf)
    better: ClassVar[Direction] = Direction.DOWN
    unit: ClassVar[str] = "rank"

    def per_unit(self, evidence: Table) -> Floats:
        return 1.0 / evidence.table[:, 0]

    def weights(self, evidence: Table) -> Floats:
        return evidence.table[:, 1]


@dataclass(frozen=True)
class Median(CorpusMetric[Table]):
    symbol, title, evidence = "Median", "the median", Table

    def value(self, evidence: Table) -> float:
        return float(np.nanmedian(evidence.table[:, 0]))


class OtherEvidence(Evidence):
    """Evidence of another kind."""

    kind = "other"

    def __init__(self) -> None:
        self.unit_ids = np.arange(3)

    def take(self, index: Ints) -> Self:
        return self

    def shuffled(self, rng: np.random.Generator) -> Self:
        return self

    def to_arrays(self) -> Arrays:
        return {}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        return cls()


def sample_table(units: int = 60, undefined: int = 0) -> Table:
    rng = np.random.default_rng(1)
    rows = np.column_stack([rng.beta(2, 2, units), rng.integers(1, 6, units)])
    rows[:undefined, 0] = np.nan
    return Table(rows)


METRICS = [Score(), Hit(), Rank(), Median()]


def test_every_metric_has_value_interval_n_and_unit() -> None:
    evidence = sample_table()
    result = estimate(evidence, METRICS, system="mini", settings={"note": "x"})
    scores, weights = evidence.table.T
    assert result.names == ("Score", "Hit", "Rank", "Median")
    assert result["Score"].value == pytest.approx(scores.mean())
    assert result["Rank"].value == pytest.approx(np.average(1 / scores, weights=weights))
    assert result["Median"].value == pytest.approx(np.median(scores))
    methods = [result[name].interval.method for name in result.names]
    assert methods == ["gaffke", "wilson", "gaffke", "bias-corrected"]
    assert all(result[name].interval.covers(result[name].value) for name in result.names)
    assert (result["Rank"].unit, result["Rank"].better) == ("rank", Direction.DOWN)
    assert result["Hit"].interval == wilson_interval((scores > 0.5).sum(), 60)
    assert result.system == "mini"
    assert result.settings == {"confidence_level": 0.95, "n_resamples": 2000, "seed": 0, "note": "x"}


def test_per_unit_values_and_weights_are_kept_for_means_only() -> None:
    result = estimate(sample_table(), METRICS)
    assert set(result.per_unit) == {"Score", "Hit", "Rank"}
    assert set(result.weights) == {"Rank"}


def test_undefined_units_are_counted_and_excluded() -> None:
    result = estimate(sample_table(undefined=4), [Score(), Hit()])
    assert (result["Score"].n, result["Score"].undefined) == (56, 4)
    assert result["Hit"].interval.known


def test_evidence_without_a_defined_unit_gives_nan() -> None:
    result = estimate(sample_table(units=3, undefined=3), [Score()], chance=False)
    assert isnan(result["Score"].value)
    assert result["Score"].interval.reason == "no defined value"


def test_the_weighted_interval_uses_the_weights() -> None:
    evidence = sample_table()
    (expected,) = mean_intervals(
        1 / evidence.table[:, 0],
        weights=evidence.table[:, 1],
        bounds=[(1.0, inf)],
        rng=np.random.default_rng([3, 0]),
    )
    interval = estimate(evidence, METRICS, config=StatsConfig(seed=3))["Rank"].interval
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high))


def test_estimates_do_not_depend_on_the_other_metrics() -> None:
    single, all_metrics = estimate(sample_table(), [Median()]), estimate(sample_table(), METRICS[::-1])
    assert single["Median"] == all_metrics["Median"]
    assert estimate(sample_table(), [Score()], chance=False)["Score"].interval.low == pytest.approx(
        all_metrics["Score"].interval.low, abs=1e-12
    )


def test_results_depend_on_the_seed_only() -> None:
    first, second, other = (
        estimate(sample_table(), METRICS, config=StatsConfig(seed=seed)).to_dict() for seed in (1, 1, 2)
    )
    assert first == second
    assert first["estimates"] != other["estimates"]


def test_chance_is_the_value_on_shuffled_evidence_or_nan() -> None:
    result = estimate(sample_table(), [Score()])
    assert result["Score"].chance == pytest.approx(result["Score"].value)
    assert isnan(estimate(sample_table(), [Score()], chance=False)["Score"].chance)


def test_clusters_widen_the_interval_and_are_kept() -> None:
    rows = np.repeat(sample_table(20).table, 5, axis=0)
    clusters = [f"c{row // 5}" for row in range(100)]
    unclustered, clustered = (
        estimate(Table(rows), METRICS),
        estimate(Table(rows), METRICS, config=StatsConfig(clusters=clusters)),
    )
    for name in unclustered.names:
        assert clustered[name].interval.width > 1.4 * unclustered[name].interval.width
    assert clustered.clusters is not None
    assert clustered.to_dict()["clusters"] == 20
    with pytest.raises(ShapeError, match=r"2 cluster.*60 units"):
        estimate(sample_table(), [Score()], config=StatsConfig(clusters=["a", "b"]))


def test_metrics_of_a_space_are_subsampled() -> None:
    result = estimate(PointTable(sample_table().table), [Score(), Median()], config=StatsConfig(n_resamples=200))
    assert {result[name].interval.method for name in result.names} == {"subsample"}
    assert "Score" in result.per_unit


def test_repeated_metrics_raise_parameter_error() -> None:
    with pytest.raises(ParameterError, match="Hit@3"):
        estimate(sample_table(), [Hit(3), Hit(5), Hit(3)])


def test_metrics_of_another_kind_of_evidence_raise_undefined_error() -> None:
    with pytest.raises(UndefinedError):
        estimate(OtherEvidence(), [Score()])


def test_unknown_metrics_of_a_result_raise_with_a_suggestion() -> None:
    with pytest.raises(UnknownNameError, match="'Scor'") as error:
        estimate(sample_table(), [Score()])["Scor"]
    assert error.value.hint == "did you mean Score?"


def test_the_dictionary_is_strict_json_with_reasons_in_place_of_nan() -> None:
    result = estimate(sample_table(units=1), [Score(), Median()], chance=False)
    report = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    score = report["estimates"][0]
    assert (score["metric"], score["unit"], score["n"], score["better"]) == ("Score", "fraction", 1, "up")
    assert score["interval"]["low"] is None
    assert score["interval"]["reason"] == "one value"
    assert score["chance"] is None
    assert "chance_reason" in score
    undefined = estimate(sample_table(units=2, undefined=2), [Score()], chance=False).to_dict()["estimates"][0]
    assert (undefined["value"], undefined["reason"]) == (None, "no defined value")


def test_results_have_a_one_line_repr_and_an_escaped_html_table() -> None:
    result = estimate(sample_table(), [Score()], system="<b>a</b>")
    assert "\n" not in repr(result)
    assert repr(result).startswith("<Result <b>a</b>: 60 units; Score 0.")
    html = result._repr_html_()
    assert "&lt;b&gt;a&lt;/b&gt;" in html
    assert "<b>" not in html
    assert html.count("<tr>") == 2
    assert "n/a (one value)" in estimate(sample_table(units=1), [Score()])._repr_html_()


def test_findings_are_part_of_the_dictionary() -> None:
    from dataclasses import replace

    finding = Finding("EQ101", Severity.TIP, "mini", "it is small", "add units", ("n = 3",), "few units")
    report = replace(estimate(sample_table(), [Score()]), findings=(finding,)).to_dict()
    assert report["findings"][0] == {
        "code": "EQ101",
        "severity": "tip",
        "subject": "mini",
        "message": "it is small",
        "hint": "add units",
        "evidence": ["n = 3"],
        "title": "few units",
    }


@pytest.mark.parametrize(("option", "value"), [("n_resamples", 0), ("seed", -1), ("confidence_level", 1.5)])
def test_invalid_options_raise_parameter_error(option: str, value: float) -> None:
    with pytest.raises(ParameterError):
        estimate(sample_table(), [Hit()], config=StatsConfig(**{option: value}))  # type: ignore[arg-type]
