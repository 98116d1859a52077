"""An index on disk: vectors that are mapped and not read, and a small file that says whose they are.

A folder has ``vectors.npy`` (a row a component), ``keys.npy`` (a digest of each component's text),
``first.npy`` (for each vector the first that equals it) and ``meta.json``. It is written beside its place and
renamed when it is whole, so that nobody ever meets a part of one.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import EquipoiseError, PartialError, StoreError
from equipoise.io.atomic import atomic_directory, current_path, write_array, write_error, write_text

if TYPE_CHECKING:
    from equipoise.domains.phenotypes.index.term_texts import TermTexts
    from equipoise.domains.phenotypes.ontology.ontology import Ontology
    from equipoise.models.encoder import Vectors
    from equipoise.types import Ints

FORMAT = 1
META, VECTORS, KEYS, FIRST = "meta.json", "vectors.npy", "keys.npy", "first.npy"

Keys = NDArray[np.uint8]

_KEY_BYTES = 16
_READ_AT_ONCE = 1 << 22


@dataclass(frozen=True, slots=True)
class IndexMetadata:
    """What made an index: model, ontology and texts, and a checksum of the vectors."""

    model: str
    """The fingerprint of the model."""
    model_spec: str
    model_name: str
    dims: int
    ontology: str
    """The fingerprint of the ontology."""
    ontology_name: str
    release: str
    citation: str
    multi: bool
    terms: int
    components: int
    texts: str
    """The fingerprint of the components."""
    checksum: int = 0
    format: int = FORMAT

    @property
    def title(self) -> str:
        """The ontology with its release, where it has one."""
        return f"{self.ontology_name} {self.release}".strip()

    @property
    def kind(self) -> str:
        """How many vectors a term has."""
        return "multi-vector" if self.multi else "single-vector"


@dataclass(frozen=True, slots=True, eq=False)
class TermIndex:
    """The vectors of all components of an ontology's terms, as one model made them."""

    folder: Path
    meta: IndexMetadata
    components: TermTexts
    vectors: Vectors
    first: Ints

    def __repr__(self) -> str:
        return f"<TermIndex {self.meta.model_spec} over {self.meta.title}: {self.meta.kind}>"

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def model(self) -> str:
        """The fingerprint of the model that made the vectors."""
        return self.meta.model

    def require(self, ontology: Ontology, multi: bool) -> None:
        """Refuse to answer for another ontology, or in another way, than it was built for."""
        check_metadata(self.meta, self.folder, ontology, multi)


def text_digests(texts: tuple[str, ...]) -> Keys:
    """A digest of each text, by which it is known again."""
    digests = b"".join(sha256(text.encode()).digest()[:_KEY_BYTES] for text in texts)
    return np.frombuffer(digests, dtype=np.uint8).reshape(len(texts), _KEY_BYTES)


def write_index(folder: Path, meta: IndexMetadata, keys: Keys, vectors: Vectors, first: Ints) -> None:
    """Put an index in its place, whole or not at all."""
    try:
        with atomic_directory(folder) as part:
            write_array(part / VECTORS, vectors)
            write_array(part / KEYS, keys)
            write_array(part / FIRST, first)
            said = {**asdict(meta), "checksum": checksum_of(part / VECTORS)}
            write_text(part / META, json.dumps(said, indent=2, ensure_ascii=False) + "\n")
    except (OSError, StoreError, PartialError) as error:
        reason = error if isinstance(error, OSError) else error.__cause__
        hint = "check the rights of the folder, or choose another with --index-dir"
        raise write_error(f"the index {folder}", reason, hint=hint) from error


def read_metadata(folder: Path) -> IndexMetadata:
    """What an index says of itself."""
    path = current_path(folder) / META
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        if said["format"] != FORMAT:
            raise StoreError(
                f"the index {folder} has format {said['format']}, and this program reads {FORMAT}",
                hint="build it again",
            )
        meta = IndexMetadata(**said)
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise damaged_index_error(folder, f"{META} says nothing that can be used ({_said(error)})") from error
    if any(not isinstance(getattr(meta, name), kind) for name, kind in _KINDS.items()):
        raise damaged_index_error(folder, f"{META} has a field of the wrong kind")
    return meta


