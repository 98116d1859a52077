"""Rankings of a system on a dataset."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.domains.bench.retrieval_data import retrieve
from equipoise.errors import InputError
from equipoise.evidence.ranking import Ranking
from equipoise.io.dataset import Dataset
from equipoise.models.retriever import retriever
from stored_runs import load_bread


@pytest.mark.parametrize("spec", ["bm25:", "tfidf:", "hash", "sum:tfidf:+bm25:", "rrf:tfidf:+bm25:"])
def test_ranks_equal_those_of_the_scores_of_every_passage(spec):
    data = load_bread()
    ranking = retrieve(retriever(spec), data)
    fitted = retriever(spec).fit(list(data.items.values()))
    scores = np.vstack([block.copy() for _, block in fitted.score_blocks(list(data.units.values()))])
    run = {unit: dict(zip(data.items, row.tolist(), strict=True)) for unit, row in zip(data.units, scores, strict=True)}
    expected = Ranking.from_runs(data.truth, run)
    assert list(ranking.unit_ids) == list(data.units)
    order = [list(data.truth).index(unit) for unit in data.units]
    expected = expected.take(np.array(order))
    np.testing.assert_array_equal(ranking.above, expected.above)
    np.testing.assert_array_equal(ranking.tied, expected.tied)
    np.testing.assert_array_equal(ranking.gain, expected.gain)
    assert (ranking.candidates == len(data.items)).all()


def test_a_unit_without_truth_is_kept_and_undefined():
    data = Dataset("d", {"a": "rye bread", "b": "slow train"}, {"q": "bread", "r": "?"}, {"q": {"a": 1}})
    ranking = retrieve(retriever("hash"), data)
    assert ranking.counts.tolist() == [1, 0]


def test_a_dataset_without_items_is_an_error():
    with pytest.raises(InputError):
        retrieve(retriever("bm25:"), Dataset("empty", {}, {"q": "x"}, {}))


def test_the_sample_is_complete():
    data = load_bread()
    assert (len(data.items), len(data.units), len(data.truth)) == (61, 80, 80)
    assert {part["wording"] for part in data.slices.values()} == {"close", "far"}
