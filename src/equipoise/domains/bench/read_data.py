"""Which kind of data a source is: named as ``kind:PATH``, or recognised by its files and columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from equipoise.domains.bench.base_data import BenchData
from equipoise.domains.bench.retrieval_data import Reranking, Retrieval
from equipoise.domains.bench.text_data import (
    BINARY,
    FEW_SHOT_METRICS,
    FEW_SHOT_TITLE,
    Bitext,
    Classification,
    Clustering,
    PairClassification,
    Similarity,
    language_columns,
)
from equipoise.errors import DuplicateError, EquipoiseError, FormatError, InputError, UnknownNameError, did_you_mean
from equipoise.io.columns import (
    ColumnTable,
    as_text,
    is_frame,
    is_saved_dataset,
    split_tables,
    stem_of,
    table_of,
    tables_in,
)
from equipoise.io.retrieval_tables import has_retrieval_files, ir_datasets_parts

KINDS: dict[str, type[BenchData]] = {
    each.kind: each
    for each in (Retrieval, Reranking, Similarity, PairClassification, Classification, Clustering, Bitext)
}
"""The kinds of data by name."""

FEW_SHOT = "few-shot"

PREFIXES: dict[str, tuple[type[BenchData], Mapping[str, Any]]] = {
    **{name: (kind, {}) for name, kind in KINDS.items()},
    FEW_SHOT: (Classification, {"protocol": FEW_SHOT}),
    "sts": (Similarity, {}),
    "pairs": (PairClassification, {}),
}
"""What can precede a path with a colon."""


class ListedKind(NamedTuple):
    """A kind of data as ``eq bench ls`` lists it."""

    kind: str
    title: str
    formats: str
    metrics: tuple[str, ...]


def listed_kinds() -> list[ListedKind]:
    """Every kind of data; few-shot classification is listed after classification.

    >>> [entry.kind for entry in listed_kinds()][4:7]
    ['classification', 'few-shot', 'clustering']
    """
    entries = []
    for kind in KINDS.values():
        entries.append(ListedKind(kind.kind, kind.title, kind.formats, tuple(kind.metrics)))
        if kind is Classification:
            formats = f"one table with text and label, named as {FEW_SHOT}:PATH"
            entries.append(ListedKind(FEW_SHOT, FEW_SHOT_TITLE, formats, FEW_SHOT_METRICS))
    return entries


def read_data(source: Any, *, text: Sequence[str] = (), split: str | None = None, name: str = "") -> BenchData:
    """Read a data set and recognise its kind.

    Parameters
    ----------
    source
        A path, ``kind:PATH``, a frame, a ``datasets`` object, or rows in Python. A ``BenchData`` is returned unchanged.
    text
        The columns of text: two for pairs, one or more (joined) otherwise.
    split
        The split of a BEIR folder.
    name
        The name in reports. Default: the name of the file or folder.

    Returns
    -------
    BenchData
        A ``Retrieval``, ``Similarity``, ``Classification`` or another kind of data.

    Examples
    --------
    >>> read_data([{"text_a": "a", "text_b": "b", "score": s} for s in (1.0, 2.5)]).kind
    'similarity'
    """
    if isinstance(source, BenchData):
        return source
    prefix, source = split_prefix(source)
    if isinstance(source, str | PathLike):
        path = Path(source)
        if not path.exists():
            raise _missing_file(str(source))
        name = name or _name(path)
    kind, options = PREFIXES[prefix] if prefix else (None, {})
    if isinstance(source, str | PathLike) and has_retrieval_files(Path(source)):
        if kind not in (None, Retrieval):
            raise FormatError(f"{source} is a retrieval folder, not {prefix} data", hint="leave the prefix out")
        return Retrieval(source, name=name, split=split, text=text)
    if ir_datasets_parts(source) is not None:
        return Retrieval(source, name=name or source.dataset_id())
    table = table_of(source, name=name)
    chosen = kind or recognise(table, text)
    built: BenchData = chosen(table, name=name or table.name, text=text, **options)  # type: ignore[call-arg]
    return built


def _is_retrieval_folder(source: Any) -> bool:
    path = split_prefix(source)[1]
    return isinstance(path, str | PathLike) and has_retrieval_files(Path(path))


def _missing_file(text: str) -> EquipoiseError:
    """The error for a path that does not exist; a word before a colon may be a kind with a typo."""
    kind, _, rest = text.partition(":")
    if rest and Path(rest).exists():
        return UnknownNameError.of("kind of data", kind, PREFIXES, more=f"the kinds are {', '.join(PREFIXES)}")
    folder = Path(text).parent
    names = [file.name for file in folder.iterdir()] if folder.is_dir() else []
    hint = did_you_mean(Path(text).name, names) or "check the path; eq bench ls lists the formats"
    return InputError(f"there is no file or folder {text}", hint=hint)


def split_prefix(source: Any) -> tuple[str, Any]:
    """The kind and the path of ``kind:PATH``; the kind of any other source is empty.

    >>> split_prefix("clustering:tickets.csv"), split_prefix("tickets.csv")
    (('clustering', 'tickets.csv'), ('', 'tickets.csv'))
    """
    if isinstance(source, str):
        head, colon, rest = source.partition(":")
        if colon and head.casefold() in PREFIXES and not Path(source).exists():
            return head.casefold(), rest
    return "", source


def expand_folder(source: Any) -> list[tuple[Any, str]]:
    """The tables of a folder that is not one data set, each with the name ``folder/table``; or the unchanged input."""
    prefix, path = split_prefix(source)
    if not isinstance(path, str | PathLike) or not Path(path).is_dir():
        return [(source, "")]
    folder = Path(path)
    if has_retrieval_files(folder) or is_saved_dataset(folder) or split_tables(folder):
        return [(source, "")]
    tables = [
        (f"{prefix}:{file}" if prefix else file, f"{_name(folder)}/{stem_of(file)}") for file in tables_in(folder)
    ]
    return tables or [(source, "")]


def read_suite(sources: Any, *, text: Sequence[str] = (), split: str | None = None) -> list[BenchData]:
    """Several data sets with unique names."""
    named_sources = (
        [sources]
        if isinstance(sources, str | PathLike | BenchData) or is_frame(sources) or hasattr(sources, "docs_iter")
        else list(sources)
    )
    if not named_sources:
        raise InputError("no data was given", hint="give a folder or a table; eq bench ls lists the formats")
    if split is not None and not any(map(_is_retrieval_folder, named_sources)):
        raise InputError(f"no BEIR folder was given, so there is no split {split}", hint="leave out --split")
    datasets = _read_all([part for source in named_sources for part in expand_folder(source)], text, split)
    names = Counter(data.name for data in datasets)
    for data in datasets:
        if names[data.name] > 1:  # one table as two kinds of data
            is_few_shot = isinstance(data, Classification) and data.protocol == FEW_SHOT
            data.name = f"{data.name} ({FEW_SHOT if is_few_shot else data.kind})"
    names = Counter(data.name for data in datasets)
    for name, count in names.items():
        if count > 1:
            raise DuplicateError(f"two data sets are named {name}", hint="rename one of the files")
    return datasets


def _read_all(sources: Sequence[tuple[Any, str]], text: Sequence[str], split: str | None) -> list[BenchData]:
    """All data sets; ``text`` and ``split`` each apply to those that have them, and to one data set at least."""
    if len(sources) == 1 or not (text or split):
        return [read_data(source, text=text, split=split, name=name) for source, name in sources]
    attempts = list(dict.fromkeys([(tuple(text), split), (tuple(text), None), ((), split), ((), None)]))
    datasets = []
    without_text: list[EquipoiseError] = []
    without_split: list[EquipoiseError] = []
    for source, name in sources:
        errors: list[EquipoiseError] = []
        for some_text, some_split in attempts:
            try:
                datasets.append(read_data(source, text=some_text, split=some_split, name=name))
            except (UnknownNameError, InputError) as error:
                errors.append(error)
                continue
            if text and not some_text:
                without_text.append(errors[:2][-1])  # the error without the split, if there is one
            if split is not None and some_split is None:
                without_split.append(errors[-1])
            break
        else:
            raise errors[0]
    n_folders = sum(_is_retrieval_folder(source) for source, _ in sources)
    for errors, count in ((without_text, len(sources)), (without_split, n_folders)):
        if errors and len(errors) == count:
            raise errors[0]
    return datasets


def recognise(table: ColumnTable, text: Sequence[str] = ()) -> type[BenchData]:
    """The kind that fits the columns of a table; an error lists what was found."""
    roles = {
        role for role in ("query", "positive", "negative", "text_a", "text_b", "score", "label") if table.find(role)
    }
    if {"query", "positive"} <= roles and table.find("positive") != table.find("query"):
        return Reranking if _has_candidate_lists(table) else Retrieval
    if {"text_a", "text_b"} <= roles or len(text) == 2 or ("label" not in roles and len(language_columns(table)) == 2):
        if "label" in roles and _is_binary(table, "label"):
            return PairClassification
        if "score" in roles:
            return PairClassification if _is_binary(table, "score") else Similarity
        return PairClassification if "label" in roles else Bitext
    if "label" in roles and (table.find("text") or text):
        return Classification
    raise FormatError(
        f"the columns of {table.name} fit no kind of data: {', '.join(table.columns)}",
        hint="rename the columns in the first line (eq bench ls lists the names), or use KIND:PATH --text COLUMN",
    )


def _has_candidate_lists(table: ColumnTable) -> bool:
    """Whether each query has its own candidates: lists of negatives, or a plural column."""
    column = table.find("negative")
    if column is None:
        return False
    return column.casefold().endswith("s") or any(len(texts) > 1 for texts in table.lists(column))


def _values(table: ColumnTable, role: str) -> list[str]:
    column = table.find(role)
    return [] if column is None else [text for value in table.columns[column] if (text := as_text(value).casefold())]


def _is_binary(table: ColumnTable, role: str) -> bool:
    return all(value in BINARY for value in _values(table, role))


def _name(path: Path) -> str:
    return path.resolve().name if path.is_dir() else stem_of(path)
