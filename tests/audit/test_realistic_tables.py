"""Tables in the form of papers and result folders: true ones have no issues, and false values are found.

Every value is computed from random ranks, so the ranks are the reference. ``EQUIPOISE_AUDIT_TABLES`` sets
the number of tables.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from equipoise.audit.apply_rules import audit_table

TABLES = int(os.environ.get("EQUIPOISE_AUDIT_TABLES", "40"))
MODELS = ["BM25", "DPR", "Contriever", "E5-base", "GTE-large", "BGE-M3", "ColBERT v2", "SPLADE++", "Hybrid"]
DATA = ["NQ", "SciFact", "FiQA", "TREC-COVID", "Quora", "ArguAna", "HotpotQA", "DBPedia"]
METRICS = ["HR@1", "HR@5", "HR@10", "MRR", "MRR@10", "nDCG@10", "P@5", "MAP"]
LABELS = {
    "HR@1": ["HR@1", "Hit@1", "Acc@1", "Success@1"],
    "HR@5": ["HR@5", "hit_rate@5"],
    "HR@10": ["HR@10", "Hits@10"],
    "MRR": ["MRR", "mrr"],
    "nDCG@10": ["nDCG@10", "NDCG@10", "ndcg_cut_10"],
    "P@5": ["P@5", "Precision@5"],
    "MAP": ["MAP", "mAP"],
}
FORMATS = ["md", "csv", "tex", "json"]


def compute_metrics(ranks: np.ndarray) -> dict[str, float]:
    """Metrics of units with one relevant item, from the ranks."""
    hit_rates = {k: float((ranks <= k).mean()) for k in (1, 5, 10)}
    return {f"HR@{k}": value for k, value in hit_rates.items()} | {
        "MRR": float((1 / ranks).mean()),
        "MRR@10": float(np.where(ranks <= 10, 1 / ranks, 0).mean()),
        "nDCG@10": float(np.where(ranks <= 10, 1 / np.log2(ranks + 1), 0).mean()),
        "P@5": hit_rates[5] / 5,
        "MAP": float((1 / ranks).mean()),
    }


@dataclass
class RandomTable:
    """A table of text with its format."""

    header: list[str]
    rows: list[list[str]]
    format_name: str
    caption: str = ""
    has_average: bool = False

    def write(self, folder: Path) -> Path:
        file = folder / f"table.{self.format_name}"
        if self.format_name == "json":
            file.write_text(json.dumps([dict(zip(self.header, row, strict=True)) for row in self.rows]))
        elif self.format_name == "csv":
            file.write_text("\n".join(",".join(row) for row in [self.header, *self.rows]) + "\n")
        elif self.format_name == "md":
            lines = [self.header, ["---"] * len(self.header), *self.rows]
            file.write_text(f"{self.caption}\n\n" + "\n".join(f"| {' | '.join(row)} |" for row in lines) + "\n")
        else:
            cells = [[_latex(cell) for cell in row] for row in [self.header, *self.rows]]
            lines = [" & ".join(row) + r" \\" for row in cells]
            lines.insert(1, r"\midrule")
            file.write_text(
                rf"\begin{{tabular}}{{l{'r' * len(self.header)}}}\toprule" + "\n" + "\n".join(lines) + "\n"
                r"\bottomrule\end{tabular}"
            )
        return file


def _latex(cell: str) -> str:
    return cell.replace("%", r"\%").replace("_", r"\_").replace("Δ", r"$\Delta$").replace("±", r"$\pm$")


class Style:
    """The number format of a table."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.unit = str(rng.choice(["fraction", "percent", "sign", "head"]))
        self.digits = int(rng.integers(2, 5)) if self.unit == "fraction" else int(rng.integers(1, 3))
        self.format_name = str(rng.choice(FORMATS))
        self.bold = bool(rng.random() < 0.3) and self.format_name in ("md", "tex")
        self.has_spread = bool(rng.random() < 0.15)

    def number(self, value: float, *, sign: bool = False) -> str:
        scaled = value if self.unit == "fraction" else 100 * value
        return f"{scaled:{'+' if sign else ''}.{self.digits}f}{'%' if self.unit == 'sign' else ''}"

    def label(self, label: str) -> str:
        return f"{label} (%)" if self.unit == "head" else label

    def emphasise(self, text: str) -> str:
        return text if not self.bold else f"**{text}**" if self.format_name == "md" else rf"\textbf{{{text}}}"


