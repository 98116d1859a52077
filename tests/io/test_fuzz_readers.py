"""Mutated samples of every format give a value or an EquipoiseError in every reader.

By default a few cases per reader; HYPOTHESIS_PROFILE=thorough runs 20,000 in all.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fuzz_readers import run_case, targets

N_CASES = 20_000 if os.environ.get("HYPOTHESIS_PROFILE") == "thorough" else 400
TARGETS = targets()
WITHOUT_TEXT = ("a.pdf",)
"""Valid samples without text."""


@pytest.mark.parametrize("index", range(len(TARGETS)), ids=[target.name for target in TARGETS])
def test_mutated_samples_give_a_value_or_an_equipoise_error(tmp_path: Path, index: int) -> None:
    cases = range(index, N_CASES + index, len(TARGETS))
    assert list(filter(None, (run_case(number, tmp_path) for number in cases))) == []


@pytest.mark.parametrize("index", range(len(TARGETS)), ids=[target.name for target in TARGETS])
def test_unchanged_samples_are_read(tmp_path: Path, index: int) -> None:
    target = TARGETS[index]
    if target.name in WITHOUT_TEXT:
        pytest.skip("the sample has no text")
    for name, data in target.files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    target.read(tmp_path / target.entry)


# Inputs that once raised other exceptions: (target, bytes)
@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("books.db", b"SQLite format 3\0" + bytes(range(256)) * 20),
        ("books2.gnucash", b"SQLite format 3\0garbage"),
        ("accounts.db", b"SQLite format 3\0" + b"\xff" * 4096),
        ("top.jsonl", b'{"id": "u1", "predictions": [1], "target": 1}\n{"predictions": [2], "target": 1}\n'),
        ("a.html", b"<meta charset=punycode><p>text \xff"),
        ("a.html", b"<meta charset=idna><p>text \xff"),
        ("a.html", b"<meta charset=undefined><p>text"),
    ],
)
def test_known_invalid_inputs_raise_equipoise_error(tmp_path: Path, name: str, data: bytes) -> None:
    from equipoise.errors import EquipoiseError

    target = next(target for target in TARGETS if target.name == name)
    (tmp_path / name).write_bytes(data)
    with pytest.raises(EquipoiseError) as error:
        target.read(tmp_path / name)
    assert error.value.exit_code == 2
