"""The README in the package metadata: no link or image on a package index page is broken.

A metadata hook of hatchling (see pyproject.toml). Relative links become absolute, at the address ``Repository`` in
``[project.urls]``. Without an address the text of a link is kept, and images are left out.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

IMAGE = re.compile(r"!\[([^\]]*)\]\((?!https?:|#)([^)]+)\)")
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?!https?:|#)([^)]+)\)")


def package_page(text: str, repository: str) -> str:
    """The text with links and images at the main branch of the repository; without them if there is no repository."""
    if not repository:
        return LINK.sub(r"\1", IMAGE.sub("", text))
    text = IMAGE.sub(rf"![\1]({repository}/raw/main/\2)", text)
    return LINK.sub(rf"[\1]({repository}/blob/main/\2)", text)


class PackageReadme(MetadataHookInterface):
    """Sets the field ``readme``."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Read README.md and change its links."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        repository = metadata.get("urls", {}).get("Repository", "").rstrip("/")
        metadata["readme"] = {"content-type": "text/markdown", "text": package_page(text, repository)}
