"""Figures in JSON: flat or nested objects, lists of rows, this program's results and other libraries'."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from equipoise.data.jsontext import parse_json, parse_lines
from equipoise.data.published.record import Cell, Known, Record
from equipoise.data.text import TextFile

VALUES = ("value", "mean", "score", "estimate")
_ENDS = ("interval", "ci", "ci95", "confidence_interval")
NAMES = (
    *("system", "model", "model_name", "name", "run", "method", "strategy", "mode", "dataset", "task"),
    *("pooling", "class", "language", "category"),
)
_OWN = frozenset({"unit", "better", "interval", "n", "undefined", "chance"})
"""What stands beside every figure that this program writes."""
PASSED = ("findings", "manifest", "per_unit", "cases", "versions", "tuning")
"""Parts of result files that hold no figures of the system."""
_SAID_BY_BEING = ("scores_per_experiment", "best_params", "best_parameters", "best_config")
"""Parts whose mere presence says something: a mean over experiments, a choice among configurations."""
_OF_ONE_FIGURE = re.compile(r"(?i)(?:^|_)(?:ci|lower|upper|low|high|std|sd|se)(?:$|_)")
"""What belongs to one figure is not passed on to those below it."""


class Digits(str):
    """A number of a JSON file, as it is written there."""


def json_tree(file: TextFile) -> Any:
    """The value of a JSON file, its numbers with all digits; malformed files are refused."""
    parse_json(file)
    return json.loads(file.text, parse_float=Digits)


def json_lines(file: TextFile) -> list[Any]:
    """The values of a file of JSON lines."""
    parse_lines(file)
    return [json.loads(line, parse_float=Digits) for line in file.text.splitlines() if line.strip()]


Path = tuple[str, ...]


def tables_of(value: Any, known: Known) -> list[list[Record]]:
    """The records of a value: every object that holds figures is one, and knows what stands around it.

    Objects that lie side by side, in one list or in one object, are a table.
    """
    tables: dict[Path, list[Record]] = {}
    for family, record in _records(value, known, (), (), ("",)):
        tables.setdefault(family, []).append(record)
    return list(tables.values())


def labels_of(value: Any, known: Known) -> list[str]:
    """The keys of numbers that stand beside figures; those of all numbers where there are no figures."""
    beside: dict[str, None] = {}
    every: dict[str, None] = {}
    stack = [value]
    while stack:
        each = stack.pop()
        if is_figure(each):
            continue
        if isinstance(each, Mapping):
            found = {str(key): None for key, inner in each.items() if is_number(inner)}
            every |= found
            beside |= found if any(map(known, found)) else {}
            stack.extend(
                inner
                for key, inner in each.items()
                if key not in (*PASSED, "settings") and not _holds_a_figure(str(key), inner, known)
            )
        elif isinstance(each, Sequence) and not isinstance(each, str):
            stack.extend(each)
    return list(beside or every)


def _records(
    value: Any, known: Known, path: Path, around: tuple[Cell, ...], family: Path
) -> Iterator[tuple[Path, Record]]:
    if isinstance(value, Mapping):
        yield from _of_object(value, known, path, around, family)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        figures = [(str(each["metric"]), each) for each in value if is_figure(each)]
        for cells in _once_each([_figure(label, each) for label, each in figures]):
            yield (*path, "figures"), Record("/".join(path), (*cells, *around))
        for place, each in enumerate([] if figures else value, start=1):
            named = isinstance(each, Mapping) and any(name in each for name in NAMES)
            yield from _records(each, known, path if named else (*path, str(place)), around, (*path, "[]"))


def _once_each(cells: list[Cell]) -> Iterator[list[Cell]]:
    """Figures in groups that name no metric twice: where one returns, it is that of another slice."""
    group: dict[str, Cell] = {}
    for cell in cells:
        if cell.label in group:
            yield list(group.values())
            group = {}
        group[cell.label] = cell
    if group:
        yield list(group.values())


def _of_object(
    value: Mapping[Any, Any], known: Known, path: Path, around: tuple[Cell, ...], family: Path
) -> Iterator[tuple[Path, Record]]:
    name = [str(value[each]) for each in NAMES if isinstance(value.get(each), str)]
    path = (*path, ", ".join(name)) if name else path
    cells, facts, deeper = _sorted_out(value, known)
    shared = (*facts, *(each for each in around if each.label not in value))
    if cells:
        yield family, Record("/".join(path), (*cells, *shared))
    passed_on = tuple(each for each in shared if not _OF_ONE_FIGURE.search(each.label))
    for label, inner in deeper:
        below = (*path, *([] if label == "estimates" else [label]))
        yield from _records(inner, known, below, passed_on, (*path, "{}"))


def _sorted_out(
    value: Mapping[Any, Any], known: Known
) -> tuple[list[Cell], list[Cell], list[tuple[str, Any]]]:
    """The figures of an object, what it says beside them, and the parts that lie deeper."""
    cells: list[Cell] = []
    facts: list[Cell] = []
    deeper: list[tuple[str, Any]] = []
    for key, inner in value.items():
        label = str(key)
        if label in PASSED:
            continue
        if label in _SAID_BY_BEING and inner and not _is_scalar(inner):
            facts.append(Cell(label, str(inner)))
        if _is_scalar(inner):
            (cells if known(label) else facts).append(Cell(label, _text(inner)))
        elif _holds_a_figure(label, inner, known):
            cells.append(_figure(label, inner))
        elif by_cutoff := _by_cutoff(label, inner, known):
            cells += by_cutoff
        elif _is_pair(inner) and label.casefold() in _ENDS:
            facts += [Cell("ci_lower", _text(inner[0])), Cell("ci_upper", _text(inner[1]))]
        elif label == "settings" and isinstance(inner, Mapping):
            facts += [Cell(str(name), _text(each)) for name, each in inner.items() if _is_scalar(each)]
        else:
            deeper.append((label, inner))
    return cells, facts, deeper


def _by_cutoff(label: str, inner: Any, known: Known) -> list[Cell]:
    """``{"hit_rate": {"1": 0.3, "10": 0.9}}``: a figure for every cutoff."""
    if not isinstance(inner, Mapping) or not inner:
        return []
    cutoffs = [str(key).lstrip("@k=") for key in inner]
    if not all(each.isdigit() for each in cutoffs) or not all(map(_is_scalar, inner.values())):
        return []
    cells = [Cell(f"{label}@{k}", _text(each)) for k, each in zip(cutoffs, inner.values(), strict=True)]
    return cells if all(known(cell.label) for cell in cells) else []


def is_figure(value: Any) -> bool:
    """Whether an object is one figure: a metric and its value."""
    return isinstance(value, Mapping) and "metric" in value and any(each in value for each in VALUES)


def _holds_a_figure(label: str, inner: Any, known: Known) -> bool:
    """``{"MRR": {"value": 0.4, "n": 50}}``: the key names the figure."""
    return isinstance(inner, Mapping) and known(label) and any(each in inner for each in VALUES)


def _figure(label: str, value: Mapping[str, Any]) -> Cell:
    """A figure that carries its own interval and n."""
    number = next(value[each] for each in VALUES if each in value)
    ends = next((value[each] for each in _ENDS if each in value), None)
    if isinstance(ends, Mapping):
        ends = [ends.get("low", ends.get("lower")), ends.get("high", ends.get("upper"))]
    text = _text(number)
    if isinstance(ends, list | tuple) and len(ends) == 2 and all(map(is_number, ends)):
        text += f" [{_text(ends[0])}, {_text(ends[1])}]"
    return Cell(label, text, _text(value.get("n")), exact=value.keys() >= _OWN)


def _is_pair(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2


def is_number(value: Any) -> bool:
    """Whether a value of a JSON file is a number."""
    return isinstance(value, int | float | Digits) and not isinstance(value, bool)


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)


def _text(value: Any) -> str:
    return "" if value is None else str(value)
