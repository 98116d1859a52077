"""Queries in the upper and lower case of the ontology.

Some models embed ``glaucoma`` far from ``Glaucoma``. A query that is a text of the ontology but for its case
gets that text's case. In an ontology whose texts begin with a capital any other query begins with one too.
Nothing else is changed. For ``use`` over labels and synonyms of HPO 2025-01-16 (share of right first terms):

    queries                              as typed   both in lower case   this
    400 labels of one word, lower case      .835         1.000          1.000
    600 labels, lower case                  .935         1.000          1.000
    94 shipped cases, English               .585          .521           .585
    the same, lower case                    .543          .521           .585
    86 shipped cases, German                .279          .244           .279
    the same, lower case                    .209          .244           .302
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class Casing:
    """The case that texts have.

    >>> casing = Casing(["Glaucoma", "Abnormal EEG"])
    >>> [casing(query) for query in ("glaucoma", "ABNORMAL eeg", "eye pain")]
    ['Glaucoma', 'Abnormal EEG', 'Eye pain']
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._known: dict[str, str] = {}
        for text in texts:
            self._known.setdefault(text.casefold(), text)
        starts = [text[0] for text in texts if text and text[0].lower() != text[0].upper()]
        self._capital = 2 * sum(start.isupper() for start in starts) > len(starts)

    def __call__(self, query: str) -> str:
        known = self._known.get(query.strip().casefold())
        if known is not None:
            return known
        return query[:1].upper() + query[1:] if self._capital else query

    def all(self, queries: Iterable[str]) -> list[str]:
        """Every query in its case."""
        return [self(query) for query in queries]
