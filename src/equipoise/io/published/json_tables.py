"""Scores in JSON: flat or nested objects, lists of rows, results of this program and of other libraries."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from equipoise.io.json import parse_json, parse_lines
from equipoise.io.published.numbers import parse_printed, strip_markup
from equipoise.io.published.tables import Known, System, SystemRecord, TableCell

if TYPE_CHECKING:
    from equipoise.io.text import TextFile

VALUES = ("value", "mean", "score", "estimate")
_ENDS = ("interval", "ci", "ci95", "confidence_interval")
NAMES = (
    *("system", "model", "model_name", "name", "run", "method", "strategy", "mode", "dataset", "task"),
    *("pooling", "class", "language", "category"),
)
_OWN = frozenset({"unit", "better", "interval", "n", "undefined", "chance"})
"""Keys that this program writes with every value."""
PASSED = ("findings", "manifest", "per_unit", "cases", "versions", "tuning")
"""Parts of result files without scores of the system."""
_SAID_BY_BEING = ("scores_per_experiment", "best_params", "best_parameters", "best_config")
"""Keys whose presence is a fact: a mean over experiments, a selected configuration."""
_OF_ONE_FIGURE = re.compile(r"(?i)(?:^|_)(?:ci|lower|upper|low|high|std|sd|se)(?:$|_)")
"""Facts about one score, which nested scores do not inherit."""


class ExactNumber(str):
    """A number of a JSON file, as it is written there."""


def json_tree(file: TextFile) -> Any:
    """The value of a JSON file, its numbers with all digits; malformed files are rejected."""
    parse_json(file)
    return json.loads(file.text, parse_float=ExactNumber)


def json_lines(file: TextFile) -> list[Any]:
    """The values of a file of JSON lines."""
    parse_lines(file)
    return [json.loads(line, parse_float=ExactNumber) for line in file.text.splitlines() if line.strip()]


Path = tuple[str, ...]


def records_from_json(value: Any, is_metric: Known) -> list[list[SystemRecord]]:
    """The records of a JSON value: every object with metric values is one record, with its surrounding labels.

    Sibling objects, in one list or in one object, are a table.
    """
    tables: dict[Path, list[SystemRecord]] = {}
    for family, record in _records(value, is_metric, (), (), ("",)):
        tables.setdefault(family, []).append(record)
    return list(tables.values())


def number_labels(value: Any, is_metric: Known) -> list[str]:
    """The keys of numbers next to metric values; the keys of all numbers if there are no metric values."""
    adjacent: dict[str, None] = {}
    all_labels: dict[str, None] = {}
    stack = [value]
    while stack:
        node = stack.pop()
        if is_score(node):
            continue
        if isinstance(node, Mapping):
            labels = {str(key): None for key, inner in node.items() if is_number(inner)}
            all_labels |= labels
            adjacent |= labels if any(map(is_metric, labels)) else {}
            stack.extend(
                inner
                for key, inner in node.items()
                if key not in (*PASSED, "settings") and not _holds_a_score(str(key), inner, is_metric)
            )
        elif isinstance(node, Sequence) and not isinstance(node, str):
            stack.extend(node)
    return list(adjacent or all_labels)


def _records(
    value: Any, is_metric: Known, path: Path, context: tuple[TableCell, ...], family: Path
) -> Iterator[tuple[Path, SystemRecord]]:
    if isinstance(value, Mapping):
        yield from _object_records(value, is_metric, path, context, family)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        scores = [(str(entry["metric"]), entry) for entry in value if is_score(entry)]
        for cells in _split_repeated_metrics([_score_cell(label, entry) for label, entry in scores]):
            yield (*path, "scores"), SystemRecord("/".join(path), (*cells, *context))
        for number, entry in enumerate([] if scores else value, start=1):
            has_name = isinstance(entry, Mapping) and any(name in entry for name in NAMES)
            yield from _records(entry, is_metric, path if has_name else (*path, str(number)), context, (*path, "[]"))


def _split_repeated_metrics(cells: list[TableCell]) -> Iterator[list[TableCell]]:
    """Scores in groups without a repeated metric: a repetition belongs to another slice."""
    group: dict[str, TableCell] = {}
    for cell in cells:
        if cell.label in group:
            yield list(group.values())
            group = {}
        group[cell.label] = cell
    if group:
        yield list(group.values())


def _object_records(
    value: Mapping[Any, Any], is_metric: Known, path: Path, context: tuple[TableCell, ...], family: Path
) -> Iterator[tuple[Path, SystemRecord]]:
    name = [str(value[key]) for key in NAMES if isinstance(value.get(key), str)]
    path = (*path, ", ".join(name)) if name else path
    cells, facts, deeper = _partition_entries(value, is_metric)
    shared = (*facts, *(cell for cell in context if cell.label not in value))
    if cells:
        yield family, SystemRecord("/".join(path), (*cells, *shared))
    passed_on = tuple(cell for cell in shared if not _OF_ONE_FIGURE.search(cell.label))
    for label, inner in deeper:
        below = (*path, *([] if label == "estimates" else [label]))
        yield from _records(inner, is_metric, below, passed_on, (*path, "{}"))


def _partition_entries(
    value: Mapping[Any, Any], is_metric: Known
) -> tuple[list[TableCell], list[TableCell], list[tuple[str, Any]]]:
    """The metric values of an object, its other entries, and its nested objects."""
    cells: list[TableCell] = []
    facts: list[TableCell] = []
    deeper: list[tuple[str, Any]] = []
    for key, inner in value.items():
        label = str(key)
        if label in PASSED:
            continue
        if label in _SAID_BY_BEING and inner and not _is_scalar(inner):
            facts.append(TableCell(label, str(inner)))
        if _is_scalar(inner):
            (cells if is_metric(label) else facts).append(TableCell(label, _text(inner)))
        elif _holds_a_score(label, inner, is_metric):
            cells.append(_score_cell(label, inner))
        elif by_cutoff := _by_cutoff(label, inner, is_metric):
            cells += by_cutoff
        elif _is_pair(inner) and label.casefold() in _ENDS:
            facts += [TableCell("ci_lower", _text(inner[0])), TableCell("ci_upper", _text(inner[1]))]
        elif label == "settings" and isinstance(inner, Mapping):
            facts += [TableCell(str(name), _text(fact)) for name, fact in inner.items() if _is_scalar(fact)]
        else:
            deeper.append((label, inner))
    return cells, facts, deeper


def _by_cutoff(label: str, inner: Any, is_metric: Known) -> list[TableCell]:
    """``{"hit_rate": {"1": 0.3, "10": 0.9}}``: one score per cutoff."""
    if not isinstance(inner, Mapping) or not inner:
        return []
    cutoffs = [str(key).lstrip("@k=") for key in inner]
    if not all(cutoff.isdigit() for cutoff in cutoffs) or not all(map(_is_scalar, inner.values())):
        return []
    cells = [TableCell(f"{label}@{k}", _text(score)) for k, score in zip(cutoffs, inner.values(), strict=True)]
    return cells if all(is_metric(cell.label) for cell in cells) else []


def is_score(value: Any) -> bool:
    """Whether an object is one score: a metric and its value."""
    return isinstance(value, Mapping) and "metric" in value and any(key in value for key in VALUES)


def _holds_a_score(label: str, inner: Any, is_metric: Known) -> bool:
    """``{"MRR": {"value": 0.4, "n": 50}}``: the key names the metric."""
    return isinstance(inner, Mapping) and is_metric(label) and any(key in inner for key in VALUES)


def _score_cell(label: str, value: Mapping[str, Any]) -> TableCell:
    """A score with its interval and n."""
    number = next(value[key] for key in VALUES if key in value)
    ends = next((value[key] for key in _ENDS if key in value), None)
    if isinstance(ends, Mapping):
        ends = [ends.get("low", ends.get("lower")), ends.get("high", ends.get("upper"))]
    text = _text(number)
    if isinstance(ends, list | tuple) and len(ends) == 2 and all(map(is_number, ends)):
        text += f" [{_text(ends[0])}, {_text(ends[1])}]"
    return TableCell(label, text, _text(value.get("n")), exact=value.keys() >= _OWN)


def _is_pair(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2


def is_number(value: Any) -> bool:
    """Whether a value of a JSON file is a number."""
    return isinstance(value, int | float | ExactNumber) and not isinstance(value, bool)


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)


def _text(value: Any) -> str:
    return "" if value is None else str(value)


# All numbers of one system in a file: in nested objects, in a row, or in an outline.

SystemPath = tuple[str, ...]
_HEADING = re.compile(r"^#{1,6}\s+(?P<name>.*?)\s*#*$")
_OPENS = re.compile(r"^(?P<indent>\s*)(?:[-*+]\s+)?(?P<name>\S.*?)\s*:\s*$")
_PAIR = re.compile(r"^\s*(?:[-*+]\s+)?(?P<label>[^:=]*[^:=\s])\s*[:=]\s*(?P<value>[-+\u2212]?[\d.]\S*)\s*$")
_COMMAS = re.compile(r",\s+(?=[^\d\s])")


def systems_from_records(records: Sequence[SystemRecord]) -> list[System]:
    """A system for every row of a table."""
    return [System(record.name, {(cell.label,): cell.text for cell in record.cells}) for record in records]


def systems_from_json(value: Any, name: str = "") -> list[System]:
    """The systems of a JSON value: objects with a name, adjacent objects of one shape, or the whole value."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [system for item in value if isinstance(item, Mapping) for system in systems_from_json(item)]
    if not isinstance(value, Mapping) or is_score(value):
        return []
    given_name = next((str(value[key]) for key in NAMES if isinstance(value.get(key), str)), "")
    children = {str(key): child for key, child in value.items() if isinstance(child, Mapping)}
    if not given_name and not name and _side_by_side(value, children):
        return [system for key, child in children.items() for system in systems_from_json(child, key)]
    numbers = dict(_leaves(value))
    if numbers:
        return [System(given_name or name, numbers)]
    return [system for key, child in value.items() if key not in PASSED for system in systems_from_json(child)]


