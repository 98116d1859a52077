"""CSV, parsed with the csv module."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import numpy as np

from equipoise.redaction import inert
from equipoise.report.export import export


def parse_csv(text: str) -> list[dict[str, str]]:
    """The rows of a CSV table as dictionaries."""
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_names_round_trip(make_runs, hostile) -> None:
    names = (*hostile, "carriage\rreturn", "")
    exported = make_runs(names)
    table = parse_csv(export(exported.runs, exported.comparison, "csv"))
    assert len(table) == len(names) * 3
    quoted = {"- item: yes @me --- &amp; !important": "'- item: yes @me --- &amp; !important"}
    assert {row["system"] for row in table} == {inert(quoted.get(name, name)) for name in names}
    assert None not in table[0]


def test_values_have_full_precision(make_runs) -> None:
    exported = make_runs(["one", "two"], partial=["two"])
    for row in parse_csv(export(exported.runs, exported.comparison, "csv")):
        estimate = exported.comparison.estimates[row["system"]][row["metric"]]
        assert float(row["value"]) == estimate.value
        assert (float(row["low"]), float(row["high"])) == (estimate.interval.low, estimate.interval.high)
        assert (int(row["n"]), int(row["undefined"])) == (40, 0)
        assert float(row["chance"]) == estimate.chance
        assert (row["unit"], row["better"]) == (estimate.unit, estimate.better)
        assert row["band"].split() == list(exported.comparison.bands_on(row["metric"])[row["system"]])
        assert row["status"] == {"one": "complete", "two": "partial"}[row["system"]]


def test_unknown_values_are_empty(make_runs) -> None:
    run = make_runs(["one"], units=1).runs[0]
    row = parse_csv(export([run], None, "csv"))[0]
    assert (row["low"], row["high"], row["band"]) == ("", "", "")


def test_every_unit_of_every_system_has_a_row(make_runs, hostile) -> None:
    exported = make_runs(hostile[:3])
    table = parse_csv(export(exported.runs, exported.comparison, "csv", units=True))
    assert list(table[0]) == ["system", "unit", "MRR", "MR", "HR@1"]
    for run in exported.runs:
        system_rows = [row for row in table if row["system"] == run.result.system]
        assert [row["unit"] for row in system_rows] == [str(unit) for unit in run.result.unit_ids.tolist()]
        assert [float(row["MRR"]) for row in system_rows] == run.result.per_unit["MRR"].tolist()


def test_clusters_have_a_column_and_undefined_values_are_empty(make_runs) -> None:
    run = make_runs(["one"], units=3).runs[0]
    values = {**run.result.per_unit, "MRR": np.array([np.nan, 0.5, 1.0])}
    clusters = np.array(["x", "x", "a,b"], dtype=object)
    run = replace(run, result=replace(run.result, per_unit=values, clusters=clusters))
    table = parse_csv(export([run], None, "csv", units=True))
    assert [row["cluster"] for row in table] == ["x", "x", "a,b"]
    assert [row["MRR"] for row in table] == ["", "0.5", "1.0"]
