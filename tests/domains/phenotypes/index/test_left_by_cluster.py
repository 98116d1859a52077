"""What a build on a cluster left when it broke off: the next build in this process finds it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from equipoise.domains.phenotypes.index.build import build_index_with_report
from equipoise.domains.phenotypes.ontology import load_ontology
from equipoise.errors import PartialError
from toy_ontology import obo

MODEL = "py:cluster_cells.Plain,identity=plain"


def broken_off(work: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[tuple[int, Any]]:
    """One block comes back, and then the cluster is gone."""
    yield 0, work(items[0])
    raise PartialError("the cluster went away")


def test_without_a_cache_a_local_build_takes_up_what_a_cluster_left(tmp_path: Path) -> None:
    terms = [f"\n[Term]\nid: T:{number}\nname: finding {number}\n" for number in range(600)]
    ontology = load_ontology(obo(tmp_path / "many.obo", "".join(terms)))
    with pytest.raises(PartialError):
        build_index_with_report(
            ontology, MODEL, tmp_path / "there", multi_vector=False, cache=False, executor=broken_off
        )
    (left,) = (tmp_path / "there").iterdir()
    assert left.name.endswith(".work")
    found = build_index_with_report(ontology, MODEL, tmp_path / "there", multi_vector=False, cache=False)
    plain = build_index_with_report(ontology, MODEL, tmp_path / "here", multi_vector=False, cache=False)
    assert 0 < found.report.from_cache < found.report.texts
    assert not left.exists()
    assert found.index.vectors.tobytes() == plain.index.vectors.tobytes()
