"""The texts of each term, and the files of an index of their vectors.

The order of the texts makes aggregation cheap. Terms are sorted by decreasing number of synonyms; among equals,
those with a definition come first. The columns are all labels, then the first synonym of every term that has
one, then the second synonyms, and so on; the definitions are last. Each synonym run belongs to a prefix of the
sorted terms and the definitions to a few runs of terms, so a maximum is a few maxima of contiguous columns
(about nine times as fast as numpy's ``reduceat`` over segments).

The folder of an index has ``vectors.npy`` (one row per component), ``keys.npy`` (a digest of the text of each
component), ``first.npy`` (for each vector the index of the first equal vector) and ``meta.json``. It is written to a
temporary folder and renamed when it is complete, so readers never see a partial index.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from enum import IntEnum
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import EquipoiseError, PartialError, StoreError
from equipoise.io.atomic import atomic_directory, current_path, write_array, write_error, write_text

if TYPE_CHECKING:
    from equipoise.domains.phenotypes.ontology import Ontology
    from equipoise.models.encoder import Vectors
    from equipoise.types import Ints

TEXTS_VERSION = "texts 1"
"""Increased when the same ontology gives other texts or another order."""


class ComponentKind(IntEnum):
    """The role of a text for its term."""

    LABEL = 0
    SYNONYM = 1
    DEFINITION = 2
    WHOLE = 3
    """Label, synonyms and definition in one text: the only component of a term in a single-vector index."""


@dataclass(frozen=True, slots=True, eq=False)
class TermTexts:
    """The texts of all terms; column i of a score matrix is text i.

    ``term`` is the index of its term in the ontology and ``kind`` a code of ``ComponentKind``. ``order`` has the terms
    in sorted order; ``synonym_runs`` has the number of sorted terms with a first synonym, a second synonym and
    so on; ``definition_positions`` has the positions, among the sorted terms, of those with a definition.
    """

    texts: tuple[str, ...]
    term: Ints
    kind: Ints
    order: Ints
    synonym_runs: tuple[int, ...] = ()
    definition_positions: Ints | None = None

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def terms(self) -> int:
        return len(self.order)

    @property
    def multi_vector(self) -> bool:
        """Whether label, synonyms and definition are separate texts."""
        return self.definition_positions is not None

    @property
    def without_definitions(self) -> int:
        """The number of leading texts that are labels or synonyms."""
        return self.terms + sum(self.synonym_runs)

    @property
    def fingerprint(self) -> str:
        """A digest of the texts in order, and of their terms."""
        digest = sha256(np.ascontiguousarray(self.term).tobytes())
        for text in self.texts:
            digest.update(sha256(text.encode()).digest())
        return digest.hexdigest()

    def subset(self, terms: Ints) -> tuple[TermTexts, Ints]:
        """The components of some distinct terms, and their columns here; term i of them is ``terms[i]``."""
        position = np.full(self.terms, -1, dtype=np.int64)
        position[terms] = np.arange(len(terms))
        columns = np.flatnonzero(position[self.term] >= 0)
        arranged = position[self.order] >= 0
        positions = self.definition_positions
        if positions is not None:
            positions = (np.cumsum(arranged) - 1)[positions[arranged[positions]]]
        subset = TermTexts(
            texts=tuple(self.texts[column] for column in columns),
            term=position[self.term[columns]],
            kind=self.kind[columns],
            order=position[self.order[arranged]],
            synonym_runs=tuple(filter(None, (int(arranged[:size].sum()) for size in self.synonym_runs))),
            definition_positions=positions,
        )
        return subset, columns


def term_texts(ontology: Ontology, multi_vector: bool = True) -> TermTexts:
    """The texts of an ontology's terms: one per component, or one per term."""
    make = component_texts if multi_vector else concatenated_texts
    labels = [label.strip() or name for name, label in zip(ontology.ids, ontology.labels, strict=True)]
    return make(labels, ontology.synonyms, ontology.definitions)


