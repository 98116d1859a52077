"""Exports: LaTeX, Markdown, CSV, JSON, TREC, model card and BibTeX, one file a format."""

from equipoise.report.export.formats import FORMATS, export

__all__ = ["FORMATS", "export"]
