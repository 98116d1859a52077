"""Vectors on disk: what is written is read back, digit by digit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from equipoise.domains.accounts.vectors import NodeVectors, read_node_vectors
from equipoise.errors import FormatError, InputError, ShapeError

POINTS = np.array([[1.0, 0.1], [-1e-300, 1 / 3], [np.pi, 1e200]])
MADE = NodeVectors(("1", "2", "3"), ("Cash", 'Say "hi", all', "Größe"), POINTS, "euclidean", {"seed": 3}, (2.0, 1.0))


@pytest.mark.parametrize("ending", ["csv", "npz"])
def test_what_is_written_is_read_back_to_the_last_digit(tmp_path: Path, ending: str) -> None:
    MADE.write(tmp_path / f"vectors.{ending}")
    found = read_node_vectors(tmp_path / f"vectors.{ending}")
    assert (found.ids, found.names, found.geometry) == (MADE.ids, MADE.names, "euclidean")
    np.testing.assert_array_equal(found.vectors, POINTS)


def test_npz_keeps_geometry_settings_and_history(tmp_path: Path) -> None:
    made = NodeVectors(("a",), ("A",), np.array([[1.0, 0.0]]), "lorentz", {"seed": 3, "aim": "depth"}, (2.0, 1.0))
    made.write(tmp_path / "v.npz")
    found = read_node_vectors(tmp_path / "v.npz")
    assert (found.geometry, found.dim, dict(found.settings), found.history) == (
        "lorentz",
        1,
        {"seed": 3, "aim": "depth"},
        (2.0, 1.0),
    )


def test_a_csv_takes_the_geometry_it_is_given(tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text("id,x0,x1\n7,0.5,0.25\n")
    found = read_node_vectors(tmp_path / "v.csv", "poincare")
    assert (found.ids, found.names, found.geometry) == (("7",), ("7",), "poincare")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("id,name,x0\n1,a,0.5\n2,b,much\n", "line 3 has 'much' under x0, which is not a number"),
        ("id,name\n1,a\n", "has no columns of numbers"),
        ("id,name,x0\n", "has a header and no rows"),
    ],
)
def test_a_csv_without_vectors_is_explained(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "v.csv").write_text(text)
    with pytest.raises(InputError, match=sentence):
        read_node_vectors(tmp_path / "v.csv")


def test_an_npz_that_is_none_is_explained(tmp_path: Path) -> None:
    (tmp_path / "v.npz").write_bytes(b"no archive")
    with pytest.raises(FormatError):
        read_node_vectors(tmp_path / "v.npz")
    with pytest.raises(InputError):
        read_node_vectors(tmp_path / "absent.npz")
    np.savez(tmp_path / "other.npz", weights=POINTS)
    with pytest.raises(FormatError):
        read_node_vectors(tmp_path / "other.npz")


def test_ids_and_rows_must_be_as_many() -> None:
    with pytest.raises(ShapeError, match="2 ids, 1"):
        NodeVectors(("a", "b"), ("a",), POINTS, "euclidean")
