"""BibTeX, parsed with pybtex."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.metrics.parser import builtin
from equipoise.report.export import export
from equipoise.report.export.metadata import CORRECTIONS, INTERVALS, TIE_GROUP_CITATION, bibtex_entry
from equipoise.stats.paired_tests import TESTS

pybtex = pytest.importorskip("pybtex.database")

CITES = [*(metric.cite for metric in builtin()), *(test.cite for test in TESTS.values())]
SOURCES = [part.strip() for cite in CITES for part in cite.split(";") if part.strip()]
SOURCES += [TIE_GROUP_CITATION, *CORRECTIONS.values(), *INTERVALS.values()]
PUBLICATIONS = sorted({source for source in SOURCES if re.search(r"\b(1[89]|20)\d\d\b", source)})
"""Sources with a year; the others are programs, such as trec_eval."""


@pytest.mark.parametrize("source", PUBLICATIONS)
def test_every_cited_source_has_an_entry(source: str) -> None:
    (entry,) = pybtex.parse_string(bibtex_entry(source), "bibtex").entries.values()
    assert entry.type in ("article", "inproceedings", "book")
    assert entry.fields["year"] in source
    first = entry.persons["author"][0]
    surname = " ".join(first.prelast_names + first.last_names)
    assert re.sub(r"[{}\\\"']", "", surname) in source
    container = {"article": "journal", "inproceedings": "booktitle", "book": "publisher"}[entry.type]
    assert entry.fields[container]
    assert entry.fields["title"]


@given(st.text(min_size=1))
def test_an_unlisted_source_has_an_entry(source: str) -> None:
    assert len(pybtex.parse_string(bibtex_entry(f"unlisted {source}"), "bibtex").entries) == 1


def test_each_source_has_one_entry(make_runs) -> None:
    exported = make_runs(["one", "two", "three"])
    text = export(exported.runs, exported.comparison, "bibtex")
    keys = list(pybtex.parse_string(text, "bibtex").entries)  # duplicate keys are an error of the parser
    for key in ("voorhees1999", "mcsherry2008", "bordes2013", "wilson1927", "smucker2007", "holm1979"):
        assert key in keys
    assert text.count("@") == len(keys)


def test_one_run_cites_no_test(make_runs) -> None:
    keys = list(pybtex.parse_string(export(make_runs(["one"]).runs, None, "bibtex"), "bibtex").entries)
    assert "voorhees1999" in keys
    assert not {"smucker2007", "holm1979", "piepho2004"} & set(keys)


def test_two_systems_need_no_correction_to_cite(make_runs) -> None:
    exported = make_runs(["one", "two"])
    assert "holm1979" not in export(exported.runs, exported.comparison, "bibtex")


def test_gaffke_intervals_cite_their_source(make_runs) -> None:
    (run,) = make_runs(["one"]).runs
    assert "gaffke" in {estimate.interval.method for estimate in run.result.estimates.values()}
    assert "@article{gaffke2005" in export([run], None, "bibtex")
