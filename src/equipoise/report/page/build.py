"""From runs and their comparison to the page."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.report.page import opening
from equipoise.report.page.costs import costs
from equipoise.report.page.distributions import distributions
from equipoise.report.page.downloads import downloads
from equipoise.report.page.explorer import explorer
from equipoise.report.page.findings import findings
from equipoise.report.page.league import leagues
from equipoise.report.page.model import Page
from equipoise.report.page.pairs import pairs
from equipoise.report.page.protocol import protocol
from equipoise.report.page.slices import slices
from equipoise.report.page.subject import Subject
from equipoise.report.page.tuned import tuned
from equipoise.report.page.unit_details import slices_of
from equipoise.run.store import StoredRun
from equipoise.stats.comparison import Comparison
from equipoise.version import __version__


def build_page(
    runs: Sequence[StoredRun], comparison: Comparison | None = None, *, texts: bool = True
) -> Page:
    """The page of one run, or of several and the comparison of exactly these.

    ``texts=False`` leaves out the texts to take away, which take the longest to make.
    """
    subject = Subject.of(runs, comparison)
    known = slices_of(subject.runs)
    taken, notes = downloads(subject) if texts else ((), ())
    return Page(
        title=opening.title(subject),
        subtitle=opening.subtitle(subject),
        systems=opening.systems(subject),
        primary=subject.primary,
        better=str(subject.better),
        cautions=opening.cautions(subject),
        verdict=opening.verdict(subject),
        leagues=leagues(subject),
        costs=costs(subject),
        pairs=pairs(subject),
        slices=slices(subject, known),
        explorer=explorer(subject, known),
        distributions=distributions(subject),
        tuned=tuned(subject),
        maps=(),
        findings=findings(subject),
        protocol=protocol(subject),
        downloads=taken,
        notes=notes,
        program=f"equipoise {__version__}",
    )
