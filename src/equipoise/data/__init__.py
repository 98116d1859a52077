"""Bytes to data: readers that explain what is wrong, datasets with a fingerprint, folds."""

from equipoise.data.arrays import read_array, read_matrix
from equipoise.data.dataset import Dataset, fingerprint_of_file
from equipoise.data.graph import edges, find_cycle
from equipoise.data.runs import read_qrels, read_run
from equipoise.data.spans import read_spans
from equipoise.data.split import folds
from equipoise.data.tables import read_rows
from equipoise.data.trec import write_qrels, write_run

__all__ = [
    "Dataset",
    "edges",
    "find_cycle",
    "fingerprint_of_file",
    "folds",
    "read_array",
    "read_matrix",
    "read_qrels",
    "read_rows",
    "read_run",
    "read_spans",
    "write_qrels",
    "write_run",
]
