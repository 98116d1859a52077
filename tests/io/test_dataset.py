"""Datasets: validation, immutability and content fingerprints."""

import gzip
import hashlib
import json
import pickle
from dataclasses import FrozenInstanceError, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.errors import DuplicateError, FormatError, InputError, NotFiniteError, UnknownNameError
from equipoise.io.dataset import Dataset, file_sha256


def small_dataset(**changes) -> Dataset:
    fields = {
        "name": "tiny",
        "items": {"d1": "rain", "d2": "snow"},
        "units": {"q1": "wet?", "q2": "cold?"},
        "truth": {"q1": {"d1": 1, "d2": 0.5}, "q2": {"d2": 1}},
        "slices": {"q1": {"language": "en", "length": 4}},
        "splits": {"test": ["q1", "q2"]},
    }
    return Dataset(**{**fields, **changes})


def test_datasets_are_immutable():
    source = {"d1": "rain", "d2": "snow"}
    data = small_dataset(items=source)
    source["d1"] = "hail"
    assert data.items["d1"] == "rain"
    with pytest.raises(TypeError):
        data.items["d1"] = "hail"
    with pytest.raises(TypeError):
        data.truth["q1"]["d1"] = 3
    with pytest.raises(FrozenInstanceError):
        data.items = {}
    assert data.splits["test"] == ("q1", "q2")


def test_the_fingerprint_ignores_order_name_and_number_type():
    reordered = small_dataset(
        name="other",
        items={"d2": "snow", "d1": "rain"},
        units={"q2": "cold?", "q1": "wet?"},
        truth={"q2": {"d2": 1.0}, "q1": {"d2": 0.5, "d1": 1.0}},
        slices={"q1": {"length": 4, "language": "en"}},
        splits={"test": ["q2", "q1"]},
    )
    assert reordered.fingerprint == small_dataset().fingerprint
    assert len(small_dataset().fingerprint) == 64
    assert reordered != small_dataset()
    assert replace(reordered, name="tiny") == small_dataset()
    assert hash(replace(reordered, name="tiny")) == hash(small_dataset())


@pytest.mark.parametrize(
    "change",
    [
        {"items": {"d1": "rain", "d2": "snow!"}},
        {"items": {"d1": "rain", "d2": "snow", "d3": ""}},
        {"items": {"d1": "snow", "d2": "rain"}},
        {"units": {"q1": "wet?", "q2": "cold"}},
        {"truth": {"q1": {"d1": 1, "d2": 0.5}, "q2": {"d2": 2}}},
        {"truth": {"q1": {"d1": 1, "d2": 0.5}}},
        {"truth": {"q1": {"d1": 1, "d2": 0.5}, "q2": {}}},
        {"slices": {}},
        {"slices": {"q1": {"language": "en", "length": "4"}}},
        {"slices": {"q2": {"language": "en", "length": 4}}},
        {"splits": {"test": ["q1"]}},
        {"splits": {"train": ["q1", "q2"]}},
    ],
)
def test_the_fingerprint_changes_with_any_content(change):
    assert small_dataset(**change).fingerprint != small_dataset().fingerprint


@given(st.dictionaries(st.text(), st.text()), st.dictionaries(st.text(), st.text()))
def test_fingerprints_are_equal_exactly_when_items_are(left, right):
    equal_fingerprints = Dataset("a", left, {}, {}).fingerprint == Dataset("a", right, {}, {}).fingerprint
    assert equal_fingerprints == (left == right)


def test_the_fingerprint_is_the_same_in_every_version():
    assert (
        small_dataset().fingerprint
        == hashlib.sha256(
            b'["items", "d1", "rain"]\n["items", "d2", "snow"]\n'
            b'["units", "q1", "wet?"]\n["units", "q2", "cold?"]\n'
            b'["truth", "q1", {"d1": 1.0, "d2": 0.5}]\n["truth", "q2", {"d2": 1.0}]\n'
            b'["slices", "q1", {"language": "en", "length": 4}]\n["splits", "test", ["q1", "q2"]]\n'
        ).hexdigest()
    )


