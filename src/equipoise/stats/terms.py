"""Equal terms: what results say of how they were measured, and when that forbids to compare them.

Unit ids alone do not make units the same: ``q1`` of another fixture is another question. Results that know
more say it in their settings, under the names below, and what they do not say is not held against them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from equipoise.errors import PairingError
from equipoise.stats.result import Result

DATA = "data"
"""What was measured on: the SHA-256 of each part, by its name."""

MATCHER = "matcher"
"""The rule by which a unit counts as right."""

TRIALS = "configurations"
"""How many configurations were tried before one was reported."""

GRID = "grid"
"""Over which values each parameter was tuned."""

BUDGET = "budget"
"""What a configuration might cost at most in order to be chosen; None where any might be."""

SPENT = "retrieved_tokens"
"""What the configuration that was chosen costs a unit."""

FOLDS = "folds"
"""In how many parts the units were cut, to choose on some and score on others; 1 is no nesting."""

TOKENIZER = "tokenizer"
"""What a token is, in sizes, costs and budgets."""

SPEC = "model"
"""The spec of the model that was measured."""

WINDOW = "window"
"""How many tokens the model reads of a text, how many texts it was given, and how many it truncated."""

NOTES = "notes"
"""What to know about how the measurement was made, in sentences."""

_DIGITS = 12


def refuse_unlike(results: Sequence[Result]) -> None:
    """Refuse results of one unit's name that are not of one unit: other data, or another rule.

    >>> from equipoise.stats.tabled import result_of_values
    >>> one, other = (result_of_values(name, ["q1", "q2"], {"HR": [1, 0]}, settings={"matcher": rule})
    ...               for name, rule in (("a", "words"), ("b", "source")))
    >>> refuse_unlike([one, other])
    Traceback (most recent call last):
    equipoise.errors.PairingError: a was measured with the matcher words and b with source
    """
    first, rule = _first_known(results, MATCHER)
    for other in results:
        found = other.settings.get(MATCHER)
        if first is not None and found is not None and found != rule:
            raise PairingError(
                f"{first.system} was measured with the matcher {rule} and {other.system} with {found}",
                hint="measure both with one rule, and compare those runs",
            )
    for part in dict.fromkeys(part for result in results for part in _data(result)):
        known = [(result, _data(result)[part]) for result in results if part in _data(result)]
        for other, digest in known[1:]:
            if digest != known[0][1]:
                raise _other_data(part, known[0], (other, digest))


def _first_known(results: Sequence[Result], name: str) -> tuple[Result | None, Any]:
    for result in results:
        if result.settings.get(name) is not None:
            return result, result.settings[name]
    return None, None


def _data(result: Result) -> Mapping[str, Any]:
    found = result.settings.get(DATA)
    return found if isinstance(found, Mapping) else {}


def _other_data(part: str, one: tuple[Result, Any], other: tuple[Result, Any]) -> PairingError:
    shown = "\n".join(
        f"{part} of {result.system}: {str(digest)[:_DIGITS]}" for result, digest in (one, other)
    )
    return PairingError(
        f"{one[0].system} and {other[0].system} were not measured on the same {part}, "
        "though their units have the same names",
        hint="run both on the same data, and compare those runs",
        excerpt=shown,
    )