def _side_by_side(value: Mapping[Any, Any], children: Mapping[str, Any]) -> bool:
    """Whether the objects in an object have labels in common, as results of several systems have."""
    if len(children) < 2 or any(is_number(child) for child in value.values()):
        return False
    labels = [{path[-1] for path, _ in _leaves(child)} for child in children.values()]
    return bool(set.intersection(*labels))


def _leaves(value: Mapping[Any, Any], path: SystemPath = ()) -> Iterator[tuple[SystemPath, str]]:
    for key, inner in value.items():
        if key in PASSED:
            continue
        if is_number(inner):
            yield (*path, str(key)), str(inner)
        elif isinstance(inner, Mapping) and not is_score(inner):
            yield from _leaves(inner, (*path, str(key)))


def systems_from_outline(text: str) -> list[System]:
    """The systems of a text whose lines name a system and then, indented or under its heading, its numbers.

    >>> [s.name for s in systems_from_outline("minilm:\\n  Graph Density: 0.03\\nmpnet:\\n  Graph Density: 0.03")]
    ['minilm', 'mpnet']
    """
    systems: dict[str, dict[SystemPath, str]] = {}
    name, depth = "", -1
    for line in text.splitlines():
        heading, opens = _HEADING.match(line), _OPENS.match(line)
        indent = len(line) - len(line.lstrip())
        if heading:
            name, depth = strip_markup(heading["name"]), -1
        elif opens:
            name, depth = strip_markup(opens["name"]), indent
        elif line.strip() and indent <= depth:
            name = ""
        elif name:
            pairs = [_PAIR.match(part) for part in _COMMAS.split(plain_line(line))]
            for pair in pairs if all(pairs) else []:
                if pair is not None and parse_printed(pair["value"]) is not None:
                    systems.setdefault(name, {}).setdefault((strip_markup(pair["label"]),), pair["value"])
    return [System(name, numbers) for name, numbers in systems.items()]


def plain_line(line: str) -> str:
    """A line without its list mark and emphasis."""
    return strip_markup(re.sub(r"^\s*[-*+]\s+", "", line))


def find_formulas(value: Any) -> list[str]:
    """The formulas of a JSON value: texts such as ``score = 0.4 * a + 0.6 * b``, or objects of them."""
    if isinstance(value, str):
        return [value] if "=" in value else []
    if isinstance(value, Mapping):
        stated = value.get("formulas")
        lines = [f"{key} = {formula}" for key, formula in stated.items()] if isinstance(stated, Mapping) else []
        return lines + [line for key, child in value.items() if key != "formulas" for line in find_formulas(child)]
    if isinstance(value, Sequence):
        return [line for item in value for line in find_formulas(item)]
    return []
