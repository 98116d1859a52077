"""Run the commands and code of the documentation while the site is built, and show their output.

A hook of mkdocs. In a page, a block marked ``eq`` holds commands, one per line, and a block marked ``python run`` holds
code. All blocks of a page share a folder and a namespace. The folder starts with the sample data. A failing command
fails the build, unless its line ends with ``# exit N``; ``# width N`` gives a command a wider terminal. Images that are
not in ``images/`` are files that the blocks have written.

Pages run at the same time, each in its own process. The output is stored in ``build/docs-examples`` under a hash of the
blocks and of the package, so that a page whose blocks did not change does not run again::

    python scripts/docs_run.py docs/guides/chance.md     # run one page, print the outputs as JSON
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import cache
from pathlib import Path
from typing import Any

import equipoise

PACKAGE = Path(equipoise.__file__).parent
SAMPLES = PACKAGE / "io" / "samples"
CACHE = Path(__file__).parents[1] / "build" / "docs-examples"
BLOCK = re.compile(r"^```(eq|python run)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FIGURE = re.compile(r"!\[([^\]]*)\]\((?!images/)([\w./-]+)\)")
NOTE = re.compile(r"\s+# (exit|width) (\d+)$")
WIDTH = "98"


def on_files(files: Any, config: Any) -> Any:
    """Run the blocks of all pages, with progress on standard error, before the first page is rendered."""
    from mkdocs.exceptions import PluginError

    pages = [Path(file.abs_src_path) for file in files.documentation_pages() if file.abs_src_path]
    pages = [page for page in pages if BLOCK.search(page.read_text(encoding="utf-8"))]
    failures = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        running = {pool.submit(_run_once, page): page.relative_to(config["docs_dir"]) for page in pages}
        for count, future in enumerate(as_completed(running), 1):
            error, seconds = future.result()
            note = "failed" if error else f"{seconds:.0f} s" if seconds else "not changed"
            print(f"  examples {count:2}/{len(pages)}  {running[future]} ({note})", file=sys.stderr, flush=True)
            failures += [f"{running[future]}: {error}"] if error else []
    if failures:
        raise PluginError("\n".join(failures))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The page with the output of its blocks, and with its images embedded."""
    if not BLOCK.search(markdown):
        return markdown
    stored = json.loads(_cache_file(markdown).read_text(encoding="utf-8"))
    outputs: Iterator[str] = iter(stored["outputs"])
    with_outputs = BLOCK.sub(lambda _: next(outputs), markdown)
    return FIGURE.sub(lambda figure: f"![{figure[1]}]({stored['figures'][figure[2]]})", with_outputs)


def run_page(markdown: str) -> dict[str, Any]:
    """Run the blocks of a page in a new folder: their outputs in order, and the images by name."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(SAMPLES, folder, dirs_exist_ok=True)
        names: dict[str, Any] = {}
        outputs = []
        for kind, source in BLOCK.findall(markdown):
            try:
                outputs.append(_commands(source, folder) if kind == "eq" else _code(source, folder, names))
            except Exception as error:
                raise RuntimeError(f"{source.strip()}\n{type(error).__name__}: {error}") from error
        figures = {path: _data(folder / path) for _, path in FIGURE.findall(markdown)}
        return {"outputs": outputs, "figures": figures}


def _run_once(page: Path) -> tuple[str, float]:
    """The error of a page, or an empty string, and the seconds that it took; 0 if the output is stored already."""
    stored = _cache_file(page.read_text(encoding="utf-8"))
    if stored.is_file():
        return "", 0.0
    started = time.perf_counter()
    completed = subprocess.run(
        [sys.executable, __file__, str(page)], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )
    if completed.returncode:
        return completed.stderr.strip(), 0.0
    stored.parent.mkdir(parents=True, exist_ok=True)
    stored.write_text(completed.stdout, encoding="utf-8")
    return "", time.perf_counter() - started


def _cache_file(markdown: str) -> Path:
    parts = [*map(str, BLOCK.findall(markdown)), *map(str, FIGURE.findall(markdown)), sys.version, _package_digest()]
    return CACHE / f"{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()}.json"


@cache
def _package_digest() -> str:
    digest = hashlib.sha256()
    for file in sorted(path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts):
        digest.update(str(file.relative_to(PACKAGE)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def _commands(source: str, folder: Path) -> str:
    parts = []
    for line in source.strip().splitlines():
        note = NOTE.search(line)
        value = {note[1]: note[2]} if note else {}
        command = NOTE.sub("", line)
        arguments = shlex.split(command)
        completed = subprocess.run(
            [sys.executable, "-m", "equipoise", *arguments[1:]],
            cwd=folder,
            env={**os.environ, "COLUMNS": value.get("width", WIDTH), "NO_COLOR": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if completed.returncode != int(value.get("exit", 0)):
            raise RuntimeError(f"exit {completed.returncode}: {completed.stderr}")
        output = completed.stdout or (completed.stderr if "exit" in value else "")
        parts.append(f"```console\n$ {command}\n{output.rstrip()}\n```")
    return "\n\n".join(parts)


def _code(source: str, folder: Path, names: dict[str, Any]) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.chdir(folder):
        exec(compile(source, "<documentation>", "exec"), names)
    output = printed.getvalue().rstrip()
    return f"```python\n{source}```" + (f"\n\n```text\n{output}\n```" if output else "")


def _data(file: Path) -> str:
    if not file.is_file():
        written = ", ".join(path.name for path in file.parent.iterdir()) or "none"
        raise RuntimeError(f"no block has written {file.name}; files: {written}")
    kind = "svg+xml" if file.suffix == ".svg" else file.suffix.lstrip(".")
    return f"data:image/{kind};base64,{base64.b64encode(file.read_bytes()).decode()}"


def main() -> int:
    """Run one page; the exit status."""
    try:
        print(json.dumps(run_page(Path(sys.argv[1]).read_text(encoding="utf-8"))))
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
