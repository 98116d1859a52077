"""The Python blocks and commands of the source document run as written, with its package name as an alias."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import Any

import pytest
from click.testing import CliRunner

from equipoise import fair
from equipoise.cli.main import cli

SOURCE = Path("/work/shared/sources/fair-comparison.md")
MODELS = {"st:bge-base": "hash", "st:minilm": "bm25:"}
"""The models of the document need a download; these replace them."""


def python_blocks() -> list[str]:
    if not SOURCE.is_file():
        return []
    return re.findall(r"```python\n(.*?)\n *```", SOURCE.read_text(encoding="utf-8"), re.DOTALL)


class OfflineEmbedding:
    """A model with the methods of the document, without a download."""

    def __init__(self, model: str) -> None:
        self.model = model

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[float(len(text))] * 767 + [1.0] for text in texts]


@pytest.mark.slow
@pytest.mark.skipif(not SOURCE.is_file(), reason="the source document is not here")
def test_every_python_block_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    text, questions = fair.timekeeping()
    aliases = ModuleType("embedding_eval")
    for name in fair.PUBLIC_NAMES:
        setattr(aliases, name, getattr(fair, name))
    aliases.SentenceTransformerEmbedding = OfflineEmbedding  # type: ignore[attr-defined]
    for module_path in ("", ".chunking", ".adapters", ".adapters.embedding", ".adapters.vector"):
        monkeypatch.setitem(sys.modules, f"embedding_eval{module_path}", aliases)
    pairs = [{"question": question.question, "answer": question.answer} for question in questions]
    texts = ["one text", "another text"]
    namespace: dict[str, Any] = {
        "text": text, "pairs": pairs, "qa_pairs": pairs, "doc_content": text, "document": text, "texts": texts,
        "ids": ["a", "b"], "embeddings": OfflineEmbedding("").embed_documents(texts),
        "question": "What?", "answer": "text",
        "query_embedding": OfflineEmbedding("").embed_documents(["one"])[0],
    }  # fmt: skip
    for block in python_blocks():
        code = dedent(block).replace('open("document.txt").read()', "text")
        for original, offline in MODELS.items():
            code = code.replace(original, offline)
        # The pairs of the quick start are about another document.
        code = re.sub(r"qa_pairs = \[.*?\n\]\n", "qa_pairs = pairs\n", code, flags=re.DOTALL)
        exec(compile(code, str(SOURCE), "exec"), namespace)
    assert namespace["score"].score in (0.0, 1.0)
    assert namespace["results"][0]["text"] in texts


def shell_commands() -> list[list[str]]:
    """The commands of the document, without their comments and with line continuations joined."""
    if not SOURCE.is_file():
        return []
    text = "\n".join(re.findall(r"```bash\n(.*?)\n *```", SOURCE.read_text(encoding="utf-8"), re.DOTALL))
    lines = text.replace("\\\n", " ").splitlines()
    return [shlex.split(line)[1:] for line in lines if line.startswith("embedding-eval ")]


@pytest.mark.skipif(not SOURCE.is_file(), reason="the source document is not here")
def test_every_shell_command_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text, questions = fair.timekeeping()
    keys = ("question", "answer", "category", "difficulty")
    pairs = [{key: getattr(question, key) for key in keys} for question in questions]
    monkeypatch.chdir(tmp_path)
    Path("document.txt").write_text(text, encoding="utf-8")
    Path("fixture.json").write_text(json.dumps(pairs), encoding="utf-8")
    commands = shell_commands()
    assert [command[0] for command in commands] == ["validate"] * 4 + ["compare"]
    for command in commands:
        arguments = ["fair", *(MODELS.get(word, word) for word in command)]
        result = CliRunner().invoke(cli, arguments, prog_name="eq")
        assert result.exit_code == 0, result.output
        if "--json" in command:
            assert json.loads(result.stdout)["is_valid"] is True
    results = json.loads(Path("results.json").read_text(encoding="utf-8"))
    assert [entry["model_spec"] for entry in results] == ["hash", "bm25"]
