"""Vector files: written vectors are read without loss."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from equipoise.domains.accounts.vectors import NodeVectors, read_node_vectors
from equipoise.errors import FormatError, InputError, ShapeError

POINTS = np.array([[1.0, 0.1], [-1e-300, 1 / 3], [np.pi, 1e200]])
VECTORS = NodeVectors(("1", "2", "3"), ("Cash", 'Say "hi", all', "Größe"), POINTS, "euclidean", {"seed": 3}, (2.0, 1.0))


@pytest.mark.parametrize("suffix", ["csv", "npz"])
def test_written_vectors_are_read_exactly(tmp_path: Path, suffix: str) -> None:
    VECTORS.write(tmp_path / f"vectors.{suffix}")
    vectors = read_node_vectors(tmp_path / f"vectors.{suffix}")
    assert (vectors.ids, vectors.names, vectors.geometry) == (VECTORS.ids, VECTORS.names, "euclidean")
    np.testing.assert_array_equal(vectors.vectors, POINTS)


def test_npz_files_have_geometry_settings_and_history(tmp_path: Path) -> None:
    written = NodeVectors(
        ("a",), ("A",), np.array([[1.0, 0.0]]), "lorentz", {"seed": 3, "objective": "depth"}, (2.0, 1.0)
    )
    written.write(tmp_path / "v.npz")
    vectors = read_node_vectors(tmp_path / "v.npz")
    assert (vectors.geometry, vectors.dim, dict(vectors.settings), vectors.history) == (
        "lorentz",
        1,
        {"seed": 3, "objective": "depth"},
        (2.0, 1.0),
    )


def test_the_geometry_of_a_csv_file_is_an_option(tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text("id,x0,x1\n7,0.5,0.25\n")
    vectors = read_node_vectors(tmp_path / "v.csv", "poincare")
    assert (vectors.ids, vectors.names, vectors.geometry) == (("7",), ("7",), "poincare")


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("id,name,x0\n1,a,0.5\n2,b,much\n", "line 3 .*'much'.*x0"),
        ("id,name\n1,a\n", "columns"),
        ("id,name,x0\n", "header"),
    ],
)
def test_a_csv_file_without_vectors_is_an_error(tmp_path: Path, text: str, pattern: str) -> None:
    (tmp_path / "v.csv").write_text(text)
    with pytest.raises(InputError, match=pattern):
        read_node_vectors(tmp_path / "v.csv")


def test_an_invalid_npz_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "v.npz").write_bytes(b"no archive")
    with pytest.raises(FormatError):
        read_node_vectors(tmp_path / "v.npz")
    with pytest.raises(InputError):
        read_node_vectors(tmp_path / "absent.npz")
    np.savez(tmp_path / "other.npz", weights=POINTS)
    with pytest.raises(FormatError):
        read_node_vectors(tmp_path / "other.npz")


def test_ids_and_rows_must_have_equal_lengths() -> None:
    with pytest.raises(ShapeError, match="2 ids, 1"):
        NodeVectors(("a", "b"), ("a",), POINTS, "euclidean")
