"""Checks of concept sets and of concept scores."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from equipoise.checks.base import run_checks
from equipoise.domains.concepts.checks import ConceptSpace, ScoreComponent, ZeroVectors
from equipoise.domains.concepts.concept_set import ConceptCluster, ConceptPair, ConceptSet
from equipoise.domains.concepts.concept_set_reader import read_concept_set, read_with_issues
from equipoise.evidence.space import Space
from equipoise.types import Direction


def codes(subject: object) -> list[str]:
    return [finding.code for finding in run_checks(subject)]


def pairs(expected: list[float]) -> ConceptSet:
    return ConceptSet(
        "f", pairs=tuple(ConceptPair(f"a{n}", f"b{n}", similarity) for n, similarity in enumerate(expected))
    )


def test_the_sample_has_no_findings() -> None:
    assert run_checks(read_concept_set()) == ()


def test_each_kind_of_problem_has_a_finding(tmp_path: Path) -> None:
    rows = [["a", "b", 0.1], ["c", "d", 7], ["e", "", 0.2], ["g", "h", -3]]
    keys = ("concept_1", "concept_2", "expected_similarity")
    (tmp_path / "pairs.json").write_text(json.dumps([dict(zip(keys, row, strict=True)) for row in rows]))
    wrong_offsets = {"text": "Kant", "entities": [{"text": "Kant", "label": "P", "start": 1, "end": 5}]}
    without_offsets = {"text": "Hume", "entities": [{"text": "Hume", "label": "Q"}]}
    (tmp_path / "entities.json").write_text(json.dumps([wrong_offsets, without_offsets]))
    findings_by_code = {finding.code: finding for finding in run_checks(read_with_issues(tmp_path))}
    assert list(findings_by_code) == ["EQ130", "EQ131", "EQ132"]
    assert findings_by_code["EQ130"].message == "entry 3 has an empty concept_2"
    assert findings_by_code["EQ131"].message == "entry 2 expects the similarity 7, outside 0 to 1 (and 1 more problem)"
    assert len(findings_by_code["EQ131"].evidence) == 2
    assert findings_by_code["EQ132"].subject == str(tmp_path / "entities.json")


@pytest.mark.parametrize(
    ("expected", "reported"),
    [([0.9, 0.8, 0.3], True), ([0.9, 0.25], False), ([0.9] * 19 + [0.0], True), ([0.9] * 9 + [0.0], False)],
)
def test_pairs_with_few_negatives_are_reported(expected: list[float], reported: bool) -> None:
    assert ("EQ133" in codes(pairs(expected))) is reported


@pytest.mark.parametrize(("size", "reported"), [(3, True), (4, False)])
def test_clusters_of_few_concepts_are_listed(size: int, reported: bool) -> None:
    small = ConceptCluster("small", tuple(f"s{n}" for n in range(size)))
    findings = run_checks(ConceptSet("f", clusters=(small, ConceptCluster("large", tuple("abcdefg")))))
    assert [finding.evidence for finding in findings] == ([(f"small ({size})",)] if reported else [])


@pytest.mark.parametrize(("offset", "collapsed"), [(0.0, False), (1.0, False), (50.0, True)])
def test_a_narrow_cone_is_a_collapsed_space(offset: float, collapsed: bool) -> None:
    vectors = np.random.default_rng(0).normal(size=(30, 16)) + offset
    assert ("EQ310" in codes(ConceptSpace("m", Space.of(vectors)))) is collapsed


def test_points_on_a_line_through_the_origin_are_collapsed_though_their_cosines_cancel() -> None:
    line = Space.of([[float(n), 2.0 * n] for n in (-3, -2, -1, 1, 2, 3)])
    assert codes(ConceptSpace("m", line)) == ["EQ310"]


def test_a_space_of_zero_vectors_is_collapsed() -> None:
    for n_nonzero in (0, 1):
        vectors = np.zeros((4, 3))
        vectors[:n_nonzero] = np.eye(3)[:n_nonzero]
        (finding,) = run_checks(ConceptSpace("m", Space.of(vectors)))
        assert finding.code == "EQ310"
        assert finding.message == f"only {n_nonzero} of 4 vectors of the concepts are not zero"


def test_texts_with_a_zero_vector_are_counted_and_named() -> None:
    (finding,) = run_checks(ZeroVectors("m", ("qualia", "akrasia"), 9))
    assert finding.code == "EQ313"
    assert finding.message == "2 of 9 texts have a zero vector: 'qualia', 'akrasia'"
    assert codes(ZeroVectors("m", (), 9)) == []


def test_a_score_that_is_undefined_for_every_model_is_reported() -> None:
    assert "EQ135" in codes(pairs([0.5, 0.5, 0.5]))
    assert "EQ135" not in codes(pairs([0.5, 0.5, 0.6]))
    single_concept_clusters = ConceptSet("f", clusters=(ConceptCluster("a", ("x",)), ConceptCluster("b", ("y",))))
    assert "EQ135" in codes(single_concept_clusters)


def test_a_model_whose_name_ends_in_a_colon_gets_no_second_one() -> None:
    (finding,) = run_checks(ScoreComponent("q", "norms", 0.3, Direction.DOWN, {"hash:": 0.1}))
    assert finding.evidence == ("hash: 0.1000",)


@pytest.mark.parametrize(
    ("values", "fixed", "expected_codes"),
    [
        ({"a": 0.2, "b": 0.2}, False, ["EQ311"]),
        ({"a": 0.2, "b": 0.2000001}, False, []),
        ({"a": 0.2}, False, []),
        ({"a": 0.2}, True, ["EQ311"]),
        ({"a": float("nan"), "b": float("nan")}, True, []),
    ],
)
def test_a_component_that_is_equal_for_all_models_is_reported(
    values: dict[str, float], fixed: bool, expected_codes: list[str]
) -> None:
    assert codes(ScoreComponent("kg", "density", 0.3, Direction.UP, values, fixed=fixed)) == expected_codes


@pytest.mark.parametrize(
    ("weight", "better", "expected_codes"),
    [
        (0.3, Direction.DOWN, ["EQ312"]),
        (0.3, Direction.UP, []),
        (-0.3, Direction.DOWN, []),
        (-0.3, Direction.UP, ["EQ312"]),
        (0.0, Direction.DOWN, []),
    ],
)
def test_a_component_with_the_wrong_direction_is_reported(
    weight: float, better: Direction, expected_codes: list[str]
) -> None:
    assert codes(ScoreComponent("q", "norms", weight, better, {"a": 0.1, "b": 0.3})) == expected_codes
