"""Datasets: checked, immutable, and known by their content."""

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


def tiny(**changes) -> Dataset:
    parts = {
        "name": "tiny",
        "items": {"d1": "rain", "d2": "snow"},
        "units": {"q1": "wet?", "q2": "cold?"},
        "truth": {"q1": {"d1": 1, "d2": 0.5}, "q2": {"d2": 1}},
        "slices": {"q1": {"language": "en", "length": 4}},
        "splits": {"test": ["q1", "q2"]},
    }
    return Dataset(**{**parts, **changes})


def test_nothing_in_a_dataset_can_be_changed():
    source = {"d1": "rain", "d2": "snow"}
    data = tiny(items=source)
    source["d1"] = "hail"
    assert data.items["d1"] == "rain"
    with pytest.raises(TypeError):
        data.items["d1"] = "hail"
    with pytest.raises(TypeError):
        data.truth["q1"]["d1"] = 3
    with pytest.raises(FrozenInstanceError):
        data.items = {}
    assert data.splits["test"] == ("q1", "q2")


def test_the_fingerprint_ignores_order_name_and_the_spelling_of_gains():
    turned = tiny(
        name="other",
        items={"d2": "snow", "d1": "rain"},
        units={"q2": "cold?", "q1": "wet?"},
        truth={"q2": {"d2": 1.0}, "q1": {"d2": 0.5, "d1": 1.0}},
        slices={"q1": {"length": 4, "language": "en"}},
        splits={"test": ["q2", "q1"]},
    )
    assert turned.fingerprint == tiny().fingerprint
    assert len(tiny().fingerprint) == 64
    assert turned != tiny()
    assert replace(turned, name="tiny") == tiny()
    assert hash(replace(turned, name="tiny")) == hash(tiny())


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
    assert tiny(**change).fingerprint != tiny().fingerprint


@given(st.dictionaries(st.text(), st.text()), st.dictionaries(st.text(), st.text()))
def test_fingerprints_are_equal_exactly_when_items_are(left, right):
    same = Dataset("a", left, {}, {}).fingerprint == Dataset("a", right, {}, {}).fingerprint
    assert same == (left == right)


def test_the_fingerprint_is_the_same_in_every_version():
    assert (
        tiny().fingerprint
        == hashlib.sha256(
            b'["items", "d1", "rain"]\n["items", "d2", "snow"]\n'
            b'["units", "q1", "wet?"]\n["units", "q2", "cold?"]\n'
            b'["truth", "q1", {"d1": 1.0, "d2": 0.5}]\n["truth", "q2", {"d2": 1.0}]\n'
            b'["slices", "q1", {"language": "en", "length": 4}]\n["splits", "test", ["q1", "q2"]]\n'
        ).hexdigest()
    )


def test_a_dataset_crosses_process_borders():
    again = pickle.loads(pickle.dumps(tiny()))
    assert again == tiny()
    assert again.slices["q1"]["language"] == "en"


@pytest.mark.parametrize(
    ("change", "words"),
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
def test_content_that_does_not_fit_together_is_refused(change, words):
    with pytest.raises(InputError, match=words):
        tiny(**change)


@pytest.mark.parametrize("gain", [float("nan"), float("inf"), "high", None, True])
def test_a_gain_is_a_finite_number(gain):
    with pytest.raises(NotFiniteError, match="d1"):
        tiny(truth={"q1": {"d1": gain}})


def test_a_unit_twice_in_a_split_is_refused():
    with pytest.raises(DuplicateError, match="unit q1"):
        tiny(splits={"test": ["q1", "q1"]})


def test_a_selection_keeps_what_belongs_to_its_units():
    chosen = tiny().select(["q2"])
    assert list(chosen.units) == ["q2"]
    assert dict(chosen.truth["q2"]) == {"d2": 1}
    assert chosen.items == tiny().items
    assert (dict(chosen.slices), dict(chosen.splits)) == ({}, {"test": ("q2",)})
    assert list(tiny().select(["q2", "q1"]).units) == ["q2", "q1"]
    assert tiny().select(["q2", "q1"]).fingerprint == tiny().fingerprint


def test_a_selection_of_unknown_or_repeated_units_is_refused():
    with pytest.raises(UnknownNameError, match="is called 'q3'"):
        tiny().select(["q3"])
    with pytest.raises(DuplicateError):
        tiny().select(["q1", "q1"])


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


def test_a_beir_folder_is_read_with_all_its_splits(beir):
    data = Dataset.from_beir(beir)
    assert data.name == "scifact"
    assert dict(data.items) == {"d1": "Rain falls", "d2": "snow"}
    assert dict(data.units) == {"q1": "text 1", "q2": "text 2"}
    assert dict(data.splits) == {"test": ("q1",), "train": ("q2",)}
    assert dict(Dataset.from_beir(beir, split="test").truth["q1"]) == {"d1": 1, "d2": 2}
    assert list(Dataset.from_beir(beir, split="test", name="x").units) == ["q1"]


def test_a_beir_folder_with_faults_is_explained(beir, tmp_path):
    with pytest.raises(UnknownNameError) as unknown:
        Dataset.from_beir(beir, split="tets")
    assert unknown.value.hint == "did you mean test?"
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
