"""Relations: whether related entities lie together, and whether the object of a relation can be found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.data.field.records import Relation, question
from equipoise.errors import InputError
from equipoise.evidence.ranking import Ranking
from equipoise.evidence.space import Space
from equipoise.geometry.search import score_blocks
from equipoise.metrics.graph import GraphClustering, GraphDensity
from equipoise.tasks.encode import Encode, encoded
from equipoise.types import Floats, Ids, Ints


@dataclass(frozen=True)
class Related:
    """Entities and what joins them.

    ``space`` has one point an entity and one edge a pair that is related, in whatever way; relation coherence
    is ``Coherence`` on it. ``ranking`` has one unit a relation: the rank of its object among all entities
    but the subject. Other right answers to the same question are no candidates. ``subjects`` can
    serve as clusters: relations of one subject are asked with nearly the same vector.
    """

    space: Space
    ranking: Ranking
    subjects: Ids

    @property
    def graph_density(self) -> float:
        """Edges over possible edges of the directed graph, by networkx; not capped."""
        return GraphDensity().value(self.space)

    @property
    def clustering_coefficient(self) -> float:
        """Mean clustering coefficient of the graph without directions, by networkx."""
        return GraphClustering().value(self.space)


def relate(encode: Encode, relations: Sequence[Relation]) -> Related:
    """Embed all entities, join the related ones, and look for the object of each relation.

    The question is the subject and the predicate as words, ``Plato wrote``; the answers are ranked by cosine.

    >>> vectors = {"Plato": [1.0, 0.0], "Laws": [0.0, 1.0], "Kant": [0.6, 0.8], "Plato wrote": [0.2, 1.0]}
    >>> vectors |= {"Kant read": [1.0, 0.1]}
    >>> said = [Relation("Plato", "wrote", "Laws"), Relation("Kant", "read", "Plato")]
    >>> relate(lambda texts: [vectors[text] for text in texts], said).ranking.ranks
    array([1., 1.])
    """
    if len(relations) < 2:
        raise InputError(
            f"there {'is one relation' if relations else 'are no relations'}",
            hint="an object can only be looked for among several entities",
        )
    names = list(dict.fromkeys(name for each in relations for name in (each.subject, each.object)))
    row = {name: place for place, name in enumerate(names)}
    questions = [question(each) for each in relations]
    asked = {each: place for place, each in enumerate(dict.fromkeys(questions))}
    vectors = encoded(encode, [*names, *asked])
    ends = np.array([(row[each.subject], row[each.object]) for each in relations], dtype=np.int64)
    queries = vectors[len(names) :][[asked[each] for each in questions]]
    return Related(
        Space.of(vectors[: len(names)], edges=np.unique(ends, axis=0), unit_ids=names),
        _ranking(queries, vectors[: len(names)], ends, _rivals(questions, ends), relations),
        np.array([each.subject for each in relations], dtype=object),
    )


def _rivals(questions: Sequence[str], ends: Ints) -> list[list[int]]:
    """For each relation, the entities that answer its question as well, its own object not among them."""
    answers: dict[str, set[int]] = {}
    for asked, (_, answer) in zip(questions, ends.tolist(), strict=True):
        answers.setdefault(asked, set()).add(answer)
    return [
        sorted(answers[asked] - {answer})
        for asked, answer in zip(questions, ends[:, 1].tolist(), strict=True)
    ]


def _ranking(
    queries: Floats, corpus: Floats, ends: Ints, rivals: list[list[int]], relations: Sequence[Relation]
) -> Ranking:
    """The rank of each object; NaN marks what is no candidate."""

    def masked() -> Iterator[tuple[slice, NDArray[Any]]]:
        for rows, scores in score_blocks(queries, corpus, geometry="cosine"):
            for row, others in zip(scores, rivals[rows], strict=True):
                row[others] = np.nan
            yield rows, scores

    ranking = Ranking.from_blocks(
        masked(),
        ends[:, 1],
        units=len(queries),
        corpus=len(corpus),
        exclude=ends[:, 0],
        unit_ids=[" | ".join((each.subject, each.predicate, each.object)) for each in relations],
    )
    pool = ranking.candidates - np.array([len(others) for others in rivals])
    return replace(ranking, candidates=pool, depth=pool)
