"""The charts of a benchmark and of an extraction tuning."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from equipoise.domains.phenotypes.extraction.report import format_params
from equipoise.evidence.ranking import Ranking
from equipoise.metrics.ranking import HitRate, Precision, Recall
from equipoise.report.charts.bars import metric_bars
from equipoise.report.charts.chart import LIGHT, SMALL_SIZE, Chart, Spec, chart, series_style
from equipoise.report.charts.curves import accuracy_at_k_chart, precision_recall_chart
from equipoise.report.charts.marks import (
    FRACTION_TICKS,
    TOOLTIP,
    Row,
    line,
    linear_axis,
    position,
    series_labels,
    text_marks,
)
from equipoise.stats.formatting import format_value

if TYPE_CHECKING:
    from equipoise.domains.phenotypes.benchmark import PhenotypeBenchmark
    from equipoise.domains.phenotypes.extraction.tuning_results import TunedModel

# The charts of a benchmark: metrics with intervals, hit rate over k, precision against recall, representations.

MAX_K = 50
"""The largest k of the curves."""
BAR_METRICS = ("MRR", "HR@1", "HR@10", "nDCG@10", "R@10", "MAP@10", "MaxOntSim@10")
REPRESENTATION_METRICS = ("MRR", "HR@1", "HR@10")


def benchmark_charts(benchmark: PhenotypeBenchmark) -> Iterator[Chart]:
    results = benchmark.results
    shown = [name for name in BAR_METRICS if all(name in result.names for result in results.values())]
    yield metric_bars({system: [result[name] for name in shown] for system, result in results.items()})
    rankings = {system: result.evidence for system, result in results.items() if isinstance(result.evidence, Ranking)}
    if rankings:
        ks = range(1, MAX_K + 1)
        first = next(iter(rankings.values()))
        yield accuracy_at_k_chart(
            {system: [_mean(HitRate(k).per_unit(ranking)) for k in ks] for system, ranking in rankings.items()},
            [_mean(HitRate(k).per_unit(first.with_constant_scores())) for k in ks],
            "hit-rate-over-k",
            what="Hit rate",
            symbol="HR",
        )
        yield precision_recall_chart(
            {
                system: [(_mean(Recall(k).per_unit(ranking)), _mean(Precision(k).per_unit(ranking))) for k in ks]
                for system, ranking in rankings.items()
            }
        )
    if len({outcome.representation.name for outcome in benchmark.outcomes}) > 1:
        shown = [name for name in REPRESENTATION_METRICS if name in benchmark[0].names]
        against = any(not outcome.representation.multi_vector for outcome in benchmark.outcomes)
        yield metric_bars(
            {system: [result[name] for name in shown] for system, result in results.items()},
            name="single-against-multi-vector" if against else "strategies",
            title="Single against multi-vector" if against else "Aggregation strategies (multi-vector)",
        )


def _mean(values: object) -> float:
    return float(np.nanmean(np.asarray(values)))


WIDTH, HEIGHT = 460, 340
ISO_F1 = (0.2, 0.4, 0.6, 0.8)
"""The F1 values of the contour lines."""
_STEPS = 60
_BY_X: Spec = {"order": {"field": "x", "type": "quantitative"}}
"""Lines join their points by x."""


def precision_recall_frontier(parts: Sequence[TunedModel]) -> Chart:
    """Small marks are trials, the line joins the Pareto-optimal ones, and the large mark is the chosen one."""
    x = linear_axis(0.0, 1.0, FRACTION_TICKS, "mean recall of documents")
    y = linear_axis(0.0, 1.0, FRACTION_TICKS, "mean precision of documents")
    layers = _iso_f1_layers(x, y)
    for place, part in enumerate(parts):
        layers += _model_layers(part, place, x, y)
    ends = [float(part.trials.precision[part.frontier[-1]]) if part.frontier else 0.0 for part in parts]
    layers += series_labels([part.name for part in parts], [(1.0 - end) * HEIGHT for end in ends], WIDTH)
    return chart(
        "precision-recall-frontier",
        "Precision and recall of all trials",
        _alt_text(parts),
        layers,
        subtitle="On the documents used for selection (optimistic). Grey curves: equal F1 of both means.",
        width=WIDTH,
        height=HEIGHT,
    )


def _iso_f1_layers(x: Spec, y: Spec) -> list[Spec]:
    layers: list[Spec] = []
    for f1 in ISO_F1:
        least = f1 / (2 - f1)
        # Even steps of the logarithm: the curve is steep at its beginning.
        recalls = [least ** (1 - step / _STEPS) for step in range(_STEPS + 1)]
        rows = [{"x": recall, "y": f1 * recall / (2 * recall - f1)} for recall in recalls]
        where = position(x, y)
        layers.append(line(rows, where | _BY_X, LIGHT["line"], width=0.8))
        # Below its curve, which comes down from the left and would run through it above.
        style: Spec = {"align": "right", "dy": 10, "fontSize": SMALL_SIZE, "fill": LIGHT["soft"]}
        layers.append(text_marks([{**rows[-1], "text": f"F1 {f1:g}"}], where, **style))
    return layers


def _model_layers(part: TunedModel, place: int, x: Spec, y: Spec) -> list[Spec]:
    colour, shape = series_style(place)
    rows = [_trial_row(part, trial) for trial in range(len(part.tuning.grid))]
    edge = [rows[trial] for trial in part.frontier]
    where = position(x, y)
    mark: Spec = {"type": "point", "shape": shape, "fill": colour, "stroke": colour}
    return [
        {
            "data": {"values": [row for row in rows if row["known"]]},
            "mark": {**mark, "size": 18, "opacity": 0.45},
            "encoding": {**where, **TOOLTIP},
        },
        line(edge, where | _BY_X, colour),
        {
            "data": {"values": [rows[part.tuning.best]]},
            "mark": {**mark, "size": 130, "opacity": 1, "stroke": LIGHT["ink"], "strokeWidth": 1.6},
            "encoding": {**where, **TOOLTIP},
        },
    ]


def _trial_row(part: TunedModel, trial: int) -> Row:
    recall, precision = float(part.trials.recall[trial]), float(part.trials.precision[trial])
    known = recall == recall and precision == precision
    params = format_params(part.tuning.trials[trial].params)
    return {
        "x": recall if known else None,
        "y": precision if known else None,
        "known": known,
        "tooltip": f"{part.name}, {params}: precision {format_value(precision, 3)}, recall {format_value(recall, 3)}",
    }


def _alt_text(parts: Sequence[TunedModel]) -> str:
    sentences = [
        f"{part.name} was chosen at precision {format_value(part.trials.precision[part.tuning.best], 3)} and recall "
        f"{format_value(part.trials.recall[part.tuning.best], 3)}"
        for part in parts
    ]
    return f"{'; '.join(sentences)}."
