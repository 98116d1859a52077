"""Text that is safe to print and to write: secrets are redacted, control characters are shown as escapes.

Code that uses a key or a password calls ``note_secret`` with its value. From then on every error message and
every manifest of this process passes through ``redact``, which hides the value in each form that a server may
return: verbatim, percent-encoded, escaped for JSON or HTML, in base64 or hexadecimal, and shortened
(``sk-abc...wxyz``, or any 8 characters of it).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any

HIDDEN = "[hidden]"
SHORTEST = 4
"""Minimum length of a secret: shorter values are substrings of too many words."""

_GRAM = 8
"""Substrings of this length of a secret are hidden; a shorter secret is hidden completely."""
_ENDS = 4
"""Characters of a secret next to an ellipsis that are hidden."""
_NESTED = 3
"""Number of layers of escapes that are decoded."""

_ESCAPE = re.compile(
    r"%(?P<hex>[0-9A-Fa-f]{2})|\\u(?P<unicode>[0-9A-Fa-f]{4})|\\x(?P<byte>[0-9A-Fa-f]{2})"
    r"|\\(?P<itself>[\"'/\\])|(?P<html>&#?\w{2,8};)"
)
_ELLIPSIS = re.compile(r"\s?(?:\.{2,}|…|\*{2,}|•{2,}|#{2,}|[xX]{3,}|_{3,}|-{3,}|\[(?:\.\.\.|…)\]|<(?:\.\.\.|…)>)+\s?")
_OPTION = re.compile(
    r"([,?&][\w-]*(?:api_?key|token|secret|passw(?:or)?d|credentials?|authorization)=)(\"[^\"]*\"|[^,&\s]+)",
    re.IGNORECASE,
)
_USED: set[str] = set()


def note_secret(value: str | None) -> None:
    """Hide this value from now on, in every form."""
    for secret in ((value or ""), (value or "").strip()):
        if len(secret) >= SHORTEST:
            _USED.add(secret)


def note_options(spec: str) -> None:
    """Hide the values that a spec gives to options such as ``api_key=``, which are not accepted."""
    for match in _OPTION.finditer(spec):
        note_secret(match[2].strip('"'))


def hide_options(text: str) -> str:
    """A spec or an address without the values of options such as ``api_key=`` and ``?token=``.

    >>> hide_options("openai:m,dim=8,api_key=abc")
    'openai:m,dim=8,api_key=[hidden]'
    """
    return _OPTION.sub(rf"\1{HIDDEN}", text)


def redact(text: str, secrets: Collection[str] | None = None) -> str:
    """The text without the noted secrets, or without ``secrets``.

    >>> redact("the key c2VjcmV0LWtleS0xMjM0 (secret-k...1234) is wrong", ["secret-key-1234"])
    'the key [hidden] ([hidden]) is wrong'
    """
    secret_values = frozenset(_USED if secrets is None else secrets)
    if not secret_values or not text:
        return text
    spans: list[tuple[int, int]] = []
    plain, offsets = text, list(range(len(text) + 1))
    for _ in range(_NESTED + 1):
        spans += [(offsets[start], offsets[end]) for start, end in _secret_spans(plain, secret_values)]
        if _ESCAPE.search(plain) is None:
            break
        plain, offsets = _unescaped(plain, offsets)
    return _without(text, spans) if spans else text


def redact_all(value: Any) -> Any:
    """The same for every string in nested mappings and lists."""
    if not _USED:
        return value
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {redact(key) if isinstance(key, str) else key: redact_all(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [redact_all(item) for item in value]
    return value


def _secret_spans(text: str, secrets: frozenset[str]) -> list[tuple[int, int]]:
    """The spans of the text that contain a secret, a part of one, or the two ends of one."""
    spans: list[tuple[int, int]] = []
    grams, short_secrets = _substrings(secrets)
    # Letters that change their length with their case would shift the positions.
    folded = "".join(char.lower() if char.isascii() else char for char in text)
    for start in range(len(folded) - _GRAM + 1):
        if folded[start : start + _GRAM] in grams:
            spans.append((start, start + _GRAM))
    for needle in short_secrets:
        spans += [match.span() for match in re.finditer(re.escape(needle), text)]
    for mask in _ELLIPSIS.finditer(text):
        for secret in secrets:
            left = _overlap_length(text[: mask.start()], secret, at_end=True)
            right = _overlap_length(text[mask.end() :], secret, at_end=False)
            if left + right >= _ENDS or max(left, right) >= _ENDS - 1:
                spans.append((mask.start() - left, mask.end() + right))
    return spans


def _overlap_length(text: str, secret: str, *, at_end: bool) -> int:
    """The length of the suffix of the text that starts the secret, or of its prefix that ends the secret."""
    for count in range(min(len(secret), len(text)), 0, -1):
        if text.endswith(secret[:count]) if at_end else text.startswith(secret[-count:]):
            return count
    return 0


@lru_cache(maxsize=8)
def _substrings(secrets: frozenset[str]) -> tuple[frozenset[str], tuple[str, ...]]:
    """All lower-case substrings of 8 characters of the forms of the secrets, and the shorter secrets."""
    forms = [form.lower() for secret in secrets for form in (secret, *_encoded(secret.encode()))]
    grams = {form[at : at + _GRAM] for form in forms for at in range(len(form) - _GRAM + 1)}
    return frozenset(grams), tuple(secret for secret in secrets if len(secret) < _GRAM)


def _encoded(secret: bytes) -> list[str]:
    """Bytes, hexadecimal, and base64 at each offset in a longer text (``user:key``)."""
    forms = [secret.hex(), secret.decode("latin-1")]  # percent-encoding gives the bytes of UTF-8
    for before in range(3):
        data = base64.b64encode(b"\0" * before + secret).decode()
        # Characters at either end that the neighbours share say something else.
        core = data[-(-before * 8 // 6) : (before + len(secret)) * 8 // 6]
        forms += [core, core.replace("+", "-").replace("/", "_")]
    return forms


def _unescaped(text: str, offsets: list[int]) -> tuple[str, list[int]]:
    """The text with one layer of escapes decoded, and the original index of each character."""
    parts: list[str] = []
    origins: list[int] = []
    at = 0
    for match in _ESCAPE.finditer(text):
        character = _decode_escape(match)
        parts += [text[at : match.start()], character]
        origins += [*offsets[at : match.start()], *[offsets[match.start()]] * len(character)]
        at = match.end()
    return "".join([*parts, text[at:]]), [*origins, *offsets[at:]]


def _decode_escape(match: re.Match[str]) -> str:
    digits = match["hex"] or match["unicode"] or match["byte"]
    if digits or match["itself"]:
        return chr(int(digits, 16)) if digits else match["itself"]
    from html import unescape

    return unescape(match["html"])


def _without(text: str, spans: list[tuple[int, int]]) -> str:
    merged: list[list[int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    borders = [[0, 0], *merged, [len(text), len(text)]]
    return HIDDEN.join(text[left[1] : right[0]] for left, right in pairwise(borders))


# A name may contain an escape sequence that rewrites a terminal, or a bidirectional control character that makes one
# name look like another. Both are shown as escapes.

_UNSAFE = re.compile(
    "\r(?!\n)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # control characters but tabs and line ends
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidirectional controls
    "\ufff9-\ufffb\U000e0001\U000e0020-\U000e007f]"  # annotations and tags
)


def inert(text: str) -> str:
    r"""The text with control characters and bidirectional controls as visible escapes.

    Tabs and line ends stay.

    >>> inert("a\x1b[31mb\u202ec")
    'a\\x1b[31mb\\u202ec'
    """
    return _UNSAFE.sub(_escape, text) if _UNSAFE.search(text) else text


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
