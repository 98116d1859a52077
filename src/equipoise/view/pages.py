"""Report pages and files of chosen runs, each made once for as long as the runs stay as they are."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass

from equipoise.report.export import export
from equipoise.report.html.render import html_page
from equipoise.report.page.build import build_page
from equipoise.report.page.gather import comparison_of, read_runs
from equipoise.run.store import StoredRun
from equipoise.stats.comparison import Comparison
from equipoise.view.choice import Choice
from equipoise.view.files import Form
from equipoise.view.kept import Kept
from equipoise.view.links import links_of

PAGES = 16
GATHERED = 1
"""Runs with all their units take much memory, so only the last ones asked for are kept."""


@dataclass(frozen=True)
class Gathered:
    """Runs that were read, and their comparison where there is more than one."""

    runs: tuple[StoredRun, ...]
    comparison: Comparison | None

    @property
    def metrics(self) -> tuple[str, ...]:
        """What the runs can be ordered by, the metric that decides first."""
        if self.comparison is None:
            return self.runs[0].result.names
        return tuple(dict.fromkeys((self.comparison.primary, *self.comparison.metrics)))


class Pages:
    """The pages and files that were made, and those that are being made."""

    def __init__(self) -> None:
        self._gathered: Kept[Gathered] = Kept(GATHERED)
        self._made: Kept[bytes] = Kept(PAGES)

    def report(self, choice: Choice) -> Future[bytes]:
        """The page that ``eq report`` writes, with a way back to the list."""

        def make() -> bytes:
            found = self._gather(choice)
            page = build_page(found.runs, found.comparison)
            return _encoded(html_page(page, links=links_of(choice, found.metrics)))

        return self._made.ask(f"report {choice.version}", make)

    def file(self, choice: Choice, form: Form) -> Future[bytes]:
        """The runs in another form."""

        def make() -> bytes:
            found = self._gather(choice)
            return _encoded(export(found.runs, found.comparison, form.to, units=form.units))

        return self._made.ask(f"{form.filename} {choice.version}", make)

    def _gather(self, choice: Choice) -> Gathered:
        def make() -> Gathered:
            primary = choice.primary or None
            runs = read_runs(choice.named, primary)
            return Gathered(runs, comparison_of(runs, primary=primary))

        return self._gathered.ask(choice.version, make).result()


def _encoded(text: str) -> bytes:
    """UTF-8; what a file name has that is no text is spelled out."""
    return text.encode("utf-8", "backslashreplace")
