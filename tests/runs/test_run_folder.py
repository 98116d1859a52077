"""Run directories: round trips, validation and replacement."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.config import StatsConfig
from equipoise.errors import ChangedFileError, StoreError
from equipoise.evidence.base import Evidence
from equipoise.evidence.labels import Labels
from equipoise.evidence.pairs import Pairs
from equipoise.evidence.ranking import Ranking
from equipoise.evidence.sets import Sets
from equipoise.evidence.space import Space
from equipoise.runs.compare import compare
from equipoise.runs.evaluate import evaluate
from equipoise.runs.manifest import Manifest, Status, read_manifest
from equipoise.runs.run_folder import load_evidence, load_run, save_run
from equipoise.stats.intervals import Interval
from equipoise.stats.result import Estimate, Result
from equipoise.types import Direction, Finding, Severity
from stored_runs import rewrite

QRELS = {"q1": {"a": 1, "b": 2}, "q2": {"c": 1}, "q3": {"d": 0}, "q4": {"z": 1}}
RUN = {
    "q1": {"a": 0.3, "b": 0.2, "x": 0.3},
    "q2": {"x": 0.9, "c": 0.1},
    "q3": {"d": 0.5},
    "q9": {"a": 1.0},
}


def small_result(system: str = "bm25") -> Result:
    ranking = Ranking.from_runs(QRELS, RUN)
    clusters = ["x", "x", "y", "y"]
    return evaluate(ranking, ["nDCG@10", "MRR", "HR@1"], system=system, config=StatsConfig(clusters=clusters, seed=5))


def store(tmp_path: Path, result: Result | None = None) -> Path:
    return save_run(tmp_path / "run", result or small_result(), manifest=Manifest("bm25"))


def same_bits(first: np.ndarray, second: np.ndarray) -> bool:
    """Whether arrays are bitwise equal, including the sign of zero; all NaN are equal."""
    return [value.hex() for value in first.tolist()] == [value.hex() for value in second.tolist()]


def assert_same(first: Result, second: Result) -> None:
    """Assert that results are bitwise equal; NaN equals NaN."""
    assert first.system == second.system
    assert first.unit_ids.tolist() == second.unit_ids.tolist()
    assert repr(dict(first.estimates)) == repr(dict(second.estimates))
    for first_arrays, second_arrays in ((first.per_unit, second.per_unit), (first.weights, second.weights)):
        assert list(first_arrays) == list(second_arrays)
        for name in first_arrays:
            assert same_bits(first_arrays[name], second_arrays[name])
    assert (first.clusters is None) == (second.clusters is None)
    if first.clusters is not None and second.clusters is not None:
        assert first.clusters.tolist() == second.clusters.tolist()
    assert first.findings == second.findings
    assert dict(first.settings) == dict(second.settings)


# ---- round trips -----------------------------------------------------------------------------


def test_a_run_round_trips(tmp_path: Path) -> None:
    result = small_result()
    stored = load_run(store(tmp_path, result))
    assert_same(stored.result, result)
    assert stored.caution == ""
    assert stored.manifest.units == 4
    assert stored.manifest.seed == 5
    assert stored.manifest.settings["ties"] == "expected"


EVIDENCE: list[tuple[Evidence, list[str]]] = [
    (Ranking.from_runs(QRELS, RUN), ["MRR"]),
    (Ranking.from_lists([[1, 2, 3, 4]] * 3, [[1, 3], [4], [2]]).with_filtered_ranks(), ["MR"]),
    (Ranking.from_ranks([3, 1, 2], candidates=5), ["MR", "MedianRank"]),
    (Pairs.of([0.1, 0.2, 0.5], [0.2, 0.1, 0.6]), ["Spearman", "MAE"]),
    (Labels.of(["a", "b", "b"], ["a", "a", "b"], unit_ids=["x", "y", "z"]), ["Acc", "F1(average=macro)"]),
    (Labels.from_logits(np.eye(3), [0, 1, 1]), ["Acc"]),
    (Sets.of({"d": ["x"], "e": ["y"]}, {"d": ["x"], "f": ["x"]}), ["F1(average=micro)"]),
    (Space.of(np.eye(4)[[0, 0, 1, 1]] + 0.1 * np.eye(4), labels=[0, 0, 1, 1]), ["Silhouette"]),
]


@pytest.mark.parametrize(("evidence", "metrics"), EVIDENCE, ids=lambda value: getattr(value, "kind", ""))
def test_every_kind_of_evidence_is_stored_and_can_be_scored_again(
    evidence: Evidence, metrics: list[str], tmp_path: Path
) -> None:
    result = evaluate(evidence, metrics)
    stored = load_run(store(tmp_path, result)).result
    assert_same(stored, result)
    assert stored.evidence is not None
    assert_same(evaluate(stored.evidence, metrics), result)
    loaded = load_evidence(tmp_path / "run")
    assert type(loaded) is type(evidence)
    for name, array in evidence.to_arrays().items():
        assert np.array_equal(loaded.to_arrays()[name], array)


def test_stored_runs_give_the_same_comparison(tmp_path: Path) -> None:
    results = [small_result("x"), replace(evaluate(Ranking.from_runs(QRELS, {}), "MRR"), system="y")]
    results = [replace(result, clusters=None) for result in results]
    stored = [
        load_run(save_run(tmp_path / result.system, result, manifest=Manifest(result.system))).result
        for result in results
    ]
    assert compare(stored, "MRR").to_dict() == compare(results, "MRR").to_dict()


def test_evidence_is_optional(tmp_path: Path) -> None:
    path = store(tmp_path)
    assert load_run(path, evidence=False).result.evidence is None
    save_run(path, replace(small_result(), evidence=None), manifest=Manifest("bm25"))
    assert load_run(path).result.evidence is None
    assert not (path / "evidence.npz").exists()
    with pytest.raises(StoreError, match=r"lacks evidence\.npz"):
        load_evidence(path)


def test_equal_runs_give_equal_bytes(tmp_path: Path) -> None:
    manifest = Manifest("bm25", started="2026-01-01T00:00:00Z", finished="2026-01-01T00:00:01Z")
    first, second = (save_run(tmp_path / name, small_result(), manifest=manifest) for name in "ab")
    for name in ("manifest.json", "result.json", "cases.jsonl", "evidence.npz"):
        assert (first / name).read_bytes() == (second / name).read_bytes()


ids = st.one_of(
    st.lists(st.text(st.characters(exclude_categories=["Cs"])), unique=True, max_size=6),
    st.lists(st.integers(-(2**70), 2**70), unique=True, max_size=6),
)
numbers = st.floats(allow_nan=True, allow_infinity=True)


@st.composite
def results(draw: st.DrawFn) -> Result:
    units = draw(ids)
    names = draw(st.lists(st.text("abcXYZ@(=),10", min_size=1), unique=True, min_size=1, max_size=3))
    column = st.lists(numbers, min_size=len(units), max_size=len(units)).map(lambda values: np.array(values, float))
    array = np.empty(len(units), dtype=object)
    array[:] = units
    low, high = draw(numbers), draw(numbers)
    interval = draw(st.sampled_from([Interval(low, high, 0.9, "bca"), Interval.unknown("one unit")]))
    direction = draw(st.sampled_from(list(Direction)))
    return Result(
        system=draw(st.text(st.characters(exclude_categories=["Cs"]), min_size=1)),
        unit_ids=array,
        estimates={
            name: Estimate(name, draw(numbers), interval, 3, 1, draw(numbers), direction, "rank") for name in names
        },
        per_unit={name: draw(column) for name in names} if units else {},
        weights={names[0]: draw(column)} if units and draw(st.booleans()) else {},
        clusters=draw(st.sampled_from([None, np.arange(len(units))])) if units else None,
        findings=(Finding("EQ301", Severity.TIP, "ä", "a \u2028 b", "c", ("d",)),),
        settings={"confidence_level": 0.95, "weights": [0.1, None], "note": "x\ny"},
    )


@settings(max_examples=60)
@given(result=results())
def test_any_result_round_trips(result: Result, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("any") / "run"
    assert_same(load_run(save_run(path, result, manifest=Manifest("any"))).result, result)


# ---- contents of the files ----------------------------------------------------------------------


def parse_strict_json(text: str) -> object:
    def reject(name: str) -> object:
        raise AssertionError(f"{name} in JSON")

    return json.loads(text, parse_constant=reject)


def test_undefined_numbers_are_null_with_a_reason(tmp_path: Path) -> None:
    path = store(tmp_path)
    cases = [parse_strict_json(line) for line in (path / "cases.jsonl").read_text().splitlines()]
    assert cases[0] == {
        "id": "q1",
        "values": {"nDCG@10": cases[0]["values"]["nDCG@10"], "MRR": 0.75, "HR@1": 0.5},
        "cluster": "x",
        "ranks": [1.5, 3.0],
        "above": [0, 2],
        "tied": [1, 0],
        "gains": [1.0, 2.0],
    }
    assert cases[2]["values"] == {"nDCG@10": None, "MRR": None, "HR@1": None}
    assert cases[2]["undefined"] == "no relevant item"
    assert cases[3]["ranks"] == [None]
    result = parse_strict_json((path / "result.json").read_text())
    assert result["estimates"][1]["metric"] == "MRR"
    assert result["estimates"][1]["unit"] == "fraction"
    assert result["estimates"][1]["undefined"] == 1
    assert {finding["code"] for finding in result["findings"]} >= {"EQ101", "EQ104", "EQ106"}


def test_infinite_values_are_valid_json(tmp_path: Path) -> None:
    result = small_result()
    column = np.array([math.inf, -math.inf, math.nan, 0.1])
    path = store(tmp_path, replace(result, per_unit={"MRR": column}))
    for line in (path / "cases.jsonl").read_text().splitlines():
        parse_strict_json(line)
    assert same_bits(load_run(path).result.per_unit["MRR"], column)


def test_the_manifest_has_the_provenance_of_the_run(tmp_path: Path) -> None:
    manifest = Manifest.start("bm25", command=["eq", "score", "a.trec"]).finish()
    path = save_run(tmp_path / "run", small_result(), manifest=manifest)
    content = parse_strict_json((path / "manifest.json").read_text())
    assert content["schema"] == 1
    assert content["status"] == "complete"
    assert content["command"] == ["eq", "score", "a.trec"]
    assert content["evidence"]["kind"] == "ranking"
    assert set(content["versions"]) == {"equipoise", "python", "numpy", "scipy"}
    assert content["started"].endswith("Z")


@pytest.mark.parametrize("status", [Status.PARTIAL, Status.FAILED])
def test_an_incomplete_run_has_a_caution(status: Status, tmp_path: Path) -> None:
    manifest = Manifest.start("bm25").finish(status, reason="3 of 7 batches")
    stored = load_run(save_run(tmp_path / "run", small_result(), manifest=manifest))
    assert stored.manifest.status is status
    assert stored.caution == f"the run of bm25 is {status}: 3 of 7 batches"
    assert read_manifest(tmp_path / "run") == stored.manifest


# ---- replacing -------------------------------------------------------------------------------


def test_a_run_replaces_a_run_without_leftovers(tmp_path: Path) -> None:
    store(tmp_path)
    store(tmp_path, small_result("other"))
    assert load_run(tmp_path / "run").result.system == "other"
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_parent_folders_are_created(tmp_path: Path) -> None:
    path = save_run(tmp_path / "a" / "b", small_result(), manifest=Manifest("bm25"))
    assert load_run(path).result.system == "bm25"


def test_an_empty_folder_is_replaced_and_other_files_are_not(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    store(tmp_path)
    (tmp_path / "run" / "thesis.tex").write_text("text of the user")
    with pytest.raises(StoreError, match=r"thesis\.tex"):
        store(tmp_path)
    assert (tmp_path / "run" / "thesis.tex").read_text() == "text of the user"
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError) as error:
        save_run(tmp_path / "file", small_result(), manifest=Manifest("bm25"))
    assert error.value.code == "E500"
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "result.json").write_text("{}")
    with pytest.raises(StoreError, match=r"result\.json"):
        save_run(tmp_path / "data", small_result(), manifest=Manifest("bm25"))


def test_invalid_ids_are_errors_before_writing(tmp_path: Path) -> None:
    result = small_result()
    units = np.empty(4, dtype=object)
    units[:] = [(1, 2), "b", "c", "d"]
    with pytest.raises(StoreError, match=r"\(1, 2\) is a tuple"):
        store(tmp_path, replace(result, unit_ids=units))
    with pytest.raises(StoreError) as error:
        store(tmp_path, replace(result, unit_ids=np.array(["a\ud800", "b", "c", "d"], dtype=object)))
    assert error.value.code == "E500"
    assert list(tmp_path.iterdir()) == []


def test_an_unwritable_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError) as error:
        save_run(tmp_path / "file" / "run", small_result(), manifest=Manifest("bm25"))
    assert error.value.code == "E500"


# ---- reading invalid folders ----------------------------------------------------------------


def test_a_path_without_a_run_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError) as error:
        load_run(tmp_path / "none")
    assert error.value.code == "E500"
    with pytest.raises(StoreError) as error:
        load_run(tmp_path)
    assert error.value.code == "E500"
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError) as error:
        load_run(tmp_path / "file")
    assert error.value.code == "E500"


@pytest.mark.parametrize("name", ["result.json", "cases.jsonl", "evidence.npz"])
def test_a_missing_file_is_an_error_with_its_name(name: str, tmp_path: Path) -> None:
    path = store(tmp_path)
    (path / name).unlink()
    with pytest.raises(StoreError, match=f"lacks {name}"):
        load_run(path)


@pytest.mark.parametrize("name", ["manifest.json", "result.json", "cases.jsonl", "evidence.npz"])
@pytest.mark.parametrize("fraction", [0.0, 0.3, 0.6, 0.9])
def test_a_truncated_file_is_a_store_error(name: str, fraction: float, tmp_path: Path) -> None:
    path = store(tmp_path)
    data = (path / name).read_bytes()
    (path / name).write_bytes(data[: int(fraction * len(data))])
    with pytest.raises(StoreError) as error:
        load_run(path)
    assert name in error.value.message


@pytest.mark.parametrize("schema", [0, 2, 99])
def test_another_schema_is_an_error(schema: int, tmp_path: Path) -> None:
    path = store(tmp_path)
    content = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").write_text(json.dumps(content | {"schema": schema}))
    with pytest.raises(StoreError, match=f"follows schema {schema}"):
        load_run(path)


def test_missing_lines_are_an_error(tmp_path: Path) -> None:
    path = store(tmp_path)
    lines = (path / "cases.jsonl").read_text().splitlines(keepends=True)
    rewrite(path / "cases.jsonl", "".join(lines[:-1]))
    with pytest.raises(StoreError, match="has 3 units"):
        load_run(path)


def test_lines_with_other_fields_are_an_error(tmp_path: Path) -> None:
    path = store(tmp_path)
    lines = (path / "cases.jsonl").read_text().splitlines()
    lines[1] = json.dumps({"id": "q2", "values": {"MRR": 1.0}})
    rewrite(path / "cases.jsonl", "\n".join(lines))
    with pytest.raises(StoreError, match=r"cases\.jsonl line 2 has different fields from line 1"):
        load_run(path)


def test_evidence_of_another_length_is_an_error(tmp_path: Path) -> None:
    path = store(tmp_path)
    Ranking.from_ranks([1, 2], candidates=5).save(path / "evidence.npz")
    rewrite(path / "evidence.npz", (path / "evidence.npz").read_bytes())
    with pytest.raises(StoreError, match="has 2 units, and the cases have 4"):
        load_run(path)


def test_evidence_of_another_system_is_an_error(tmp_path: Path) -> None:
    path = store(tmp_path)
    Ranking.from_runs(QRELS, {}).save(path / "evidence.npz")
    with pytest.raises(ChangedFileError, match=r"evidence\.npz"):
        load_run(path)


def test_an_invalid_result_is_an_error(tmp_path: Path) -> None:
    path = store(tmp_path)
    for content in ("[]", "{}", '{"estimates": 3}', '{"estimates": [{}]}'):
        rewrite(path / "result.json", content)
        with pytest.raises(StoreError) as error:
            load_run(path)
        assert error.value.code == "E500"


def test_invalid_evidence_files_are_errors(tmp_path: Path) -> None:
    np.savez(tmp_path / "plain.npz", x=np.zeros(2))
    with pytest.raises(StoreError) as error:
        load_evidence(tmp_path / "plain.npz")
    assert error.value.code == "E500"
    np.savez(tmp_path / "other.npz", kind=np.array("rankings"))
    with pytest.raises(StoreError, match="'rankings'") as error:
        load_evidence(tmp_path / "other.npz")
    assert error.value.hint == "did you mean ranking?"
    np.savez(tmp_path / "half.npz", kind=np.array("pairs"), predicted=np.zeros(2))
    with pytest.raises(StoreError) as error:
        load_evidence(tmp_path / "half.npz")
    assert error.value.code == "E500"
    with pytest.raises(StoreError) as error:
        load_evidence(tmp_path / "none.npz")
    assert error.value.code == "E500"


def test_the_result_of_a_partial_run_has_a_finding(tmp_path: Path) -> None:
    partial_manifest = Manifest.start("bm25").finish("partial", reason="interrupted")
    partial = load_run(save_run(tmp_path / "run", small_result(), manifest=partial_manifest)).result
    assert partial.settings["status"] == "partial"
    assert partial.settings["status_reason"] == "interrupted"
    assert [finding.message for finding in partial.findings if finding.code == "EQ206"] == [
        "the run is partial: interrupted"
    ]
    other = replace(small_result(), system="other")
    for primary in ("MRR", "HR@3"):  # HR@3 is scored again from the evidence
        findings = compare([partial, other], primary=primary).findings
        assert [finding.subject for finding in findings if finding.code == "EQ206"] == [partial.system]
    complete_manifest = Manifest.start("bm25").finish()
    complete = load_run(save_run(tmp_path / "run", partial, manifest=complete_manifest)).result
    assert "status" not in complete.settings
    assert "EQ206" not in [finding.code for finding in complete.findings]
