"""A griffe extension: examples in docstrings without a heading are shown as a section of examples."""

from __future__ import annotations

import re
from typing import Any

import griffe

FIRST_EXAMPLE = re.compile(r"^>>> ", re.MULTILINE)


class ExamplesSection(griffe.Extension):
    """Inserts the heading that the numpydoc parser expects before doctests."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of a module, class or function."""
        docstring = obj.docstring
        if docstring is None or "Examples\n---" in docstring.value:
            return
        docstring.value = FIRST_EXAMPLE.sub("Examples\n--------\n>>> ", docstring.value, count=1)
