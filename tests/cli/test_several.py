"""Options with several values after their name."""

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
    """Print what was understood."""
    click.echo(repr(values))


def understood(*words: str) -> dict[str, Any]:
    done = CliRunner().invoke(command, list(words), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return eval(done.output)


def test_an_option_takes_the_words_up_to_the_next_option() -> None:
    found = understood("--models", "bm25", "hash", "use", "--json", "--sizes", "1", "2")
    assert found == {"models": ("bm25", "hash", "use"), "sizes": (1, 2), "words": (), "json": True}


def test_an_option_may_be_repeated_and_glued_to_its_first_value() -> None:
    assert understood("-m", "bm25", "--models=hash", "use")["models"] == ("bm25", "hash", "use")


def test_numbers_may_stand_in_a_list_with_commas_and_other_values_keep_theirs() -> None:
    found = understood("-m", "bm25", "--sizes", "1,2", "3", "--words", "minilm,dim=8", "a,b")
    assert found["sizes"] == (1, 2, 3)
    assert found["words"] == ("minilm,dim=8", "a,b")


def test_the_default_stands_where_the_option_is_left_out() -> None:
    assert understood("-m", "bm25")["sizes"] == (7, 8)


def test_a_dash_alone_is_a_value() -> None:
    assert understood("-m", "bm25", "--words", "-", "b")["words"] == ("-", "b")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--models"], "requires an argument"),
        (["--models", "bm25", "--sizes", "x"], "not a valid integer"),
        (["--models", "nothing"], "'nothing' is not one of"),
        (["--sizes", "1"], "Missing option"),
        (["-m", "bm25", "--", "hash"], "unexpected extra argument"),
    ],
)
def test_a_mistake_is_told_as_click_tells_it(words: list[str], told: str) -> None:
    done = CliRunner().invoke(command, words)
    assert done.exit_code == 2
    assert told in done.output


@given(st.lists(WORD, min_size=1, max_size=5), st.lists(st.integers(0, 99), min_size=1, max_size=5))
def test_every_word_arrives_in_order(words: list[str], sizes: list[int]) -> None:
    found = understood("--words", *words, "-m", "bm25", "--sizes", *map(str, sizes))
    assert found["words"] == tuple(words)
    assert found["sizes"] == tuple(sizes)


@pytest.mark.parametrize("before", [["--models"], ["--models", "bm25"], ["--json", "-m", "bm25", "hash"]])
def test_every_value_of_the_option_is_completed(before: list[str]) -> None:
    shell = BashComplete(command, {}, "command", "_COMMAND_COMPLETE")
    assert [item.value for item in shell.get_completions(before, "u")] == ["use"]


def test_options_are_completed_after_several_values() -> None:
    shell = BashComplete(command, {}, "command", "_COMMAND_COMPLETE")
    assert [item.value for item in shell.get_completions(["--models", "bm25", "hash"], "--s")] == ["--sizes"]
