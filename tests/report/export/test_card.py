"""Model cards, parsed with huggingface_hub."""

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
def test_yaml_round_trips(value: dict[str, object]) -> None:
    assert yaml.safe_load("\n".join(yaml_lines(value))) == value


def parse_results(text: str) -> list[object]:
    """The results of a card with this metadata."""
    eval_results = hub.ModelCard(f"---\n{text}---\n", ignore_metadata_errors=False).data.eval_results
    assert eval_results
    return eval_results


def test_the_hub_reads_every_value_with_interval_and_n(make_runs) -> None:
    run = make_runs(["my model"]).runs[0]
    eval_results = parse_results(export([run], None, "card"))
    assert [eval_result.metric_type for eval_result in eval_results] == ["mrr", "mr", "hr_at_1"]
    for eval_result in eval_results:
        estimate = run.result[eval_result.metric_name]
        assert eval_result.metric_value == estimate.value
        interval = eval_result.metric_args["interval"]
        assert (interval["low"], interval["high"]) == (estimate.interval.low, estimate.interval.high)
        assert (interval["confidence_level"], eval_result.metric_args["n"]) == (0.95, 40)
        assert eval_result.metric_args["better"] == str(estimate.better)
        assert (eval_result.task_type, eval_result.dataset_name) == ("information-retrieval", "truth.qrels")
        assert eval_result.dataset_revision == "ab12"


def test_names_round_trip(make_runs, hostile) -> None:
    exported = make_runs(hostile)
    text = export(exported.runs, exported.comparison, "card")
    index = yaml.safe_load(text)["model-index"]
    assert [entry["name"] for entry in index] == list(exported.comparison.order)
    assert len(parse_results(text)) == 3 * len(hostile)


def test_tie_bands_are_explained_in_a_comment(make_runs) -> None:
    exported = make_runs(["one", "two"])
    text = export(exported.runs, exported.comparison, "card")
    bands = {eval_result.metric_args["band"] for eval_result in parse_results(text)}
    assert "a" in bands
    assert "# Systems that share a letter on a metric do not differ significantly at the 5 % level." in text


def test_a_partial_run_is_named_in_a_comment(make_runs) -> None:
    run = make_runs(["one\ntwo"], partial=["one\ntwo"]).runs[0]
    text = export([run], None, "card")
    assert "# * the run of one two is partial: out of time." in text.splitlines()
    assert yaml.safe_load(text)["model-index"][0]["name"] == "one\ntwo"


def test_undefined_values_are_omitted(make_runs) -> None:
    from dataclasses import replace

    run = make_runs(["one"]).runs[0]
    undefined = replace(run.result["MRR"], value=math.nan)
    result = replace(run.result, estimates={**run.result.estimates, "MRR": undefined})
    eval_results = parse_results(export([replace(run, result=result)], None, "card"))
    assert [eval_result.metric_name for eval_result in eval_results] == ["MR", "HR@1"]
