"""CSV, read back by the csv module."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import numpy as np

from equipoise.redaction import inert
from equipoise.report.export import export


def rows(text: str) -> list[dict[str, str]]:
    """The table by its heads."""
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_names_come_back_as_they_were_whatever_they_hold(stored, hostile) -> None:
    names = (*hostile, "carriage\rreturn", "")
    made = stored(names)
    found = rows(export(made.runs, made.comparison, "csv"))
    assert len(found) == len(names) * 3
    quoted = {"- item: yes @me --- &amp; !important": "'- item: yes @me --- &amp; !important"}
    assert {row["system"] for row in found} == {inert(quoted.get(name, name)) for name in names}
    assert None not in found[0]


def test_figures_keep_all_their_digits(stored) -> None:
    made = stored(["one", "two"], partial=["two"])
    for row in rows(export(made.runs, made.comparison, "csv")):
        estimate = made.comparison.estimates[row["system"]][row["metric"]]
        assert float(row["value"]) == estimate.value
        assert (float(row["low"]), float(row["high"])) == (estimate.interval.low, estimate.interval.high)
        assert (int(row["n"]), int(row["undefined"])) == (40, 0)
        assert float(row["chance"]) == estimate.chance
        assert (row["unit"], row["better"]) == (estimate.unit, estimate.better)
        assert row["band"].split() == list(made.comparison.bands_on(row["metric"])[row["system"]])
        assert row["status"] == {"one": "complete", "two": "partial"}[row["system"]]


def test_what_is_not_known_is_empty(stored) -> None:
    run = stored(["one"], units=1).runs[0]
    row = rows(export([run], None, "csv"))[0]
    assert (row["low"], row["high"], row["band"]) == ("", "", "")


def test_every_unit_of_every_system_has_a_row(stored, hostile) -> None:
    made = stored(hostile[:3])
    found = rows(export(made.runs, made.comparison, "csv", units=True))
    assert list(found[0]) == ["system", "unit", "MRR", "MR", "HR@1"]
    for run in made.runs:
        own = [row for row in found if row["system"] == run.result.system]
        assert [row["unit"] for row in own] == [str(unit) for unit in run.result.unit_ids.tolist()]
        assert [float(row["MRR"]) for row in own] == run.result.per_unit["MRR"].tolist()


def test_clusters_have_a_column_and_undefined_values_are_empty(stored) -> None:
    run = stored(["one"], units=3).runs[0]
    values = {**run.result.per_unit, "MRR": np.array([np.nan, 0.5, 1.0])}
    clusters = np.array(["x", "x", "a,b"], dtype=object)
    run = replace(run, result=replace(run.result, per_unit=values, clusters=clusters))
    found = rows(export([run], None, "csv", units=True))
    assert [row["cluster"] for row in found] == ["x", "x", "a,b"]
    assert [row["MRR"] for row in found] == ["", "0.5", "1.0"]