def random_table(seed: int) -> tuple[RandomTable, Style]:
    """A random table with models or data sets in rows, and common additional rows and columns."""
    rng = np.random.default_rng(seed)
    style = Style(rng)
    metrics = [str(item) for item in rng.choice(METRICS, int(rng.integers(2, 6)), replace=False)]
    metrics.sort(key=METRICS.index)
    by_data = bool(rng.random() < 0.5)
    names = [str(item) for item in rng.permutation(DATA if by_data else MODELS)[: rng.integers(3, 8)]]
    skills = rng.uniform(0.02, 0.7, len(names))
    units = [int(integer) for integer in rng.integers(50, 800, len(names))]
    values = [compute_metrics(rng.geometric(skill, n)) for skill, n in zip(skills, units, strict=True)]
    labels = {name: str(rng.choice(LABELS.get(name, [name]))) for name in metrics}
    header = ["dataset" if by_data else "model", *(style.label(labels[name]) for name in metrics)]
    rows = [
        [name, *(style.number(value[metric]) for metric in metrics)] for name, value in zip(names, values, strict=True)
    ]
    if style.has_spread:
        rows = [
            [row[0], *(f"{cell.rstrip('%')} ± 0.3" if style.unit != "sign" else cell for cell in row[1:])]
            for row in rows
        ]
    best_row = int(rng.integers(len(rows)))
    rows[best_row] = [rows[best_row][0], *map(style.emphasise, rows[best_row][1:])]
    has_sizes = by_data and bool(rng.random() < 0.3)
    if has_sizes:
        header.append("queries")
        rows = [[*row, str(n)] for row, n in zip(rows, units, strict=True)]
    addition = str(rng.choice(["none", "average", "difference", "spread row", "difference column", "both"]))
    if by_data and addition in ("average", "both"):
        weights = np.array(units) if has_sizes and rng.random() < 0.5 else np.ones(len(rows))
        means = [float(np.average([value[metric] for value in values], weights=weights)) for metric in metrics]
        name = str(rng.choice(["Average", "Avg.", "Mean", "avg"]))
        rows.append([name, *map(style.number, means), *([""] if has_sizes else [])])
    if not by_data and addition in ("difference", "both"):
        first_values, last_values = values[0], values[-1]
        name = str(rng.choice(["Δ", "Improvement", "Δ vs. baseline", "rel. improvement", "abs. gain", "Diff."]))
        relative = "rel" in name
        changes = [(last_values[m] - first_values[m]) / (first_values[m] if relative else 1.0) for m in metrics]
        rows.append(
            [
                name,
                *(f"{100 * change:+.1f}%" if relative else style.number(change, sign=True) for change in changes),
            ]
        )
    if addition == "spread row":
        deviations = [float(np.std([value[metric] for value in values])) for metric in metrics]
        rows.append(
            [
                str(rng.choice(["std", "SD", "Std. dev."])),
                *map(style.number, deviations),
                *([""] if has_sizes else []),
            ]
        )
    if addition == "difference column":
        header.append(str(rng.choice(["Δ MRR", "gain", "MRR change", "Δ vs. BM25"])))
        rows = [[*row, style.number(float(rng.normal(0, 0.05)), sign=True)] for row in rows]
    caption = "Results in percent." if style.unit == "percent" and rng.random() < 0.3 else "Results."
    return RandomTable(header, rows, style.format_name, caption, by_data and addition in ("average", "both")), style


@pytest.mark.parametrize("seed", range(TABLES))
def test_a_true_table_has_no_issues(seed: int, tmp_path: Path) -> None:
    table, _ = random_table(seed)
    file = table.write(tmp_path)
    audit = audit_table(file)
    assert audit.issues == (), (file.read_text(), [(issue.code, issue.message) for issue in audit.issues])
    assert audit.n_values


@pytest.mark.parametrize("seed", range(TABLES))
def test_a_false_value_is_found(seed: int, tmp_path: Path) -> None:
    table, style = random_table(seed)
    rng = np.random.default_rng(seed)
    headers = [header.removesuffix(" (%)") for header in table.header]
    hit_columns = [
        index for index, header in enumerate(headers) if header.endswith(("@1", "@5", "@10")) and header[0] in "HhAS"
    ]
    mrr_columns = [index for index, header in enumerate(headers) if header.casefold() == "mrr"]
    row = table.rows[int(rng.integers(3))]
    if len(hit_columns) > 1:
        row[hit_columns[0]], row[hit_columns[-1]] = style.number(0.91), style.number(0.52)
    elif hit_columns and mrr_columns:
        row[mrr_columns[0]], row[hit_columns[0]] = style.number(0.06), style.number(0.85)
    elif table.has_average:
        table.rows[-1][1] = style.number(0.01)
    else:
        pytest.skip("no rule relates the metrics of this table")
    file = table.write(tmp_path)
    assert audit_table(file).impossible, file.read_text()
