"""Options with several values after one name."""

from __future__ import annotations

from typing import Any

import click
import pytest
from click.shell_completion import BashComplete
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from equipoise.cli.options import MultiValueOption, SectionedCommand

WORD = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=6)


@click.command(cls=SectionedCommand)
@click.option("--models", "-m", cls=MultiValueOption, type=click.Choice(["bm25", "hash", "use"]), required=True)
@click.option("--sizes", cls=MultiValueOption, commas=True, type=int, default=(7, 8))
@click.option("--words", cls=MultiValueOption)
@click.option("--json", is_flag=True)
def command(**values: Any) -> None:
    """Print the parsed values."""
    click.echo(repr(values))


def parse(*arguments: str) -> dict[str, Any]:
    result = CliRunner().invoke(command, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return eval(result.output)


def test_an_option_takes_values_up_to_the_next_option() -> None:
    parsed = parse("--models", "bm25", "hash", "use", "--json", "--sizes", "1", "2")
    assert parsed == {"models": ("bm25", "hash", "use"), "sizes": (1, 2), "words": (), "json": True}


def test_an_option_may_be_repeated_or_joined_with_its_first_value() -> None:
    assert parse("-m", "bm25", "--models=hash", "use")["models"] == ("bm25", "hash", "use")


def test_numbers_are_split_at_commas_and_other_values_are_not() -> None:
    parsed = parse("-m", "bm25", "--sizes", "1,2", "3", "--words", "minilm,dim=8", "a,b")
    assert parsed["sizes"] == (1, 2, 3)
    assert parsed["words"] == ("minilm,dim=8", "a,b")


def test_the_default_is_used_without_the_option() -> None:
    assert parse("-m", "bm25")["sizes"] == (7, 8)


def test_a_dash_alone_is_a_value() -> None:
    assert parse("-m", "bm25", "--words", "-", "b")["words"] == ("-", "b")


@pytest.mark.parametrize(
    ("arguments", "expected_text"),
    [
        (["--models"], "requires an argument"),
        (["--models", "bm25", "--sizes", "x"], "not a valid integer"),
        (["--models", "nothing"], "'nothing' is not one of"),
        (["--sizes", "1"], "Missing option"),
        (["-m", "bm25", "--", "hash"], "unexpected extra argument"),
    ],
)
def test_usage_errors_have_the_messages_of_click(arguments: list[str], expected_text: str) -> None:
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 2
    assert expected_text in result.output


@given(st.lists(WORD, min_size=1, max_size=5), st.lists(st.integers(0, 99), min_size=1, max_size=5))
def test_values_are_parsed_in_order(words: list[str], sizes: list[int]) -> None:
    parsed = parse("--words", *words, "-m", "bm25", "--sizes", *map(str, sizes))
    assert parsed["words"] == tuple(words)
    assert parsed["sizes"] == tuple(sizes)


@pytest.mark.parametrize("preceding", [["--models"], ["--models", "bm25"], ["--json", "-m", "bm25", "hash"]])
def test_every_value_of_the_option_is_completed(preceding: list[str]) -> None:
    shell = BashComplete(command, {}, "command", "_COMMAND_COMPLETE")
    assert [item.value for item in shell.get_completions(preceding, "u")] == ["use"]


def test_options_are_completed_after_several_values() -> None:
    shell = BashComplete(command, {}, "command", "_COMMAND_COMPLETE")
    assert [item.value for item in shell.get_completions(["--models", "bm25", "hash"], "--s")] == ["--sizes"]
