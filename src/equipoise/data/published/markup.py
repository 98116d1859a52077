r"""Cells without their dress: ``\textbf{93.4}$^{*}$`` and ``**93.4**<sup>a</sup>`` are 93.4."""

from __future__ import annotations

import re

_RAISED = re.compile(
    r"<su[pb]>.*?</su[pb]>"
    r"|\\text(?:super|sub)script\s*\{[^{}]*\}"
    r"|\$\s*[\^_]\s*(?:\{[^{}]*\}|\S)\s*\$"
    r"|\^\s*\{[^{}]*\}|\^[*†‡a-z]"
)
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
_SWITCH = re.compile(
    r"\\(?:bf|bfseries|it|itshape|em|scriptsize|footnotesize|small|tiny|centering|rm|tt|sc)\b\s*"
)
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


def plain(text: str) -> str:
    r"""The words and numbers of a cell, without what only sets them off.

    >>> plain(r"\textbf{93.45}$^{*}$ {\scriptsize $\pm$ 0.2}"), plain("**95.7%**<sup>a</sup>")
    ('93.45 ± 0.2', '95.7%')
    """
    if not _DRESSED.search(text):
        return " ".join(text.split())
    text = _COLOUR.sub("", _RAISED.sub("", text))
    for sign, meant in _SIGNS:
        text = text.replace(sign, meant)
    text = _SWITCH.sub("", text)
    while (bare := _WRAPPED.sub(r"\1", text)) != text:
        text = bare
    text = _TAG.sub("", text).replace("$", "") if "\\$" not in text else text
    text = _EMPHASIS.sub("", _hidden(text))
    return " ".join(_ARROWS.sub("", text).replace("{", "").replace("}", "").replace("\0", "").split())


def _hidden(text: str) -> str:
    """Escaped signs as themselves; a star or bar that was escaped is no emphasis."""
    return _ESCAPED.sub(lambda match: f"\0{match[1]}", text)
