"""Texts to take away: the same figures for a paper, a table, a program and a model's card."""

from __future__ import annotations

from equipoise.errors import EquipoiseError
from equipoise.report.export import export
from equipoise.report.page.model import Download
from equipoise.report.page.subject import Subject
from equipoise.stats.numbers import count

LARGEST = 150_000
"""A longer text would outweigh the page; ``eq export`` writes it."""

FORMS = (
    ("latex", "LaTeX table", "table.tex", "application/x-tex"),
    ("md", "Markdown table", "table.md", "text/markdown"),
    ("csv", "CSV", "figures.csv", "text/csv"),
    ("json", "JSON", "report.json", "application/json"),
    ("card", "Model card", "card.yaml", "application/yaml"),
    ("bibtex", "BibTeX of metrics and data", "references.bib", "application/x-bibtex"),
)


def downloads(subject: Subject) -> tuple[tuple[Download, ...], tuple[str, ...]]:
    """Every form that these runs can take, and a sentence for every form that they cannot."""
    taken, notes = [], []
    for name, title, filename, media in FORMS:
        try:
            text = export(subject.runs, subject.comparison, name)
        except EquipoiseError as error:
            notes.append(f"{title}: {error.sentence}.")
            continue
        if len(text) > LARGEST:
            notes.append(f"{title}: {count(len(text))} characters; eq export --to {name} writes it.")
        elif text:
            taken.append(Download(name, title, filename, media, text))
    return tuple(taken), tuple(notes)
