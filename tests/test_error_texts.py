"""Snapshots of error messages. Other tests assert codes, so that a text is changed here and in one source file."""

from collections.abc import Callable

import numpy as np
import pytest

from equipoise import (
    EquipoiseError,
    Labels,
    Pairs,
    Ranking,
    Sets,
    Space,
    embedder,
    nearest_neighbors,
    parse_metrics,
    wilson_interval,
)
from equipoise.geometry.spaces import geometry
from equipoise.io.run_files import read_run
from equipoise.io.splits import kfold_splits
from equipoise.models.chunking import chunker
from equipoise.stats.multiple_comparisons import adjust
from equipoise.stats.power import units_needed
from equipoise.tuning.nested_cv import nested_cv

TEXTS: dict[str, tuple[Callable[[], object], str, str]] = {
    "unknown metric": (lambda: parse_metrics("nDGC@10"), "E300: no metric is called 'nDGC'", "did you mean nDCG?"),
    "cutoff in words": (
        lambda: parse_metrics("nDCG@ten"),
        "E310: 'nDCG@ten' has the cutoff 'ten', which is not an integer",
        "write @10 or @{1,3,5,10}",
    ),
    "missing cutoff": (lambda: parse_metrics("HR"), "E310: HR needs a cutoff", "write HR@10"),
    "superfluous cutoff": (lambda: parse_metrics("MR@5"), "E310: MR takes no cutoff", "write MR"),
    "unknown choice": (
        lambda: parse_metrics("MAP(norm=Q)@5"),
        "E310: MAP(norm=Q) is not among its choices",
        "choose min or R",
    ),
    "empty qrels": (lambda: Ranking.from_runs({}, {}), "E200: the qrels contain no units", "check the qrels"),
    "NaN score": (
        lambda: Ranking.from_runs({"q": {"a": 1}}, {"q": {"a": float("nan")}}),
        "E207: the score of item 'a' for unit 'q' is nan, which is not a number",
        "every score must be a number; remove items without one",
    ),
    "unknown target": (
        lambda: Ranking.from_scores([[0.1, 0.2]], [5]),
        "E200: target 5 of row 0 is not one of the 2 classes (1 such targets)",
        "classes are columns of the scores, 0 to 1",
    ),
    "unequal labels": (
        lambda: Labels.of(["a", "b"], ["a"]),
        "E206: there are 2 true labels and 1 predicted ones",
        "give one of each per unit",
    ),
    "unequal pairs": (
        lambda: Pairs.of([0.1, 0.2], [0.1]),
        "E206: there are 2 predicted similarities and 1 expected ones",
        "give one of each per unit",
    ),
    "NaN vector": (
        lambda: Space.of([[0.0, float("nan")]]),
        "E207: 1 vector holds NaN or infinity, the first at position 0",
        "embed these items again or leave them out",
    ),
    "duplicate term": (
        lambda: Sets.of({"d": ["a", "a"]}, {"d": []}),
        "E205: the gold set of document d holds a / affirmed twice",
        "pass a set if mentions are meant to count once",
    ),
    "more successes than trials": (
        lambda: wilson_interval(6, 5),
        "E310: 6 successes in 5 trials are impossible",
        "successes are counted among the trials",
    ),
    "p value above 1": (lambda: adjust([0.5, 1.5]), "E310: a p value is outside 0 to 1", ""),
    "power below 0.5": (
        lambda: units_needed(0.1, 0.3, power=0.2),
        "E310: power is 0.2, outside 0.5 to 1",
        "0.8 is the usual value",
    ),
    "too many folds": (
        lambda: kfold_splits("abc", 5, rng=np.random.default_rng(0)),
        "E310: 5 folds need at least 5 units, and there are 3",
        "use at most 3 folds",
    ),
    "unequal dimensions": (
        lambda: nearest_neighbors([[1.0, 0.0]], [[1.0, 0.0, 0.0]], 1),
        "E206: the queries have 2 coordinates and the corpus has 3",
        "embed both with the same model and the same truncation",
    ),
    "outside the ball": (
        lambda: nearest_neighbors([[2.0, 0.0]], [[0.5, 0.0]], 1, geometry="poincare"),
        "E200: the queries: 1 of 1 point is on or outside the ball of radius 1 (row 0)",
        "points of the hyperboloid need geometry=lorentz; float32 rounds the last points onto the rim",
    ),
    "unknown geometry": (
        lambda: geometry("cosinus"),
        "E300: no geometry is called 'cosinus'",
        "did you mean cosine or cos?",
    ),
    "unknown model": (
        lambda: embedder("minilmm"),
        "E300: no model is called 'minilmm'",
        "did you mean minilm?",
    ),
    "overlap of a whole chunk": (
        lambda: chunker("fixed", chunk_size=10, overlap=10),
        "E310: an overlap of 10 tokens leaves no room for new ones in chunks of 10",
        "choose an overlap below the chunk size; a tenth of it is usual",
    ),
    "unit outside all folds": (
        lambda: nested_cv([[1.0, 0.0]], []),
        "E206: the unit at index 0 is tested in 0 folds",
        "every unit is tested once: make the folds with kfold_splits",
    ),
    "missing file": (lambda: read_run("missing.trec"), "E200: there is no file missing.trec", "check the path"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_error_text_and_hint_match_the_snapshot(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    call, message, hint = TEXTS[name]
    with pytest.raises(EquipoiseError) as error:
        call()
    assert f"{error.value.code}: {error.value.message}" == message
    assert error.value.hint == hint
