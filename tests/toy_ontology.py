"""A small ontology as a file: six terms, some without synonyms, some without a definition."""

from __future__ import annotations

from pathlib import Path
from typing import Any

HEAD = "format-version: 1.2\ndata-version: {release}\nontology: toy\n"
TERMS = """
[Term]
id: T:1
name: Abnormality

[Term]
id: T:2
name: Seizure
def: "Sudden abnormal activity of the brain." []
synonym: "Fits" EXACT []
synonym: "Convulsions" EXACT []
synonym: "Epileptic attack" EXACT []
is_a: T:1

[Term]
id: T:3
name: Fever
def: "Body temperature above the normal range." []
synonym: "Pyrexia" EXACT []
is_a: T:1

[Term]
id: T:4
name: Short stature
def: "Height below that of peers." []
synonym: "Small size" EXACT []
synonym: "Decreased body height" EXACT []
is_a: T:1

[Term]
id: T:5
name: Febrile seizure
def: "A seizure in the course of a fever." []
is_a: T:2

[Term]
id: T:6
name: Cough
synonym: "Coughing" EXACT []
is_a: T:1
"""


def obo(path: Path, terms: str = TERMS, release: str = "2025-01-01") -> Path:
    """Write an OBO file."""
    path.write_text(HEAD.format(release=release) + terms, encoding="utf-8")
    return path


def retrieve_candidates(documents: Any, system: Any, *, num_results: int = 10, chunkers: Any = None) -> Any:
    """The candidates of chunks by a term retriever alone, without the dictionary."""
    from equipoise.domains.phenotypes.extraction.candidates import SPLITTER_CHAIN
    from equipoise.domains.phenotypes.extraction.extractor import TermExtractor

    extractor = TermExtractor(system.ontology, system, dictionary=False, chunkers=chunkers or SPLITTER_CHAIN)
    return extractor.candidates(documents, num_results=num_results)
