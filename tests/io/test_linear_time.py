"""Regular expressions on long inputs take linear time."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from equipoise.domains.phenotypes.ontology import load_ontology
from equipoise.errors import EquipoiseError
from equipoise.io.json import parse_json
from equipoise.io.published import read_file
from equipoise.io.text import TextFile, parse_number

LENGTH = 300_000


def test_long_invalid_numbers_raise_in_linear_time() -> None:
    with pytest.raises(ValueError, match="not a number"):
        parse_number("0" * LENGTH + "!")


@pytest.mark.slow
def test_long_invalid_ids_raise_in_linear_time() -> None:
    ontology = load_ontology()
    with pytest.raises(EquipoiseError):
        ontology.resolve("HP:" + "0" * LENGTH + "!")


@pytest.mark.parametrize("start", ['{"a": NaN, ', '{"a": 1, "a": 2}'])
def test_unterminated_strings_raise_in_linear_time(start: str) -> None:
    with pytest.raises(EquipoiseError):
        parse_json(TextFile("a.json", (start + '\\"' * LENGTH).encode()))


@pytest.mark.parametrize("suffix", [".md", ".txt", ".csv", ".tex"])
@pytest.mark.parametrize("repeated_text", [" ", "| ", "- ", "0", "a "])
def test_long_lines_of_published_tables_are_read_in_linear_time(
    tmp_path: Path, suffix: str, repeated_text: str
) -> None:
    file = tmp_path / f"a{suffix}"
    file.write_text("x" + repeated_text * LENGTH + "!\n")
    with suppress(EquipoiseError):
        read_file(file, lambda label: False)