def component_texts(labels: Sequence[str], synonyms: Sequence[Sequence[str]], definitions: Sequence[str]) -> TermTexts:
    """A text for each label, each synonym and each definition; blank ones are left out."""
    synonym_lists = [[synonym for synonym in term_synonyms if synonym.strip()] for term_synonyms in synonyms]
    counts = np.array([len(term_synonyms) for term_synonyms in synonym_lists], dtype=np.int64)
    order = np.lexsort((np.array([not definition.strip() for definition in definitions]), -counts))
    rounds = tuple(int((counts > number).sum()) for number in range(counts.max(initial=0)))
    defined = np.array([at for at, term in enumerate(order) if definitions[term].strip()], dtype=np.int64)
    terms = [order, *(order[:size] for size in rounds), order[defined]]
    kinds = [ComponentKind.LABEL, *(ComponentKind.SYNONYM for _ in rounds), ComponentKind.DEFINITION]
    texts = [labels[term] for term in order]
    texts += [synonym_lists[term][number] for number, size in enumerate(rounds) for term in order[:size]]
    texts += [definitions[term] for term in order[defined]]
    kind = np.repeat(np.array(kinds, dtype=np.int64), [len(numbers) for numbers in terms])
    return TermTexts(tuple(texts), np.concatenate(terms), kind, order, rounds, defined)


def concatenated_texts(
    labels: Sequence[str], synonyms: Sequence[Sequence[str]], definitions: Sequence[str]
) -> TermTexts:
    """One text per term: label, comma-separated synonyms and definition, joined by bars."""
    positions = np.arange(len(labels))
    texts = tuple(
        " | ".join(part for part in (label, ", ".join(filter(str.strip, term_synonyms)), definition) if part.strip())
        for label, term_synonyms, definition in zip(labels, synonyms, definitions, strict=True)
    )
    return TermTexts(texts, positions, np.full(len(labels), int(ComponentKind.WHOLE)), positions)


FORMAT = 2
META, VECTORS, KEYS, FIRST = "meta.json", "vectors.npy", "keys.npy", "first.npy"

Keys = NDArray[np.uint8]

_KEY_BYTES = 16
_READ_BYTES = 1 << 22


@dataclass(frozen=True, slots=True)
class IndexMetadata:
    """The model, ontology and texts of an index, and a checksum of the vectors."""

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
    multi_vector: bool
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
        """``multi-vector`` or ``single-vector``."""
        return "multi-vector" if self.multi_vector else "single-vector"


@dataclass(frozen=True, slots=True, eq=False)
class TermIndex:
    """The vectors of all components of all terms of an ontology, embedded by one model."""

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

    def check_compatible(self, ontology: Ontology, multi_vector: bool) -> None:
        """Raise an error unless the index was built for this ontology and representation."""
        check_metadata(self.meta, self.folder, ontology, multi_vector)


def text_digests(texts: tuple[str, ...]) -> Keys:
    """A digest of each text, used to find unchanged texts."""
    digests = b"".join(sha256(text.encode()).digest()[:_KEY_BYTES] for text in texts)
    return np.frombuffer(digests, dtype=np.uint8).reshape(len(texts), _KEY_BYTES)


