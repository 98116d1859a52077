"""The trials of a tuning: different outcomes, thresholds that lose nothing to rounding."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.data.annotated import Annotated
from equipoise.errors import ParameterError
from equipoise.ontology.index.search import TermSystem
from equipoise.ontology.ontology import Ontology
from equipoise.recipes.phenotypes.extraction.grid import Point, points, trial_settings
from equipoise.tasks.extract import Candidates, Document, candidates, predict


@pytest.fixture(scope="module")
def found(ontology: Ontology, signs: Annotated) -> Candidates:
    documents = [Document(each.id, each.text) for each in signs.documents]
    return candidates(documents, TermSystem("tfidf:", ontology), num_results=5)


def scored(scores: list[float]) -> Candidates:
    """One document with a chunk for each score, all of the same term."""
    places = np.arange(len(scores), dtype=np.int64)
    return Candidates(
        (Document("a", "x" * (len(scores) + 1), "en"),),
        np.zeros(len(scores), dtype=np.int64),
        places,
        places + 1,
        places[:, None],
        np.array(scores)[:, None],
        term_ids=tuple(f"T:{place}" for place in places),
        chunkers=("given",),
        system="toy",
        fingerprint="",
    )


def outcomes(kept: Candidates, budget: int) -> list[str]:
    return [str(predict(kept, **each.record()).sets()) for each in trial_settings(kept, budget)]


def test_trials_say_different_things_as_long_as_the_grid_does(found: Candidates) -> None:
    every = outcomes(found, 10_000)
    distinct = len(set(every))
    assert len(every) == len(points())
    assert len(set(every[:distinct])) == distinct
    few = outcomes(found, min(12, distinct))
    assert len(set(few)) == len(few)


def test_a_model_with_few_outcomes_gets_as_many_trials_as_the_others() -> None:
    flat = trial_settings(scored([1.0, 1.0, 1.0]), 40)
    assert len(flat) == 40
    assert trial_settings(scored([1.0, 1.0, 1.0]), 40) == flat


def test_the_seed_decides_the_draw(found: Candidates) -> None:
    assert trial_settings(found, 8, seed=3) == trial_settings(found, 8, seed=3)
    assert trial_settings(found, 8, seed=3) != trial_settings(found, 8, seed=4)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=12), st.sampled_from(points()))
def test_no_threshold_of_the_grid_drops_the_best_chunk(millionths: list[int], point: Point) -> None:
    kept = scored([each / 10**6 for each in millionths])
    chosen = point.settings(kept)
    (terms,) = predict(kept, **chosen.record()).found
    assert f"T:{int(np.argmax(kept.scores))}" in {each.term for each in terms}
    if not point.threshold and not point.confidence:
        assert len(terms) == len(millionths)


def test_a_share_of_scores_that_many_chunks_have_is_not_that_score_alone() -> None:
    cuts = {
        replace(Point(1, 0.0, 0.0), threshold=share).settings(scored([0.2, 0.4, 0.6, *[1.0] * 20]))
        for share in (0.3, 0.6, 0.9, 1.0)
    }
    assert len(cuts) == 4


def test_a_budget_of_nothing_is_refused(found: Candidates) -> None:
    with pytest.raises(ParameterError, match="a budget of 0 trials"):
        trial_settings(found, 0)
