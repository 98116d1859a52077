"""The small ontology, and its next release."""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise.domains.phenotypes.ontology import Ontology, load_ontology
from toy_ontology import TERMS, obo


@pytest.fixture
def ontology(tmp_path: Path) -> Ontology:
    """The small ontology."""
    return load_ontology(obo(tmp_path / "toy.obo"))


@pytest.fixture
def next_release(tmp_path: Path) -> Ontology:
    """The next release: one synonym changed, one term added."""
    changed = TERMS.replace("Coughing", "Tussis") + "\n[Term]\nid: T:7\nname: Sneezing\nis_a: T:1\n"
    return load_ontology(obo(tmp_path / "next.obo", changed, "2025-06-01"))
