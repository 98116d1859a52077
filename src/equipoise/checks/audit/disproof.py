"""What figures say against an assumption: then it is false, and nothing is said under it."""

from __future__ import annotations

from equipoise.checks.audit.facts import Need
from equipoise.checks.audit.row import Row


def disproved(row: Row) -> frozenset[Need]:
    """The assumptions that cannot hold for these figures."""
    found = set()
    if _several_relevant(row):
        found.add(Need.ONE_RELEVANT)
    gain, hits = row.one("nDCG", 1), row.one("HR", 1)
    if gain and hits and hits.span.above(gain.span):
        found.add(Need.BINARY)
    return frozenset(found)


def _several_relevant(row: Row) -> bool:
    """With one relevant item recall is the hit rate, precision its k-th part, and MAP is MRR."""
    for hits in row.series("HR"):
        k = int(hits.k)
        recall, precision = row.one("R", k), row.one("P", k)
        if recall and recall.span.apart(hits.span):
            return True
        if precision and k > 1 and (precision.span * k).apart(hits.span):
            return True
    return any(
        reciprocal.span.apart(average.span)
        for average in row.series("MAP", cut=False)
        if (reciprocal := row.one("MRR", average.measure.k)) is not None
    )
