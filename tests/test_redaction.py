"""Secrets are redacted in every encoding that a server may echo."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from html import escape
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.errors import StoreError
from equipoise.redaction import HIDDEN, note_options, note_secret, redact
from equipoise.runs.manifest import Manifest, redact_secrets

KEY = 'sk-Zq3/v+W=k7Xp%9Lm2Tn&8R"y'

FORMS: dict[str, Callable[[str], str]] = {
    "as it is": lambda key: key,
    "percent-encoded": lambda key: quote(key, safe=""),
    "percent-encoded but for slashes": quote,
    "percent-encoded twice": lambda key: quote(quote(key, safe=""), safe=""),
    "every byte percent-encoded": lambda key: "".join(f"%{byte:02x}" for byte in key.encode()),
    "a JSON string": json.dumps,
    "a JSON string with escaped slashes": lambda key: json.dumps(key).replace("/", "\\/"),
    "JSON in JSON": lambda key: json.dumps(json.dumps(key)),
    "unicode escapes": lambda key: "".join(f"\\u{ord(char):04X}" for char in key),
    "HTML": escape,
    "base64": lambda key: base64.b64encode(key.encode()).decode(),
    "base64 for addresses": lambda key: base64.urlsafe_b64encode(key.encode()).decode().rstrip("="),
    "base64 of user and key": lambda key: base64.b64encode(f"user:{key}".encode()).decode(),
    "base64 two bytes later": lambda key: base64.b64encode(f"k={key}\n".encode()).decode(),
    "hexadecimal": lambda key: key.encode().hex(),
    "upper case": str.upper,
    "the first 8": lambda key: key[:8],
    "the first 12 and dots": lambda key: f"{key[:12]}...",
    "both ends": lambda key: f"{key[:6]}...{key[-4:]}",
    "both ends around an ellipsis": lambda key: f"{key[:4]}\u2026{key[-4:]}",
    "both ends around stars": lambda key: f"{key[:3]}{'*' * 20}{key[-4:]}",
    "stars and the end": lambda key: f"{'*' * 12}{key[-4:]}",
    "the beginning and stars": lambda key: f"{key[:5]}*****",
    "both ends with spaces": lambda key: f"{key[:6]} ... {key[-4:]}",
    "the middle": lambda key: key[5:18],
}


def substrings(key: str, length: int) -> set[str]:
    return {key[start : start + length] for start in range(len(key) - length + 1)}


@pytest.mark.parametrize("encode", FORMS.values(), ids=FORMS)
def test_a_secret_is_redacted_in_every_encoding(encode: Callable[[str], str]) -> None:
    echo = encode(KEY)
    redacted = redact(f"the key {echo} is not known (code 17)", [KEY])
    assert HIDDEN in redacted
    assert redacted.startswith("the key")
    assert redacted.endswith("is not known (code 17)")
    rest = redacted.replace(HIDDEN, "").replace("the key", "").replace("is not known (code 17)", "")
    assert not any(part in rest for part in substrings(echo, 8) | substrings(KEY, 4))


ASCII = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=4, max_size=60)
"""Characters that are allowed in a header."""


@given(ASCII, st.text(), st.text(), st.sampled_from([quote, json.dumps, str]))
def test_secrets_are_replaced_in_any_text(secret: str, before: str, after: str, encode: Callable[[str], str]) -> None:
    redacted = redact(f"{before} {encode(secret)} {after}", [secret])
    if secret not in HIDDEN and len(secret) >= 8:
        assert secret not in redacted
    assert HIDDEN in redacted


def test_other_text_is_unchanged() -> None:
    text = "the maximum is 8192 tokens... see https://x/y%20z?a=b&amp;c=d (\\u00e9) ***"
    assert redact(text, [KEY]) == text


def test_nothing_is_redacted_before_a_secret_is_used() -> None:
    assert redact(f"the key {KEY}") == f"the key {KEY}"


def test_a_noted_secret_is_in_no_error_and_no_manifest() -> None:
    note_secret(KEY)
    error = StoreError(f"refused {KEY}", hint=f"not {quote(KEY)}", excerpt=f"{KEY[:6]}...{KEY[-4:]}")
    manifest = Manifest.start(f"model of {KEY}", command=["eq", "--name", KEY], settings={"a": [{"b": KEY}]})
    for text in (str(error), repr(error), error.render(), json.dumps(manifest.to_dict())):
        assert HIDDEN in text
        assert not any(part in text for part in substrings(KEY, 4) | substrings(quote(KEY), 8))


@pytest.mark.parametrize(
    "argument",
    [
        "openai:m,dim=8,api_key=abcdefgh-inline",
        "--model=openai:m,token=abcdefgh-inline,dim=8",
        'openai:m,client_secret="abcdefgh-inline"',
        "http://host/v1?password=abcdefgh-inline&a=b",
    ],
)
def test_a_key_in_a_model_spec_is_redacted(argument: str) -> None:
    assert not any("abcdefgh" in shown for shown in redact_secrets(["eq", "embed", argument]))
    note_options(argument)
    assert "abcdefgh" not in redact(f"the option dim is given twice in {argument}")
