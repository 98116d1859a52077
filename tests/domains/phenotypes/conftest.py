"""A small ontology of signs, with cases for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise.domains.phenotypes.cases import Case, check_cases
from equipoise.domains.phenotypes.ontology import Ontology, load_ontology

TERMS = {
    "T:01": ("All signs", [], [], ""),
    "T:02": ("Sign of the head", [], ["T:01"], "Anything seen at the head."),
    "T:03": ("Sign of the hand", [], ["T:01"], ""),
    "T:04": ("Small head", ["Microcephaly"], ["T:02"], "A head that is smaller than that of others."),
    "T:05": ("Large head", ["Macrocephaly", "Big skull"], ["T:02"], ""),
    "T:06": ("Very small head", [], ["T:04"], ""),
    "T:07": ("Long fingers", ["Arachnodactyly", "Spider fingers"], ["T:03"], "Fingers that are long."),
    "T:08": ("Short fingers", ["Brachydactyly"], ["T:03"], ""),
    "T:09": ("Extra fingers", ["Polydactyly"], ["T:03"], ""),
    "T:10": ("Fused fingers", ["Syndactyly", "Webbing"], ["T:03"], ""),
    "T:11": ("Trembling hand", ["Tremor"], ["T:03"], "A hand that shakes."),
    "T:12": ("Round face", [], ["T:02"], ""),
}


def obo(terms: dict[str, tuple[str, list[str], list[str], str]]) -> str:
    """The terms as an OBO file; T:99 is an alternative id of the long fingers, T:98 is obsolete."""
    text = "format-version: 1.2\ndata-version: signs/2026-01-01\nontology: signs\n"
    for name, (label, synonyms, parents, definition) in terms.items():
        text += f"\n[Term]\nid: {name}\nname: {label}\n"
        text += f'def: "{definition}" []\n' if definition else ""
        text += "alt_id: T:99\n" if name == "T:07" else ""
        text += "".join(f'synonym: "{synonym}" EXACT []\n' for synonym in synonyms)
        text += "".join(f"is_a: {parent}\n" for parent in parents)
    return f"{text}\n[Term]\nid: T:98\nname: obsolete Odd\nis_obsolete: true\nconsider: T:12\n"


@pytest.fixture(scope="session")
def obo_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ontology") / "signs.obo"
    path.write_text(obo(TERMS))
    return path


@pytest.fixture(scope="session")
def ontology(obo_file: Path) -> Ontology:
    return load_ontology(obo_file)


@pytest.fixture(scope="session")
def some_cases() -> tuple[Case, ...]:
    """Texts with character n-grams of their terms, in two languages."""
    return check_cases(
        [
            {"id": "a", "text": "microcephaly", "hpo_ids": ["T:04"], "language": "en"},
            {"id": "b", "text": "spider fingers and tremor", "hpo_ids": ["T:99", "T:11"], "language": "en"},
            {"id": "c", "text": "Makrozephalie", "hpo_ids": ["T:05"], "language": "de"},
            {"id": "d", "text": "webbing of the hand", "hpo_ids": ["T:10"], "language": "en"},
            {"id": "e", "text": "Polydaktylie", "hpo_ids": ["T:09"], "language": "de"},
            {"id": "f", "text": "a round face", "hpo_ids": ["T:12"], "language": "en"},
        ]
    )
