"""What the small files beside a model's weights say: window, pooling, normalisation, prompts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from equipoise.embed.local.packaged import sha256_of
from equipoise.errors import InputError, UntrustedError
from equipoise.types import Role

_POOLING_MODES = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
}
_NO_LIMIT = 1_000_000


_PROMPT_NAMES = {Role.QUERY: ("query",), Role.DOCUMENT: ("document", "passage", "corpus")}


def prompts_by_role(prompts: Mapping[str, str | None], default_name: str | None) -> dict[Role, str]:
    """The prompts of queries and documents among those that sentence-transformers keeps by name.

    A default prompt is for both roles, unless its name is that of one of them.

    >>> prompts_by_role({"query": "Q: ", "document": ""}, "query")[Role.DOCUMENT]
    ''
    >>> prompts_by_role({"search": "S: "}, "search")[Role.DOCUMENT]
    'S: '
    """
    named = {name for names in _PROMPT_NAMES.values() for name in names}
    shared = "" if default_name in named else prompts.get(default_name or "") or ""
    return {
        role: next((prompt for name in names if (prompt := prompts.get(name))), shared)
        for role, names in _PROMPT_NAMES.items()
    }


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A folder as transformers and sentence-transformers save it; any of its files may be absent."""

    path: Path

    @classmethod
    def open(cls, path: Path) -> ModelFolder:
        """The folder, when there is one."""
        if not path.is_dir():
            fact = "is a file" if path.exists() else "does not exist"
            raise InputError(
                f"the model folder {path} {fact}", hint="name the folder that the model was saved to"
            )
        return cls(path)

    def first(self, *names: str) -> Path | None:
        """The first of these files that is there."""
        return next((self.path / name for name in names if (self.path / name).is_file()), None)

    def json(self, name: str) -> Any:
        """A JSON file of the folder; an empty object where it is absent."""
        file = self.path / name
        if not file.is_file():
            return {}
        try:
            return json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(f"{file} cannot be read: {error}", hint="save the model again") from error

    def config(self) -> dict[str, Any]:
        """The model's own configuration."""
        found = self.json("config.json")
        return found if isinstance(found, dict) else {}

    def max_tokens(self) -> int | None:
        """How many tokens the model reads, by the most specific file that says it."""
        truncation = self._tokenizer().get("truncation") or {}
        said = (
            self.json("sentence_bert_config.json").get("max_seq_length"),
            truncation.get("max_length"),
            self.json("tokenizer_config.json").get("model_max_length"),
            self.config().get("max_position_embeddings"),
        )
        return next((int(each) for each in said if each and each < _NO_LIMIT), None)

    def pooling(self) -> str | None:
        """How token vectors become one, as sentence-transformers recorded it."""
        modes = self.json("1_Pooling/config.json")
        if modes.get("pooling_mode"):
            return str(modes["pooling_mode"])
        return next((name for mode, name in _POOLING_MODES.items() if modes.get(mode)), None)

    def normalizes(self) -> bool:
        """Whether the model's last step sets vectors to length one."""
        modules = self.json("modules.json")
        return any(str(each.get("type", "")).endswith("Normalize") for each in modules or ())

    def require_no_code(self, *, trusted: bool) -> None:
        """Refuse a folder that brings classes of its own, unless the user has asked to run them.

        sentence-transformers before version 6 imports them from a folder without asking.
        """
        modules = self.json("modules.json")
        kinds = [str(each.get("type", "")) for each in modules or () if isinstance(each, dict)]
        own = [kind for kind in kinds if not kind.startswith("sentence_transformers.")]
        if own and not trusted:
            raise UntrustedError(
                f"the model in {self.path} brings code of its own, {own[0]}, which is not run unasked",
                hint=f"read that code; then write st:{self.path},trust_remote_code=true",
            )

    def prompts(self) -> dict[Role, str]:
        """What the model wants before queries and documents."""
        said = self.json("config_sentence_transformers.json")
        found = prompts_by_role(said.get("prompts") or {}, said.get("default_prompt_name"))
        return {role: prompt for role, prompt in found.items() if prompt}

    def settings(self) -> str:
        """A digest of every small text file: two folders that differ in one are two models."""
        digest = hashlib.sha256()
        for file in sorted(each for end in ("*.json", "*.txt") for each in self.path.rglob(end)):
            digest.update(f"{file.relative_to(self.path)} {sha256_of(file)}\n".encode())
        return digest.hexdigest()[:16]

    def pad_id(self) -> int:
        """The token that fills a batch up; it is masked, so any valid id will do."""
        padding = self._tokenizer().get("padding") or {}
        return int(padding.get("pad_id") or self.config().get("pad_token_id") or 0)

    def _tokenizer(self) -> dict[str, Any]:
        found = self.json("tokenizer.json")
        return found if isinstance(found, dict) else {}
