"""The partial results of an interrupted build on a cluster: the next local build uses them."""

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


def interrupted(function: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[tuple[int, Any]]:
    """Return one block, and then fail."""
    yield 0, function(items[0])
    raise PartialError("the cluster went away")


def test_without_a_cache_a_local_build_uses_the_partial_results_of_a_cluster(tmp_path: Path) -> None:
    terms = [f"\n[Term]\nid: T:{number}\nname: finding {number}\n" for number in range(600)]
    ontology = load_ontology(obo(tmp_path / "many.obo", "".join(terms)))
    with pytest.raises(PartialError):
        build_index_with_report(
            ontology, MODEL, tmp_path / "remote", multi_vector=False, cache=False, executor=interrupted
        )
    (work_folder,) = (tmp_path / "remote").iterdir()
    assert work_folder.name.endswith(".work")
    resumed = build_index_with_report(ontology, MODEL, tmp_path / "remote", multi_vector=False, cache=False)
    complete = build_index_with_report(ontology, MODEL, tmp_path / "local", multi_vector=False, cache=False)
    assert 0 < resumed.report.from_cache < resumed.report.texts
    assert not work_folder.exists()
    assert resumed.index.vectors.tobytes() == complete.index.vectors.tobytes()
