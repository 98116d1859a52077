"""Printed numbers: the exact value is known only up to rounding."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite

# Removal of markup from cells: ``\textbf{93.4}$^{*}$`` and ``**93.4**<sup>a</sup>`` are 93.4.

_RAISED = re.compile(
    r"<su[pb]>.*?</su[pb]>"
    r"|\\text(?:super|sub)script\s*\{[^{}]*\}"
    r"|\$\s*[\^_]\s*(?:\{[^{}]*\}|\S)\s*\$"
    r"|\^\s*\{[^{}]*\}|\^[*†‡a-z]"
)
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
_SWITCH = re.compile(r"\\(?:bf|bfseries|it|itshape|em|scriptsize|footnotesize|small|tiny|centering|rm|tt|sc)\b\s*")
_WRAPPED = re.compile(
    r"\\(?:textbf|textit|emph|underline|uline|mathbf|boldsymbol|mathrm|text|textrm|texttt|textsc|"
    r"makecell|mbox|num|SI|shortstack|ensuremath)\s*(?:\[[^\]]*\])?\s*\{([^{}]*)\}"
)
_COLOUR = re.compile(r"\\(?:cellcolor|rowcolor|textcolor|color)\s*(?:\[[^\]]*\])?\s*\{[^{}]*\}")
_SIGNS = (
    ("\\pm", "±"),
    ("\\approx", "≈"),
    ("\\sim", "~"),
    ("\\leq", "<="),
    ("\\geq", ">="),
    ("\\rho", "rho"),
    ("\\uparrow", ""),
    ("\\downarrow", ""),
    ("\\quad", " "),
    ("\\,", " "),
    ("\\;", " "),
    ("\\ ", " "),
)
_ESCAPED = re.compile(r"\\([%&_#$\[\]|*`<>{}~!^:.()+-])")
_EMPHASIS = re.compile(r"(?<!\0)(?:\*\*|__|~~|`|(?<![\w*])\*(?=\S)|(?<=\S)\*(?![\w*]))")
_DRESSED = re.compile(r"[\\<$*_~`^{}\u2190-\u21ff\u25b2\u25bc\u2b06\u2b07]")
_ARROWS = re.compile("[↑↓⬆⬇▲▼]\ufe0f?")


def strip_markup(text: str) -> str:
    """The words and numbers of a cell, without what only sets them off."""
    if not _DRESSED.search(text):
        return " ".join(text.split())
    text = _COLOUR.sub("", _RAISED.sub("", text))
    for sign, replacement in _SIGNS:
        text = text.replace(sign, replacement)
    text = _SWITCH.sub("", text)
    while (bare := _WRAPPED.sub(r"\1", text)) != text:
        text = bare
    text = _TAG.sub("", text).replace("$", "") if "\\$" not in text else text
    text = _EMPHASIS.sub("", _unescape(text))
    return " ".join(_ARROWS.sub("", text).replace("{", "").replace("}", "").replace("\0", "").split())


def _unescape(text: str) -> str:
    """Escaped signs as themselves; an escaped star or bar is not emphasis."""
    return _ESCAPED.sub(lambda match: f"\0{match[1]}", text)


_NUMBER = r"[-+\u2212]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:[.,]\d+)?|\.\d+)(?:[eE][-+]?\d+)?"
_VALUE = re.compile(rf"(?P<about>[≈~]|about |ca\. )?\s*(?P<number>{_NUMBER})\s*(?P<percent>%)?")
_SPREAD = re.compile(rf"\s*\(?(?:±|\+/-|\+-)\s*(?P<number>{_NUMBER})\s*%?\)?")
_ENDS = re.compile(
    r"\s*(?:\(?\s*[\d.]+\s*%\s*CI:?\s*|CI:?\s*)?"
    rf"[\[(]\s*({_NUMBER})\s*(%?)\s*(?:,|;|–|—|-|\bto\b)\s*({_NUMBER})\s*(%?)\s*[\])]\)?",
    re.IGNORECASE,
)
_CHANGE = re.compile(rf"\s*[(\[](?=\s*[-+\u2212])\s*{_NUMBER}\s*%?\s*[)\]]")
"""A difference printed after a score, as in ``82.4 (+5.4)``."""
_PRESET_DIGITS = 5
"""Digits to which presets of libraries round before they report."""
_LARGEST_EXPONENT = 300
_MARKS = re.compile(r"[\s*†‡§¶,a-e¹²³⁴⁵ᵃᵇᶜ]*")
_THOUSANDS = re.compile(r"^[-+\u2212]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?$")


@dataclass(frozen=True, slots=True)
class PrintedNumber:
    """A printed number; the exact value is within ``half`` of it, half a unit of its last digit.

    ``text`` is the number alone. ``percent`` is whether it has a percent sign. ``spread`` is what
    follows a plus-minus sign, and ``ends`` are those of an interval in brackets.
    """

    text: str
    value: float
    half: float
    percent: bool = False
    spread: float | None = None
    ends: tuple[PrintedNumber, PrintedNumber] | None = None

    @property
    def low(self) -> float:
        """The smallest value that would be printed like this."""
        return self.value - self.half

    @property
    def high(self) -> float:
        """The largest value that would be printed like this."""
        return self.value + self.half


@lru_cache(maxsize=1 << 14)
def parse_printed(text: str) -> PrintedNumber | None:
    """The number in a cell, with its spread and its interval; None where the cell is something else.

    A bound such as ``<0.01`` is not a number, and neither is a range.
    """
    plain_text = strip_markup(text)
    match = _VALUE.match(plain_text)
    if match is None:
        return None
    value = _plain_number(match["number"])
    rest, spread, ends = plain_text[match.end() :], None, None
    if tail := _SPREAD.match(rest):
        spread, rest = _plain_number(tail["number"]).value, rest[tail.end() :]
    percent = bool(match["percent"]) or (spread is not None and "%" in plain_text[match.end() :])
    if tail := _ENDS.match(rest):
        ends = (_end(tail[1], tail[2], percent), _end(tail[3], tail[4], percent))
        rest = rest[tail.end() :]
    elif tail := _CHANGE.match(rest):
        rest = rest[tail.end() :]
    finite = all(map(isfinite, (value.value, spread or 0.0, *(end.value for end in ends or ()))))
    if not _MARKS.fullmatch(rest.removeprefix("%")) or not finite:
        return None
    # A number after "about" may be off by one unit of its last digit.
    half = value.half * 2 if match["about"] else value.half
    about, sign = match["about"] or "", "%" if match["percent"] else ""
    return PrintedNumber(f"{about}{value.text}{sign}", value.value, half, percent, spread, ends)


def as_exact(number: PrintedNumber) -> PrintedNumber:
    """The same number, known to its last digit: this program wrote it, rounded by a preset at most.

    >>> as_exact(parse_printed("0.3333333333333333")).half, as_exact(parse_printed("0.33333")).half
    (0.0, 5e-06)
    """
    ends = number.ends and (as_exact(number.ends[0]), as_exact(number.ends[1]))
    rounded = round(number.value, _PRESET_DIGITS) == number.value
    half = 0.5 * 10.0**-_PRESET_DIGITS if rounded else 0.0
    return PrintedNumber(number.text, number.value, half, number.percent, number.spread, ends)


def _end(number: str, sign: str, percent: bool) -> PrintedNumber:
    value = _plain_number(number)
    return PrintedNumber(value.text, value.value, value.half, percent or bool(sign))


def _plain_number(text: str) -> PrintedNumber:
    """Parse digits: thousands may be separated, and the decimal mark may be a comma."""
    digits = text.replace("\u2212", "-")
    digits = digits.replace(",", "") if _THOUSANDS.match(text) else digits.replace(",", ".")
    mantissa, _, exponent = digits.casefold().partition("e")
    decimals = len(mantissa.partition(".")[2])
    size = max(-_LARGEST_EXPONENT, min(int(exponent or 0) - decimals, _LARGEST_EXPONENT))
    return PrintedNumber(text, float(digits), 0.5 * 10.0**size)
