"""Stored job outputs: they are equal to what was computed, and a file cannot run code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from equipoise.config import StatsConfig
from equipoise.errors import StoreError
from equipoise.evidence.base import pack_npz, unpack_npz_bytes
from equipoise.evidence.ranking import Ranking
from equipoise.runs.evaluate import evaluate
from equipoise.runs.experiment_folder import ArtifactStore, pack, unpack
from equipoise.runs.runner import Job
from equipoise.stats.intervals import Interval
from equipoise.types import Finding, Severity

JOB = Job("a model (with: odd/characters*)", None)


@pytest.mark.parametrize(
    "value",
    [
        None,
        [1, 2.5, "ü", True, float("inf"), b"\x00\xff"],
        {"a": (1, [2]), 3: {"b"}, (1, 2): frozenset([1])},
        Finding("EQ101", Severity.TIP, "subject", "message", "hint", ("a",)),
        StatsConfig(seed=4),
        Interval(0.1, 0.5, 0.95, "t"),
        [["list", "of lists"], ["array", "a0"]],
    ],
)
def test_values_are_read_as_they_were_written(value: Any) -> None:
    assert unpack(pack(value)) == value
    assert type(unpack(pack(value))) is type(value)


def test_a_result_with_its_evidence_is_read_as_it_was_written() -> None:
    evidence = Ranking.from_ranks([1, 3, 2], candidates=9, unit_ids=["a", "b", "c"])
    result = evaluate(evidence, ["MRR", "HR@1"], system="bm25")
    loaded = unpack(pack(result))
    assert loaded.to_dict() == result.to_dict()
    assert loaded.unit_ids.tolist() == result.unit_ids.tolist()
    assert evaluate(loaded.evidence, ["MAP"]).to_dict() == evaluate(evidence, ["MAP"]).to_dict()


def test_arrays_keep_type_and_shape() -> None:
    arrays = [np.arange(6, dtype=np.int32).reshape(2, 3), np.array(["a", 1], dtype=object), np.zeros(0)]
    for array, loaded in zip(arrays, unpack(pack(arrays)), strict=True):
        assert (loaded.dtype, loaded.shape, loaded.tolist()) == (array.dtype, array.shape, array.tolist())
    assert unpack(pack(np.float32(0.1))) == np.float32(0.1)


@pytest.mark.parametrize("value", [len, object(), lambda: 1, Path("x")])
def test_other_objects_are_an_error(value: Any) -> None:
    with pytest.raises(TypeError):
        pack([value])


def with_changed_content(data: bytes, change: Callable[[Any], Any]) -> bytes:
    """The archive with another description of its content."""
    arrays = unpack_npz_bytes(data, "test")
    content = change(json.loads(arrays["content"].tobytes()))
    return pack_npz({**arrays, "content": np.frombuffer(json.dumps(content).encode(), dtype=np.uint8)})


@pytest.mark.parametrize(
    "path",
    [
        "subprocess:Popen",
        "equipoise.runs.experiment_folder:subprocess",
        "equipoise.__main__:main",
        "equipoise.runs.experiment_folder:ArtifactStore",
        "equipoise.runs.experiment_folder:Path",
    ],
)
def test_a_changed_file_creates_no_other_class(path: str) -> None:
    for tag in ("dataclass", "enum", "namedtuple"):
        data = with_changed_content(pack(1), lambda content: {**content, "value": [tag, path, ["touch"]]})  # noqa: B023
        with pytest.raises((StoreError, AttributeError, LookupError)):
            unpack(data)


def test_an_output_is_loaded_with_its_key(tmp_path: Path) -> None:
    store = ArtifactStore[list[int]](tmp_path / "artifacts")
    assert store.load(JOB) is None
    store.save(JOB, [1, 2], key="k", seconds=0.1)
    stored = store.load(JOB)
    assert stored is not None
    assert (stored.key, stored.value) == ("k", [1, 2])
    assert store.load(Job("another", None)) is None


def test_an_output_without_key_is_not_stored_and_still_passed_on(tmp_path: Path) -> None:
    written: list[Any] = []
    store = ArtifactStore[str](tmp_path / "artifacts", on_save=written.append)
    store.save(JOB, "partial", key="", seconds=0.1)
    assert written == ["partial"]
    assert store.load(JOB) is None


def test_an_output_with_objects_of_the_user_is_not_stored(tmp_path: Path) -> None:
    store = ArtifactStore[Any](tmp_path / "artifacts")
    store.save(JOB, {"model": object()}, key="k", seconds=0.1)
    assert store.load(JOB) is None


@pytest.mark.parametrize("damage", [lambda data: b"", lambda data: data[:-40], lambda data: b"x" * len(data)])
def test_a_damaged_file_is_ignored(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    store = ArtifactStore[dict[str, Any]](tmp_path)
    store.save(JOB, {"a": np.arange(100)}, key="k", seconds=0.1)
    (file,) = tmp_path.iterdir()
    file.write_bytes(damage(file.read_bytes()))
    assert store.load(JOB) is None


def test_outputs_of_another_version_are_not_loaded(tmp_path: Path) -> None:
    store = ArtifactStore[int](tmp_path)
    store.save(JOB, 1, key="k", seconds=0.1)
    (file,) = tmp_path.iterdir()
    file.write_bytes(with_changed_content(file.read_bytes(), lambda content: {**content, "format": "0 0.0.1"}))
    assert store.load(JOB) is None