def write_index(folder: Path, meta: IndexMetadata, keys: Keys, vectors: Vectors, first: Ints) -> None:
    try:
        with atomic_directory(folder) as part:
            write_array(part / VECTORS, vectors)
            write_array(part / KEYS, keys)
            write_array(part / FIRST, first)
            content = {**asdict(meta), "checksum": file_checksum(part / VECTORS)}
            write_text(part / META, json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    except (OSError, StoreError, PartialError) as error:
        reason = error if isinstance(error, OSError) else error.__cause__
        hint = "check the rights of the folder, or choose another with --index-dir"
        raise write_error(f"the index {folder}", reason, hint=hint) from error


def read_metadata(folder: Path) -> IndexMetadata:
    path = current_path(folder) / META
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["format"] != FORMAT:
            raise StoreError(
                f"the index {folder} has format {content['format']}, and this program reads {FORMAT}",
                hint="build it again",
            )
        meta = IndexMetadata(**content)
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise damaged_index_error(folder, f"{META} cannot be parsed ({_error_reason(error)})") from error
    if any(type(getattr(meta, field.name)).__name__ != field.type for field in fields(meta)):
        raise damaged_index_error(folder, f"{META} has a field of the wrong type")
    return meta


def read_arrays(folder: Path, meta: IndexMetadata) -> tuple[Vectors, Keys, Ints]:
    """Vectors, text digests and duplicate indices, checked against the metadata."""
    path = current_path(folder)
    try:
        # The metadata are written last, so older vectors are unchanged; the checksum reads the whole file.
        newer = (path / VECTORS).stat().st_mtime_ns > (path / META).stat().st_mtime_ns
        if newer and file_checksum(path / VECTORS) != meta.checksum:
            raise damaged_index_error(folder, f"{VECTORS} has changed since it was written")
    except OSError as error:
        raise damaged_index_error(folder, _error_reason(error)) from error
    vectors = _load_array(folder, path / VECTORS, mmap_mode="r")
    keys, first = _load_array(folder, path / KEYS), _load_array(folder, path / FIRST)
    count = meta.components
    if vectors.shape != (count, meta.dims) or keys.shape != (count, _KEY_BYTES) or first.shape != (count,):
        raise damaged_index_error(folder, "the shapes of its arrays do not match the metadata")
    if first.dtype.kind != "i" or not ((first >= 0) & (first <= np.arange(count))).all():
        raise damaged_index_error(folder, f"{FIRST} has row numbers out of range")
    return vectors, keys, first


def _load_array(folder: Path, file: Path, **options: Any) -> Any:
    """Load an array; replaces numpy's messages, which suggest allow_pickle."""
    try:
        return np.load(file, allow_pickle=False, **options)
    except OSError as error:
        raise damaged_index_error(folder, _error_reason(error)) from error
    except (ValueError, EOFError) as error:
        raise damaged_index_error(folder, f"{file.name} is not a valid array file") from error


def check_metadata(meta: IndexMetadata, folder: Path, ontology: Ontology, multi_vector: bool) -> None:
    """Raise an error for an index of another ontology, release or representation."""
    expected = "multi-vector" if multi_vector else "single-vector"
    if meta.multi_vector != multi_vector:
        raise StoreError(f"the index {folder} is {meta.kind}, not {expected}", hint=f"build a {expected} one")
    if meta.ontology != ontology.fingerprint:
        note = " with other content" if meta.title == ontology.title else ""
        raise StoreError(
            f"the index {folder} was built for {meta.title}, and this is {ontology.title}{note}",
            hint="build it again: only new and changed texts are embedded",
        )


def find_indexes(folder: Path) -> list[tuple[Path, IndexMetadata | EquipoiseError]]:
    """All indexes in a folder, by name; one that cannot be read comes with the reason."""
    check_is_folder(folder)
    indexes: list[tuple[Path, IndexMetadata | EquipoiseError]] = []
    for path in sorted(folder.glob(f"*/{META}")) if folder.is_dir() else []:
        if not path.parent.name.startswith("."):
            try:
                indexes.append((path.parent, read_metadata(path.parent)))
            except EquipoiseError as error:
                indexes.append((path.parent, error))
    return indexes


def check_is_folder(folder: Path) -> None:
    if folder.is_file():
        raise StoreError(f"{folder} is a file, not a folder of indexes", hint="name one with --index-dir")


def file_checksum(path: Path) -> int:
    """CRC-32 of a file: detects damage, not tampering."""
    value = 0
    with open(path, "rb") as stream:
        while block := stream.read(_READ_BYTES):
            value = zlib.crc32(block, value)
    return value


def damaged_index_error(folder: Path, fact: str) -> StoreError:
    return StoreError(
        f"the index {folder} is damaged: {fact}",
        hint="build it again; vectors that are in the cache are not computed again",
    )


def _error_reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {Path(str(error.filename)).name}"
    return (str(error).splitlines() or [""])[0] or type(error).__name__
