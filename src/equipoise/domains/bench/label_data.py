"""Data of labelled texts: classification by cross-validation or few-shot, and clustering."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.domains.bench.base_data import (
    BenchData,
    BenchObservation,
    EvaluatedSystem,
    IssueLog,
    require_rows,
    slices_of,
)
from equipoise.errors import InputError, UnknownNameError
from equipoise.evidence.labels import Labels
from equipoise.io.columns import TRAIN, table_of
from equipoise.runs.unit_table import UnitContent
from equipoise.stats.formatting import format_count
from equipoise.tasks.classification import (
    class_folds,
    cross_validated_classes,
    few_shot_hits,
    kmeans,
    logistic_classes,
    nearest_neighbour_classes,
)

if TYPE_CHECKING:
    from equipoise.types import Bools, Ints

KNN = "Acc(kNN)"
PROTOCOLS = ("probe", "few-shot")
TEST = "test"


class _LabelTable(BenchData):
    """Rows with a text and a label."""

    unit = "text"

    def __init__(self, table: Any, *, name: str = "", text: Sequence[str] = (), label: str | None = None) -> None:
        source = table_of(table, name=name)
        self.name = name or source.name
        log = IssueLog()
        text_columns = [source.column("text", each) for each in text] or [source.column("text")]
        label_column = source.column("label", label)
        texts, labels = source.joined(text_columns), source.texts(label_column)
        split_column = source.find("split")
        splits = (
            [""] * len(source) if split_column is None else [each.casefold() for each in source.texts(split_column)]
        )
        rows, blank, unlabelled, repeated, leaked, others = [], [], [], [], [], []
        label_of: dict[str, set[str]] = {}
        has_test = TEST in splits
        train_texts = {text for text, split in zip(texts, splits, strict=True) if split in TRAIN}
        for row, key in enumerate(zip(texts, labels, splits, strict=True)):
            if not key[0]:
                blank.append(f"row {row + 1}")
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
        conflicting = [text[:40] for text, found in label_of.items() if len(found) > 1]
        log.add("blank_texts", blank)
        log.add("blank_labels", unlabelled)
        log.add("leaked_texts", leaked)
        log.add("other_splits", others)
        log.add("repeated_texts", repeated)
        log.add("conflicting_labels", conflicting)
        require_rows(rows, self.name, "text", log, minimum=4)
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
            raise InputError(f"all texts of {self.name} have the label {names[0]}", hint="two labels are needed")
        log.add("single_texts", names[counts == 1].tolist())
        if len(names) > len(rows) / 2:
            raise InputError(
                f"{self.name} has {len(names)} labels for {len(rows)} texts", hint="is this the column of the labels?"
            )
        self.issues = log.issues
        wanted = set(rows)
        kept = source.rows([row in wanted for row in range(len(source))])
        used = [*text_columns, label_column, *([split_column] if split_column else [])]
        self.slices = slices_of(self._ids, kept.properties(used))

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
        A table with text and label, and a column split or files train and test if there is a fixed split.
    protocol
        ``probe``: logistic regression by stratified 5-fold cross-validation, or trained on the train split.
        ``few-shot``: MTEB's protocol, 8 texts per label, 10 experiments.
    text, label
        The columns, where their names are unusual.

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
            self.metrics = ("Acc",)

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
            chance = float(np.mean(1 / len(np.unique(codes))))
            return BenchObservation(None, values={"Acc": hits}, chance={"Acc": chance}, details=self._details())
        folds = class_folds(codes, groups=self._texts, seed=seed) if not fixed else []
        splits = folds or [(np.flatnonzero(self.train), tested)]
        probe = cross_validated_classes(logistic_classes, vectors, codes, splits)
        nearest = cross_validated_classes(nearest_neighbour_classes, vectors, codes, splits)
        further = {KNN: (self._labels_of(nearest, tested), "Acc")}
        return BenchObservation(self._labels_of(probe, tested), further=further, details=self._details())


class Clustering(_LabelTable):
    """Texts with a label, compared with K-means clusters of the vectors.

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
        found = kmeans(self._vectors(system), len(set(self._labels)), seed=seed)
        clusters = [f"cluster {number}" for number in found.tolist()]
        return BenchObservation(Labels.of(self._labels, clusters, unit_ids=self._ids), details=self._details())
