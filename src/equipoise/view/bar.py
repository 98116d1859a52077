"""What the viewer adds to a report page: the way back, other metrics to order by, and files to take away."""

from __future__ import annotations

import re
from collections.abc import Sequence

from equipoise.view.choice import Choice
from equipoise.view.files import offered
from equipoise.view.markup import rendered

_TOP = re.compile(r"<header\b[^>]*>")
"""Where a report page begins. Texts from data are escaped, so the first of these is its own."""


def with_bar(page: str, choice: Choice, metrics: Sequence[str]) -> str:
    """The page with the links inside its header; nothing else of it changes."""
    bar = rendered(
        "bar.html",
        files=[
            (form.title, f"/export?{choice.query(to=name)}")
            for name, form in offered(len(choice.rows)).items()
        ],
        metrics=[(name, f"/report?{choice.query(primary=name)}") for name in metrics[1:]],
    )
    return _TOP.sub(lambda found: f"{found[0]}\n{bar}", page, count=1)
