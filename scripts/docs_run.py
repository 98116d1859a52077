"""Run the commands and code of the documentation while the site is built, and show their output.

A hook of mkdocs. In a page, a block marked ``eq`` holds commands, one per line, and a block marked
``python run`` holds code. All blocks of a page share a folder and a namespace. The folder starts with the
sample data. A failing command fails the build, unless its line ends with ``# exit N``. An image in
``figures/`` is a file that the blocks have written.
"""

from __future__ import annotations

import base64
import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.pages import Page

import equipoise.io

SAMPLES = Path(equipoise.io.__file__).parent / "samples"
BLOCK = re.compile(r"^```(eq|python run)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FIGURE = re.compile(r"!\[([^\]]*)\]\((figures/[\w.-]+)\)")
EXIT = re.compile(r"\s+# exit (\d+)$")
WIDTH = "98"


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """The page with the output of its blocks, and with its images embedded."""
    if not BLOCK.search(markdown):
        return markdown
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(SAMPLES, folder, dirs_exist_ok=True)
        (folder / "figures").mkdir()
        names: dict[str, Any] = {}

        def run(block: re.Match[str]) -> str:
            kind, source = block.groups()
            try:
                return _commands(source, folder) if kind == "eq" else _code(source, folder, names)
            except Exception as error:
                raise PluginError(f"{page.file.src_uri}: {source.strip()}\n{error}") from error

        shown = BLOCK.sub(run, markdown)
        return FIGURE.sub(lambda figure: f"![{figure[1]}]({_data(folder / figure[2])})", shown)


def _commands(source: str, folder: Path) -> str:
    parts = []
    for line in source.strip().splitlines():
        expected = EXIT.search(line)
        words = shlex.split(EXIT.sub("", line))
        ended = subprocess.run(
            [sys.executable, "-m", "equipoise", *words[1:]],
            cwd=folder,
            env={**os.environ, "COLUMNS": WIDTH, "NO_COLOR": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if ended.returncode != int(expected[1] if expected else 0):
            raise RuntimeError(f"exit {ended.returncode}: {ended.stderr}")
        said = ended.stdout or (ended.stderr if expected else "")
        parts.append(f"```console\n$ {EXIT.sub('', line)}\n{said.rstrip()}\n```")
    return "\n\n".join(parts)


def _code(source: str, folder: Path, names: dict[str, Any]) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.chdir(folder):
        exec(compile(source, "<documentation>", "exec"), names)
    said = printed.getvalue().rstrip()
    return f"```python\n{source}```" + (f"\n\n```text\n{said}\n```" if said else "")


def _data(file: Path) -> str:
    if not file.is_file():
        written = ", ".join(path.name for path in file.parent.iterdir()) or "none"
        raise PluginError(f"no block has written {file.name}; files: {written}")
    kind = "svg+xml" if file.suffix == ".svg" else file.suffix.lstrip(".")
    return f"data:image/{kind};base64,{base64.b64encode(file.read_bytes()).decode()}"
