"""Patterns over other people's text take linear time: on these inputs anything else would not end."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from equipoise.domains.phenotypes.ontology import load_ontology
from equipoise.errors import EquipoiseError
from equipoise.io.json import parse_json
from equipoise.io.published import read_file
from equipoise.io.text import NumberSyntaxError, TextFile, parse_number

LONG = 300_000


def test_a_long_row_of_digits_that_is_no_number_is_refused_at_once() -> None:
    with pytest.raises(NumberSyntaxError):
        parse_number("0" * LONG + "!")


@pytest.mark.slow
def test_a_long_id_that_is_none_is_unknown_at_once() -> None:
    ontology = load_ontology()
    with pytest.raises(EquipoiseError):
        ontology.resolve("HP:" + "0" * LONG + "!")


@pytest.mark.parametrize("start", ['{"a": NaN, ', '{"a": 1, "a": 2}'])
def test_open_strings_after_a_fault_are_scanned_once(start: str) -> None:
    with pytest.raises(EquipoiseError):
        parse_json(TextFile("a.json", (start + '\\"' * LONG).encode()))


@pytest.mark.parametrize("suffix", [".md", ".txt", ".csv", ".tex"])
@pytest.mark.parametrize("unit", [" ", "| ", "- ", "0", "a "])
def test_a_very_long_line_of_a_published_table_is_cut(tmp_path: Path, suffix: str, unit: str) -> None:
    file = tmp_path / f"a{suffix}"
    file.write_text("x" + unit * LONG + "!\n")
    with suppress(EquipoiseError):
        read_file(file, lambda label: False)
