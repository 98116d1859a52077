"""What the viewer adds to a report page: the way back, other metrics to order by, and files to take away."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.report.html.links import Links
from equipoise.view.choice import Choice
from equipoise.view.files import offered


def links_of(choice: Choice, metrics: Sequence[str]) -> Links:
    """Where the page of these runs leads; the first of the metrics is the one it is ordered by."""
    forms = offered(len(choice.rows))
    return Links(
        home="/",
        orders=tuple((name, f"/report?{choice.query(primary=name)}") for name in metrics[1:]),
        files=tuple((form.title, f"/export?{choice.query(to=name)}") for name, form in forms.items()),
    )