def test_datasets_can_be_pickled():
    unpickled = pickle.loads(pickle.dumps(small_dataset()))
    assert unpickled == small_dataset()
    assert unpickled.slices["q1"]["language"] == "en"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"truth": {"q1": {"d9": 1, "d8": 1}}}, "the truth of tiny names 2 items that are not there: d9, d8"),
        ({"truth": {"q9": {"d1": 1}}}, "the truth of tiny names 1 units that are not there: q9"),
        ({"truth": {f"x{i}": {} for i in range(9)}}, r"names 9 units that are not there: x0, x1, x2, \.\.\."),
        ({"slices": {"q9": {}}}, "the slices of tiny"),
        ({"splits": {"dev": ["q9"]}}, "the split dev of tiny names 1 units"),
        ({"items": {"d1": None, "d2": "x"}}, "the items of tiny map 'd1' to None"),
        ({"slices": {"q1": {"when": object()}}}, "the slices of tiny give unit q1"),
    ],
)
def test_inconsistent_content_raises_input_error(change, message):
    with pytest.raises(InputError, match=message):
        small_dataset(**change)


@pytest.mark.parametrize("gain", [float("nan"), float("inf"), "high", None, True])
def test_invalid_gains_raise_not_finite_error(gain):
    with pytest.raises(NotFiniteError, match="d1"):
        small_dataset(truth={"q1": {"d1": gain}})


def test_repeated_units_in_a_split_raise_duplicate_error():
    with pytest.raises(DuplicateError, match="unit q1"):
        small_dataset(splits={"test": ["q1", "q1"]})


def test_select_keeps_the_content_of_its_units():
    selection = small_dataset().select(["q2"])
    assert list(selection.units) == ["q2"]
    assert dict(selection.truth["q2"]) == {"d2": 1}
    assert selection.items == small_dataset().items
    assert (dict(selection.slices), dict(selection.splits)) == ({}, {"test": ("q2",)})
    assert list(small_dataset().select(["q2", "q1"]).units) == ["q2", "q1"]
    assert small_dataset().select(["q2", "q1"]).fingerprint == small_dataset().fingerprint


def test_selecting_unknown_or_repeated_units_raises_errors():
    with pytest.raises(UnknownNameError, match="'q3'"):
        small_dataset().select(["q3"])
    with pytest.raises(DuplicateError):
        small_dataset().select(["q1", "q1"])


def test_the_fingerprint_of_a_file_is_the_hash_of_its_bytes(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    assert file_sha256(tmp_path / "a") == hashlib.sha256(b"abc").hexdigest()
    with pytest.raises(InputError):
        file_sha256(tmp_path / "b")
    with pytest.raises(InputError):
        file_sha256(tmp_path)


@pytest.fixture
def beir(tmp_path):
    folder = tmp_path / "scifact"
    (folder / "qrels").mkdir(parents=True)
    corpus = [{"_id": "d1", "title": "Rain", "text": "falls"}, {"_id": "d2", "title": "", "text": "snow"}]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, corpus)))
    queries = [{"_id": f"q{i}", "text": f"text {i}"} for i in range(1, 4)]
    (folder / "queries.jsonl.gz").write_bytes(gzip.compress("\n".join(map(json.dumps, queries)).encode()))
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\t2\n")
    (folder / "qrels" / "train.tsv").write_text("query-id\tcorpus-id\tscore\nq2\td2\t1\n")
    return folder


def test_beir_folders_are_read_with_all_splits(beir):
    data = Dataset.from_beir(beir)
    assert data.name == "scifact"
    assert dict(data.items) == {"d1": "Rain falls", "d2": "snow"}
    assert dict(data.units) == {"q1": "text 1", "q2": "text 2"}
    assert dict(data.splits) == {"test": ("q1",), "train": ("q2",)}
    assert dict(Dataset.from_beir(beir, split="test").truth["q1"]) == {"d1": 1, "d2": 2}
    assert list(Dataset.from_beir(beir, split="test", name="x").units) == ["q1"]


def test_invalid_beir_folders_raise_errors(beir, tmp_path):
    with pytest.raises(UnknownNameError) as name_error:
        Dataset.from_beir(beir, split="tets")
    assert name_error.value.hint == "did you mean test?"
    with pytest.raises(InputError):
        Dataset.from_beir(tmp_path / "none")
    (beir / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    with pytest.raises(DuplicateError, match="query q1"):
        Dataset.from_beir(beir)
    (beir / "corpus.jsonl").write_text('{"_id": "d1", "text": "a"}\n{"_id": "d1", "text": "b"}')
    with pytest.raises(DuplicateError, match=r"d1.*lines 1 and 2"):
        Dataset.from_beir(beir, split="test")
    (beir / "corpus.jsonl").write_text('{"_id": "d1", "text": "a"}')
    with pytest.raises(InputError, match="d2"):
        Dataset.from_beir(beir, split="test")
    for path in (beir / "qrels").iterdir():
        path.unlink()
    with pytest.raises(FormatError):
        Dataset.from_beir(beir)
