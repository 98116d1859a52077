"""Reranking of given candidates: queries with their own positives and negatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from equipoise.domains.bench.base_data import (
    LONGEST_TEXT,
    SHOWN,
    BenchData,
    BenchObservation,
    EvaluatedSystem,
    IssueLog,
    counted,
    require_rows,
    slices_of,
)
from equipoise.evidence.ranking import Ranking
from equipoise.io.columns import query_columns, table_of
from equipoise.runs.unit_table import RetrievedItem, UnitContent
from equipoise.tasks.retrieval import candidate_scores


class Reranking(BenchData):
    """Queries, each with its own positive and negative candidates.

    >>> data = Reranking([{"query": "rye", "positives": ["a grass"], "negatives": ["a train", "a bus"]}])
    >>> data.size
    '1 query, 3 candidates'
    """

    kind = "reranking"
    title = "reranking of given candidates"
    formats = "one table with query, positives and negatives (lists, JSON lists in a CSV cell, or one per column)"
    unit = "query"
    metrics = ("MAP", "MRR", "nDCG@10")
    needs_vectors = False

    def __init__(self, table: Any, *, name: str = "", text: Sequence[str] = ()) -> None:
        source = table_of(table, name=name)
        self.name = name or source.name
        log = IssueLog()
        queries, positives, negatives, used = query_columns(source, text)
        units: dict[str, str] = {}
        self._relevant: dict[str, list[str]] = {}
        self._candidates: dict[str, list[str]] = {}
        blank, lacking, conflicting = [], [], []
        for row, query in enumerate(queries):
            unit = str(row + 1)
            relevant = list(dict.fromkeys(positives[row]))
            others = [each for each in dict.fromkeys(negatives[row]) if each not in set(relevant)]
            if len(others) < len(set(negatives[row])):
                conflicting.append(unit)
            if not query:
                blank.append(unit)
            elif not relevant or not others:
                lacking.append(unit)
            else:
                units[unit] = query
                self._relevant[unit], self._candidates[unit] = relevant, relevant + others
        log.add("blank_queries", blank)
        log.add("no_candidates", lacking)
        log.add(
            "positive_and_negative",
            conflicting,
        )
        require_rows(list(units), self.name, "query", log)
        self._units = units
        self.issues = log.issues
        kept = source.rows([str(row + 1) in units for row in range(len(queries))])
        self.slices = slices_of(list(units), kept.properties(used))

    @property
    def unit_ids(self) -> Sequence[str]:
        """The rows of the table."""
        return list(self._units)

    @property
    def size(self) -> str:
        """Queries and candidates."""
        return f"{counted(len(self._units), 'query')}, {counted(sum(map(len, self._candidates.values())), 'candidate')}"

    @property
    def content(self) -> Any:
        """Queries and candidates."""
        return [self._units, self._relevant, self._candidates]

    @property
    def texts(self) -> tuple[Sequence[str], Sequence[str]]:
        """Queries and distinct candidates."""
        return list(self._units.values()), list(
            dict.fromkeys(text for each in self._candidates.values() for text in each)
        )

    def observe(self, system: EvaluatedSystem, *, seed: int = 0) -> BenchObservation:
        """Rank the candidates of each query."""
        queries, documents = self.texts
        place = {text: index for index, text in enumerate(documents)}
        columns = [[place[text] for text in candidates] for candidates in self._candidates.values()]
        scores = candidate_scores(system.retriever, queries, documents, columns)
        ranking = Ranking.from_lists(
            columns,
            [[place[text] for text in relevant] for relevant in self._relevant.values()],
            scores=scores,
            unit_ids=list(self._units),
        )
        return BenchObservation(ranking, details=self._details(columns, scores, documents))

    def _details(
        self, columns: Sequence[Sequence[int]], scores: Sequence[Any], documents: Sequence[str]
    ) -> dict[str | int, UnitContent]:
        details: dict[str | int, UnitContent] = {}
        for (unit, query), candidates, values in zip(self._units.items(), columns, scores, strict=True):
            relevant = set(self._relevant[unit])
            order = np.argsort(-np.asarray(values), kind="stable")[:SHOWN]
            details[unit] = UnitContent(
                query,
                tuple(self._relevant[unit]),
                self.slices.get(unit, {}),
                tuple(
                    RetrievedItem(
                        str(candidates[at]),
                        documents[candidates[at]][:LONGEST_TEXT],
                        float(values[at]),
                        documents[candidates[at]] in relevant,
                    )
                    for at in order.tolist()
                ),
            )
        return details
