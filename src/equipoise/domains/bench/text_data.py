"""Data of pairs of texts: similarity with scores, classification with binary labels, and parallel sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.domains.bench.base_data import (
    BenchData,
    BenchObservation,
    EvaluatedSystem,
    IssueLog,
    UsedColumns,
    require_rows,
    slices_of,
)
from equipoise.errors import FormatError, InputError, UnknownNameError
from equipoise.evidence.labels import Labels
from equipoise.evidence.pairs import Pairs
from equipoise.evidence.ranking import Ranking
from equipoise.geometry.distances import cosine
from equipoise.io.columns import TRAIN, ColumnTable, as_number, as_text, table_of
from equipoise.progress import portion
from equipoise.runs.unit_table import UnitContent
from equipoise.stats.formatting import format_count
from equipoise.tasks.classification import (
    SHOTS,
    class_folds,
    cross_validated_classes,
    few_shot_hits,
    logistic_classes,
    nearest_neighbour_classes,
)
from equipoise.tasks.numpy_estimators import kmeans

if TYPE_CHECKING:
    from equipoise.types import Bools, Floats, Ints


BINARY = {
    "0": 0.0, "1": 1.0, "0.0": 0.0, "1.0": 1.0, "false": 0.0, "true": 1.0, "no": 0.0, "yes": 1.0,
    "not_duplicate": 0.0, "duplicate": 1.0, "not_entailment": 0.0, "entailment": 1.0, "contradiction": 0.0,
}  # fmt: skip
"""Labels of pairs that are read as negative or positive."""


def text_columns(table: ColumnTable, text: Sequence[str]) -> tuple[str, str]:
    """The two columns of text: as chosen, by their usual names, or two columns named after languages."""
    if text:
        if len(text) != 2:
            raise InputError(f"pairs have two text columns, and --text names {len(text)}", hint="--text FIRST SECOND")
        return table.column("text_a", text[0]), table.column("text_b", text[1])
    if table.find("text_a") is None and len(languages := language_columns(table)) == 2:
        return languages[0], languages[1]
    return table.column("text_a"), table.column("text_b")


def language_columns(table: ColumnTable) -> list[str]:
    """Columns of texts that are named like language codes: en, de, deu, en_US."""
    codes = [name for name in table.columns if name.casefold().replace("-", "_").partition("_")[0].isalpha()]
    return [
        name
        for name in codes
        if len(name.replace("-", "_").partition("_")[0]) in (2, 3)
        and name.casefold() not in ("id", "uid", "qid")
        and any(as_text(value) and as_number(value) is None for value in table.columns[name])
    ]


class _PairTable(BenchData):
    """Rows with two texts, and a number for those kinds that have one."""

    unit = "pair"

    def __init__(self, table: Any, *, name: str = "", text: Sequence[str] = (), value: str | None = None) -> None:
        source = table_of(table, name=name)
        self.name = name or source.name
        log = IssueLog()
        first, second = text_columns(source, text)
        column = self._value_column(source, value)
        used = [first, second, *([column] if column else [])]
        roles = () if text else ("text_a", "text_b")
        self.columns = UsedColumns.of(source, roles, texts=[first, second], value=[column] if column else [])
        one, other = source.texts(first), source.texts(second)
        numbers = [0.0] * len(source) if column is None else self._numbers(source, column)
        rows, blank_rows, unscored, repeated = [], [], [], []
        pairs: set[tuple[str, str]] = set()
        for row, (a, b, number) in enumerate(zip(one, other, numbers, strict=True)):
            if not a or not b:
                blank_rows.append(f"row {row + 1}")
            elif number is None:
                unscored.append(f"row {row + 1}")
            else:
                rows.append(row)
                if (a, b) in pairs:
                    repeated.append(f"row {row + 1}")
                pairs.add((a, b))
        log.add("blank_texts", blank_rows)
        log.add("blank_labels", unscored)
        log.add("repeated_pairs", repeated)
        require_rows(rows, self.name, "pairs", log, minimum=2)
        self._first, self._second = [one[row] for row in rows], [other[row] for row in rows]
        self._values = np.array([numbers[row] for row in rows], dtype=np.float64)
        self._ids = [str(row + 1) for row in rows]
        self.issues = log.issues
        kept_rows = set(rows)
        used_table = source.rows([row in kept_rows for row in range(len(source))])
        self.slices = slices_of(self._ids, used_table.properties(used))
        self._check()

    def _value_column(self, table: ColumnTable, chosen: str | None) -> str | None:
        return table.column("score", chosen)

    def _numbers(self, table: ColumnTable, column: str) -> list[float | None]:
        return [as_number(value) for value in table.columns[column]]

    def _check(self) -> None:
        """Raise an error for values that cannot be scored."""

    @property
    def unit_ids(self) -> Sequence[str]:
        """The rows of the table."""
        return self._ids

    @property
    def size(self) -> str:
        """The number of pairs."""
        return f"{format_count(len(self._ids))} pairs"

    @property
    def content(self) -> Any:
        """Texts and values."""
        return [self._ids, self._first, self._second, self._values.tolist()]

    @property
    def texts(self) -> tuple[Sequence[str], Sequence[str]]:
        """All texts are documents."""
        return [], list(dict.fromkeys([*self._first, *self._second]))

    def observe(self, system: EvaluatedSystem, *, seed: int = 0) -> BenchObservation:
        """The cosine of each pair."""
        cosines = self._cosines(system)
        return BenchObservation(Pairs.of(cosines, self._values, unit_ids=self._ids), details=self._details())

    def _cosines(self, system: EvaluatedSystem) -> Floats:
        texts = list(self.texts[1])
        place = {text: row for row, text in enumerate(texts)}
        vectors = system.vectors(texts)
        one, other = ([place[text] for text in side] for side in (self._first, self._second))
        return row_cosines(vectors[one], vectors[other])

    def _details(self) -> dict[str | int, UnitContent]:
        return {
            unit: UnitContent(f"{a} | {b}", (f"{value:g}",), self.slices.get(unit, {}))
            for unit, a, b, value in zip(self._ids, self._first, self._second, self._values.tolist(), strict=True)
        }


def row_cosines(one: Any, other: Any) -> Floats:
    """The cosine of each row with the same row of the other, for arrays or sparse matrices of unit rows.

    >>> row_cosines(np.eye(2), np.array([[0.6, 0.8], [0.0, 0.0]])).round(6).tolist()
    [0.6, 0.0]
    """
    if isinstance(one, np.ndarray):
        return np.asarray(1.0 - cosine(one.astype(np.float64), np.asarray(other, dtype=np.float64)))
    return np.asarray(one.multiply(other).sum(axis=1), dtype=np.float64).ravel()


class Similarity(_PairTable):
    """Pairs of texts with a similarity score by people.

    Parameters
    ----------
    table
        A path, a data frame, a ``datasets`` object, or rows in Python.
    name
        The name in reports. Default: the name of the file.
    text
        The two columns of text, if their names are unusual.
    value
        The column of the score, if its name is unusual.

    >>> rows = [{"text_a": "a", "text_b": "b", "score": 1}, {"text_a": "a", "text_b": "c", "score": 4}]
    >>> Similarity(rows).size
    '2 pairs'
    """

    kind = "similarity"
    title = "semantic similarity of pairs"
    formats = "one table with text_a, text_b and score (also sentence1, sentence2, similarity, ...)"
    metrics = ("Spearman", "Pearson")
    bounds = (-1.0, 1.0)

    def _check(self) -> None:
        if np.ptp(self._values) == 0:
            raise InputError(
                f"all scores of {self.name} are {self._values[0]:g}", hint="a correlation needs different scores"
            )


class PairClassification(_PairTable):
    """Pairs of texts with a binary label: duplicates, paraphrases, entailment.

    Parameters
    ----------
    table
        A path, a data frame, a ``datasets`` object, or rows in Python.
    name
        The name in reports. Default: the name of the file.
    text
        The two columns of text, if their names are unusual.
    value
        The column of the label, if its name is unusual.

    >>> rows = [{"text_a": "a", "text_b": "b", "label": 1}, {"text_a": "a", "text_b": "c", "label": "no"}]
    >>> PairClassification(rows).size
    '2 pairs, 1 positive'
    """

    kind = "pair-classification"
    title = "classification of pairs (duplicates, entailment)"
    formats = "one table with text_a, text_b and label (0 or 1, true or false, yes or no)"
    metrics = ("AP", "F1")

    def _value_column(self, table: ColumnTable, chosen: str | None) -> str | None:
        if chosen is None and table.find("label") is None:
            chosen = table.find("score")
        return table.column("label", chosen)

    def _numbers(self, table: ColumnTable, column: str) -> list[float | None]:
        texts = [as_text(value).casefold() for value in table.columns[column]]
        unknown = sorted({text for text in texts if text and text not in BINARY})
        if unknown:
            raise FormatError(
                f"the column {column} of {table.name} has the label {unknown[0]!r}; labels of pairs are binary",
                hint="write 0 and 1 and leave out other classes; a column of graded similarity is called score",
            )
        return [BINARY.get(text) for text in texts]

    def _check(self) -> None:
        if np.ptp(self._values) == 0:
            raise InputError(
                f"all pairs of {self.name} have the label {self._values[0]:g}", hint="both labels are needed, 0 and 1"
            )

    @property
    def size(self) -> str:
        """Pairs, and how many of them are positive."""
        return f"{format_count(len(self._ids))} pairs, {format_count(int(self._values.sum()))} positive"


class Bitext(_PairTable):
    """Parallel sentences: each text must find its translation among all translations, in both directions.

    Parameters
    ----------
    table
        A path, a data frame, a ``datasets`` object, or rows in Python.
    name
        The name in reports. Default: the name of the file.
    text
        The two columns of text, if their names are unusual.

    >>> Bitext([{"en": "a dog", "de": "ein Hund"}, {"en": "a cat", "de": "eine Katze"}]).size
    '2 pairs, both directions'
    """

    kind = "bitext"
    title = "bitext mining (parallel sentences)"
    formats = "one table with text_a and text_b, or with two columns named after languages (en, de)"
    unit = "query"
    metrics = ("HR@1", "MRR")
    needs_vectors = False

    def _value_column(self, table: ColumnTable, chosen: str | None) -> str | None:
        return None

    @property
    def unit_ids(self) -> Sequence[str]:
        """Each pair in both directions."""
        return [f"{unit} {direction}" for direction in ("a>b", "b>a") for unit in self._ids]

    @property
    def clusters(self) -> Mapping[str, str] | None:
        """The two directions of a pair are resampled together."""
        return {unit: unit.split(" ")[0] for unit in self.unit_ids}

    @property
    def size(self) -> str:
        """The number of pairs."""
        return f"{format_count(len(self._ids))} pairs, both directions"

    def observe(self, system: EvaluatedSystem, *, seed: int = 0) -> BenchObservation:
        """The rank of the translation in both directions; equal texts are one target."""
        units = list(self.unit_ids)
        half = len(self._ids)
        directions = ((self._first, self._second, units[:half]), (self._second, self._first, units[half:]))
        rankings = []
        for number, (queries, targets, ids) in enumerate(directions):
            with portion(number / 2, (number + 1) / 2):
                rankings.append(_ranking(system, queries, targets, ids))
        return BenchObservation(Ranking.concatenated(rankings), details=self._both_details())

    def _both_details(self) -> dict[str | int, UnitContent]:
        sides = (*zip(self._first, self._second, strict=True), *zip(self._second, self._first, strict=True))
        return {
            unit: UnitContent(
                query, (target,), {**self.slices.get(unit.split(" ")[0], {}), "direction": unit.split(" ")[1]}
            )
            for unit, (query, target) in zip(self.unit_ids, sides, strict=True)
        }


def _ranking(system: EvaluatedSystem, queries: Sequence[str], targets: Sequence[str], ids: Sequence[str]) -> Ranking:
    documents = list(dict.fromkeys(targets))
    place = {text: row for row, text in enumerate(documents)}
    return Ranking.from_blocks(
        system.retriever.fit(documents).score_blocks(list(queries)),
        [[place[target]] for target in targets],
        units=len(queries),
        corpus=len(documents),
        unit_ids=list(ids),
    )


KNN = "Acc(kNN)"
PROTOCOLS = ("probe", "few-shot")
FEW_SHOT_TITLE = f"classification of texts from {SHOTS} examples per label (MTEB's protocol)"
FEW_SHOT_METRICS = ("Acc",)
TEST = "test"


class _LabelTable(BenchData):
    """Rows with a text and a label."""

    unit = "text"

    def __init__(self, table: Any, *, name: str = "", text: Sequence[str] = (), label: str | None = None) -> None:
        source = table_of(table, name=name)
        self.name = name or source.name
        log = IssueLog()
        text_columns = [source.column("text", text_name) for text_name in text] or [source.column("text")]
        label_column = source.column("label", label)
        roles = ("label",) if text else ("text", "label")
        self.columns = UsedColumns.of(source, roles, texts=text_columns, labels=[label_column])
        texts, labels = source.joined(text_columns), source.texts(label_column)
        split_column = source.find("split")
        splits = (
            [""] * len(source) if split_column is None else [split.casefold() for split in source.texts(split_column)]
        )
        rows, blank_rows, unlabelled, repeated, leaked, others = [], [], [], [], [], []
        label_of: dict[str, set[str]] = {}
        has_test = TEST in splits
        train_texts = {text for text, split in zip(texts, splits, strict=True) if split in TRAIN}
        for row, key in enumerate(zip(texts, labels, splits, strict=True)):
            if not key[0]:
                blank_rows.append(f"row {row + 1}")
            elif not key[1]:
                unlabelled.append(f"row {row + 1}")
            elif has_test and train_texts and key[2] not in (*TRAIN, TEST):
                others.append(f"row {row + 1}")
            elif train_texts and key[2] not in TRAIN and key[0] in train_texts:
                leaked.append(f"row {row + 1}")
            else:
                rows.append(row)
                if key[0] in label_of:
                    repeated.append(f"row {row + 1}")
                label_of.setdefault(key[0], set()).add(key[1])
        conflicting = [text[:40] for text, text_labels in label_of.items() if len(text_labels) > 1]
        log.add("blank_texts", blank_rows)
        log.add("blank_labels", unlabelled)
        log.add("leaked_texts", leaked)
        log.add("other_splits", others)
        log.add("repeated_texts", repeated)
        log.add("conflicting_labels", conflicting)
        require_rows(rows, self.name, "texts", log, minimum=4)
        if leaked and all(splits[row] in TRAIN for row in rows):
            raise InputError(
                f"every text of {self.name} outside the training split is also in it",
                hint="use other texts for the test split, or remove the column split",
            )
        self._texts, self._labels = [texts[row] for row in rows], [labels[row] for row in rows]
        self._splits = [splits[row] for row in rows]
        self._ids = [str(row + 1) for row in rows]
        names, counts = np.unique(self._labels, return_counts=True)
        if len(names) < 2:
            raise InputError(
                f"all texts of {self.name} have the label {names[0]}", hint="at least two labels are needed"
            )
        log.add("single_texts", names[counts == 1].tolist())
        if len(names) > len(rows) / 2:
            raise InputError(
                f"{self.name} has {len(names)} labels for {len(rows)} texts", hint="is this the column of the labels?"
            )
        self.issues = log.issues
        kept_rows = set(rows)
        used_table = source.rows([row in kept_rows for row in range(len(source))])
        used = [*text_columns, label_column, *([split_column] if split_column else [])]
        self.slices = slices_of(self._ids, used_table.properties(used))

    @property
    def codes(self) -> Ints:
        """The class of each text as a number."""
        return np.unique(self._labels, return_inverse=True)[1].astype(np.int64)

    @property
    def train(self) -> Bools:
        """The rows of the training split; none if there is no split."""
        return np.array([split in TRAIN for split in self._splits])

    @property
    def unit_ids(self) -> Sequence[str]:
        """The rows of the table."""
        return self._ids

    @property
    def size(self) -> str:
        """Texts and labels."""
        return f"{format_count(len(self._ids))} texts, {len(set(self._labels))} labels"

    @property
    def content(self) -> Any:
        """Texts, labels and splits."""
        return [self._ids, self._texts, self._labels, self._splits]

    @property
    def texts(self) -> tuple[Sequence[str], Sequence[str]]:
        """All texts are documents."""
        return [], list(dict.fromkeys(self._texts))

    def _vectors(self, system: EvaluatedSystem) -> Any:
        """One row per text of the table."""
        distinct = list(self.texts[1])
        place = {text: row for row, text in enumerate(distinct)}
        vectors = system.vectors(distinct)
        if isinstance(vectors, np.ndarray):
            vectors = vectors.astype(np.float64)
        return vectors[np.array([place[text] for text in self._texts], dtype=np.int32)]

    def _labels_of(self, predicted: Ints, rows: Ints) -> Labels:
        """The evidence of some rows, with class names."""
        names = np.unique(self._labels).astype(object)
        ids = np.array(self._ids, dtype=object)[rows]
        return Labels(ids, self.codes[rows], predicted[rows], names)

    def _details(self, predicted: Sequence[str] | None = None) -> dict[str | int, UnitContent]:
        return {
            unit: UnitContent(text, (label,), self.slices.get(unit, {}))
            for unit, text, label in zip(self._ids, self._texts, self._labels, strict=True)
        }


class Classification(_LabelTable):
    """Texts with a label, predicted from the vectors.

    Parameters
    ----------
    table
        A table with text and label, as a path, a data frame, a ``datasets`` object, or rows in Python. A fixed split is
        a column ``split``, or a folder with the files train and test.
    name
        The name in reports. Default: the name of the file.
    protocol
        ``probe``: logistic regression by stratified 5-fold cross-validation, or trained on the train split.
        ``few-shot``: MTEB's protocol, 8 texts per label, 10 experiments.
    text
        The column of the text, if its name is not recognised.
    label
        The column of the label, if its name is not recognised.

    >>> rows = [{"text": f"text {i}", "label": "ab"[i % 2]} for i in range(8)]
    >>> Classification(rows).size
    '8 texts, 2 labels'
    """

    kind = "classification"
    title = "classification of texts"
    formats = "one table with text and label; a column split or files train and test give a fixed split"
    metrics: tuple[str, ...] = ("Acc", "F1(average=macro)", KNN)

    def __init__(
        self,
        table: Any,
        *,
        name: str = "",
        text: Sequence[str] = (),
        label: str | None = None,
        protocol: str = "probe",
    ) -> None:
        if protocol not in PROTOCOLS:
            raise UnknownNameError.of("protocol", protocol, PROTOCOLS, more=f"choose {' or '.join(PROTOCOLS)}")
        super().__init__(table, name=name, text=text, label=label)
        self.protocol = protocol
        if protocol == "few-shot":
            self.metrics = FEW_SHOT_METRICS
            has_split = len(self._tested) < len(self._ids)
            if not has_split and np.bincount(self.codes).max() <= SHOTS:
                raise InputError(
                    f"no label of {self.name} has more than {SHOTS} texts, so few-shot training leaves none to predict",
                    hint="add texts, give a test split, or use classification:PATH",
                )

    @property
    def content(self) -> Any:
        """The rows and the protocol."""
        return [*super().content, self.protocol]

    @property
    def _tested(self) -> Ints:
        """The rows that are predicted: all, or those outside the training split."""
        train = self.train
        return np.flatnonzero(~train) if train.any() and not train.all() else np.arange(len(self._ids))

    @property
    def unit_ids(self) -> Sequence[str]:
        """The rows that are predicted."""
        return [self._ids[row] for row in self._tested.tolist()]

    def observe(self, system: EvaluatedSystem, *, seed: int = 0) -> BenchObservation:
        """Predict the label of every tested text."""
        vectors, codes, tested = self._vectors(system), self.codes, self._tested
        fixed = len(tested) < len(codes)
        if self.protocol == "few-shot":
            train = np.flatnonzero(self.train) if fixed else np.arange(len(codes))
            hits = few_shot_hits(vectors, codes, train, tested if fixed else None)[tested]
            chance = 1 / len(np.unique(codes))
            return BenchObservation(None, values={"Acc": hits}, chance={"Acc": chance}, details=self._details())
        folds = class_folds(codes, groups=self._texts, seed=seed) if not fixed else []
        splits = folds or [(np.flatnonzero(self.train), tested)]
        predicted = cross_validated_classes(logistic_classes, vectors, codes, splits)
        nearest = cross_validated_classes(nearest_neighbour_classes, vectors, codes, splits)
        further = {KNN: (self._labels_of(nearest, tested), "Acc")}
        return BenchObservation(self._labels_of(predicted, tested), further=further, details=self._details())


class Clustering(_LabelTable):
    """Texts with a label, compared with K-means clusters of the vectors.

    Parameters
    ----------
    table
        A path, a data frame, a ``datasets`` object, or rows in Python.
    name
        The name in reports. Default: the name of the file.
    text
        The column of the text, if its name is not recognised.
    label
        The column of the label, if its name is not recognised.

    >>> rows = [{"text": f"text {i}", "label": "ab"[i % 2]} for i in range(8)]
    >>> Clustering(rows).primary
    'V'
    """

    kind = "clustering"
    title = "clustering of texts"
    formats = "one table with text and label, named as clustering:PATH"
    metrics = ("V", "ARI", "NMI")

    def observe(self, system: EvaluatedSystem, *, seed: int = 0) -> BenchObservation:
        """As many clusters as there are labels."""
        assignment = kmeans(self._vectors(system), len(set(self._labels)), seed=seed)
        clusters = [f"cluster {number}" for number in assignment.tolist()]
        return BenchObservation(Labels.of(self._labels, clusters, unit_ids=self._ids), details=self._details())
