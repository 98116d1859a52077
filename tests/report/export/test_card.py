"""Model cards, read back by huggingface_hub."""

from __future__ import annotations

import math

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from equipoise.report.export import export
from equipoise.report.export.metadata import yaml_lines

hub = pytest.importorskip("huggingface_hub")

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
keys = st.text(min_size=1) | st.sampled_from(["no", "on", "null", "model-index", "n", "value"])
nested = st.recursive(
    st.dictionaries(keys, scalars, min_size=1, max_size=3),
    lambda inner: st.dictionaries(keys, inner | scalars | st.lists(inner, max_size=3), min_size=1, max_size=3),
    max_leaves=8,
)


@given(nested)
def test_yaml_says_what_it_was_given(value: dict[str, object]) -> None:
    assert yaml.safe_load("\n".join(yaml_lines(value))) == value


def results(text: str) -> list[object]:
    """The results of a card that has this text at its front."""
    found = hub.ModelCard(f"---\n{text}---\n", ignore_metadata_errors=False).data.eval_results
    assert found
    return found


def test_the_hub_reads_every_figure_with_its_interval_and_n(stored) -> None:
    run = stored(["my model"]).runs[0]
    found = results(export([run], None, "card"))
    assert [each.metric_type for each in found] == ["mrr", "mr", "hr_at_1"]
    for each in found:
        estimate = run.result[each.metric_name]
        assert each.metric_value == estimate.value
        interval = each.metric_args["interval"]
        assert (interval["low"], interval["high"]) == (estimate.interval.low, estimate.interval.high)
        assert (interval["confidence_level"], each.metric_args["n"]) == (0.95, 40)
        assert each.metric_args["better"] == str(estimate.better)
        assert (each.task_type, each.dataset_name) == ("information-retrieval", "truth.qrels")
        assert each.dataset_revision == "ab12"


def test_names_come_back_as_they_were(stored, hostile) -> None:
    made = stored(hostile)
    text = export(made.runs, made.comparison, "card")
    index = yaml.safe_load(text)["model-index"]
    assert [entry["name"] for entry in index] == list(made.comparison.order)
    assert len(results(text)) == 3 * len(hostile)


def test_bands_and_the_test_behind_them_are_told(stored) -> None:
    made = stored(["one", "two"])
    text = export(made.runs, made.comparison, "card")
    bands = {each.metric_args["band"] for each in results(text)}
    assert "a" in bands
    assert "# Systems that share a letter on a metric do not differ significantly at the 5 % level." in text


def test_a_partial_run_is_named_in_a_comment(stored) -> None:
    run = stored(["one\ntwo"], partial=["one\ntwo"]).runs[0]
    text = export([run], None, "card")
    assert "# * the run of one two is partial: out of time." in text.splitlines()
    assert yaml.safe_load(text)["model-index"][0]["name"] == "one\ntwo"


def test_a_figure_that_is_undefined_is_left_out(stored) -> None:
    from dataclasses import replace

    run = stored(["one"]).runs[0]
    lost = replace(run.result["MRR"], value=math.nan)
    result = replace(run.result, estimates={**run.result.estimates, "MRR": lost})
    found = results(export([replace(run, result=result)], None, "card"))
    assert [each.metric_name for each in found] == ["MR", "HR@1"]
