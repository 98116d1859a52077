"""The README in the package metadata: relative links become absolute, so that they work on a package index page.

A metadata hook of hatchling (see pyproject.toml). The address is ``Repository`` in ``[project.urls]``; without it the
links stay relative.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

IMAGE = re.compile(r"(!\[[^\]]*\]\()(?!https?:|#)([^)]+\))")
LINK = re.compile(r"((?<!!)\[[^\]]*\]\()(?!https?:|#)([^)]+\))")


def absolute_links(text: str, repository: str) -> str:
    """The text with links and images at the main branch of the repository."""
    text = IMAGE.sub(rf"\g<1>{repository}/raw/main/\g<2>", text)
    return LINK.sub(rf"\g<1>{repository}/blob/main/\g<2>", text)


class PackageReadme(MetadataHookInterface):
    """Sets the field ``readme``."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Read README.md and make its links absolute."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        repository = metadata.get("urls", {}).get("Repository", "").rstrip("/")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": absolute_links(text, repository) if repository else text,
        }
