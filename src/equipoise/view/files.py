"""The forms that runs can be taken away in, each with the name its file gets."""

from __future__ import annotations

from dataclasses import dataclass

from equipoise.report.page.downloads import FORMS


@dataclass(frozen=True, slots=True)
class Form:
    """A format of ``report.export`` as a file; ``units`` asks for a row a unit, ``alone`` for one system."""

    to: str
    title: str
    filename: str
    media: str
    units: bool = False
    alone: bool = False


FILES = {
    **{to: Form(to, title, filename, media) for to, title, filename, media in FORMS},
    "units": Form("csv", "CSV of every unit", "units.csv", "text/csv", units=True),
    "trec": Form("trec", "TREC run", "run.trec", "text/plain", alone=True),
}
"""The forms by what an address calls them."""


def offered(systems: int) -> dict[str, Form]:
    """The forms for so many systems.

    >>> "trec" in offered(1), "trec" in offered(2)
    (True, False)
    """
    return {name: form for name, form in FILES.items() if systems == 1 or not form.alone}