def read_arrays(folder: Path, meta: IndexMetadata) -> tuple[Vectors, Keys, Ints]:
    """Vectors, keys and first equals, when they are those that the meta file speaks of."""
    here = current_path(folder)
    try:
        # The checksum reads the whole file, which the first product would do anyway.
        if checksum_of(here / VECTORS) != meta.checksum:
            raise damaged_index_error(folder, f"{VECTORS} is not as it was written")
    except OSError as error:
        raise damaged_index_error(folder, _said(error)) from error
    vectors = _loaded(folder, here / VECTORS, mmap_mode="r")
    keys, first = _loaded(folder, here / KEYS), _loaded(folder, here / FIRST)
    count = meta.components
    if vectors.shape != (count, meta.dims) or keys.shape != (count, _KEY_BYTES) or first.shape != (count,):
        raise damaged_index_error(folder, "its files do not fit together")
    if first.dtype.kind != "i" or not ((first >= 0) & (first <= np.arange(count))).all():
        raise damaged_index_error(folder, f"{FIRST} names rows that are not there")
    return vectors, keys, first


def _loaded(folder: Path, file: Path, **options: Any) -> Any:
    """An array of an index; of one that is none, numpy would say how to load it nevertheless."""
    try:
        return np.load(file, allow_pickle=False, **options)
    except OSError as error:
        raise damaged_index_error(folder, _said(error)) from error
    except (ValueError, EOFError) as error:
        raise damaged_index_error(folder, f"{file.name} is not as it was written") from error


def check_metadata(meta: IndexMetadata, folder: Path, ontology: Ontology, multi: bool) -> None:
    """Refuse an index of another ontology or release, or with another number of vectors a term."""
    wanted = "multi-vector" if multi else "single-vector"
    if meta.multi != multi:
        raise StoreError(f"the index {folder} is {meta.kind}, not {wanted}", hint=f"build a {wanted} one")
    if meta.ontology != ontology.fingerprint:
        alike = " with other content" if meta.title == ontology.title else ""
        raise StoreError(
            f"the index {folder} was built for {meta.title}, and this is {ontology.title}{alike}",
            hint="build it again: only new and changed texts are embedded",
        )


def find_indexes(folder: Path) -> list[tuple[Path, IndexMetadata | EquipoiseError]]:
    """All indexes in a folder, by name; one that cannot be read comes with the reason."""
    check_is_folder(folder)
    found: list[tuple[Path, IndexMetadata | EquipoiseError]] = []
    for path in sorted(folder.glob(f"*/{META}")) if folder.is_dir() else []:
        if not path.parent.name.startswith("."):
            try:
                found.append((path.parent, read_metadata(path.parent)))
            except EquipoiseError as error:
                found.append((path.parent, error))
    return found


def check_is_folder(folder: Path) -> None:
    """Indexes lie in a folder: a file in its place is no fault of rights."""
    if folder.is_file():
        raise StoreError(f"{folder} is a file, and indexes lie in a folder", hint="name one with --index-dir")


def checksum_of(path: Path) -> int:
    """CRC-32 of a file: damage is to be noticed, not malice."""
    value = 0
    with open(path, "rb") as stream:
        while block := stream.read(_READ_AT_ONCE):
            value = zlib.crc32(block, value)
    return value


def damaged_index_error(folder: Path, fact: str) -> StoreError:
    """The index cannot be used, and what to do."""
    return StoreError(
        f"the index {folder} is damaged: {fact}",
        hint="build it again; vectors that are in the cache are not computed again",
    )


def _said(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {Path(str(error.filename)).name}"
    return (str(error).splitlines() or [""])[0] or type(error).__name__


_KINDS: dict[str, Any] = {
    "model": str, "model_spec": str, "model_name": str, "dims": int, "ontology": str, "ontology_name": str,
    "release": str, "citation": str, "multi": bool, "terms": int, "components": int, "texts": str,
    "checksum": int,
}  # fmt: skip
