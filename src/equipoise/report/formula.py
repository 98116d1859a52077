"""Formulas in LaTeX as a terminal can show them."""

from __future__ import annotations

import re

_WORDS = {
    r"\,": " ",
    r"\|": "|",
    r"\le": "<=",
    r"\ge": ">=",
    r"\in": "in",
}
_GROUP = r"\{([^{}]*)\}"
_CHOOSE = re.compile(rf"\\binom\s*{_GROUP}\s*{_GROUP}")
_FRACTION = re.compile(rf"\\frac\s*{_GROUP}\s*{_GROUP}")
_WRAPPED = re.compile(rf"\\(?P<name>mathrm|text|sqrt)\s*{_GROUP}")
_ACCENTED = re.compile(r"\\(hat|bar)\s+(\w)")
_SCRIPT = re.compile(rf"([_^]){_GROUP}")
_COMMAND = re.compile(r"\\(?:[A-Za-z]+|[^A-Za-z])")


def readable(formula: str) -> str:
    r"""The formula in plain text; one that is plain already stays as it is.

    >>> readable(r"\sqrt{\frac{1}{n} \sum_i (p_i - e_i)^2}")
    'sqrt((1 / n) sum_i (p_i - e_i)^2)'
    """
    if "\\" not in formula:
        return formula
    text = _ACCENTED.sub(r"\1(\2)", formula)
    before = None
    while text != before:  # the innermost groups first, until none is left
        before = text
        text = _SCRIPT.sub(lambda found: found[1] + _bracketed(found[2]), text)
        text = _WRAPPED.sub(lambda found: f"sqrt({found[2]})" if found["name"] == "sqrt" else found[2], text)
        text = _CHOOSE.sub(r"choose(\1, \2)", text)
        text = _FRACTION.sub(lambda found: f"({_bracketed(found[1])} / {_bracketed(found[2])})", text)
    text = _COMMAND.sub(lambda found: _WORDS.get(found[0], found[0][1:]), text)
    return " ".join(text.split())


def _bracketed(part: str) -> str:
    """The part, in brackets unless it is a single thing."""
    return f"({part})" if re.search(r"[\s+*/-]", part.strip()) else part
