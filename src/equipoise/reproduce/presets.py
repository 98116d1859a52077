"""The presets: how each library scores, declared as data, with the version that it was compared with.

``calls`` maps a metric to its name in the library; the library does not have other metrics, and
``lacks`` gives the reason if there is one. ``exceptions`` holds deviating conventions of a
single metric. ``stumbles`` describes where the library would fail and this program continues.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from equipoise.errors import ParameterError, UnknownNameError
from equipoise.reproduce.conventions import Conventions, Value
from equipoise.reproduce.tie_orders import PICK, SORT

if TYPE_CHECKING:
    from equipoise.metrics.base import Metric

EQUIPOISE = "equipoise"

UNJUDGED, FRACTIONS, NEGATIVE, TIES = "unjudged", "fractions", "negative", "ties"
OTHER_QUERIES, EMPTY = "other queries", "empty"
"""What a run or a truth may hold that makes a library stumble."""


@dataclass(frozen=True)
class LibraryLimitation:
    """What a library would do where we go on, for some of its metrics or, with no ``forms``, for all."""

    message: str
    forms: tuple[str, ...] = ()


@dataclass(frozen=True)
class Preset:
    """A named set of conventions, and ``entry``, the call of the library that they reproduce."""

    name: str
    version: str
    entry: str
    conventions: Conventions
    calls: Mapping[str, str]
    exceptions: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    lacks: Mapping[str, str] = field(default_factory=dict)
    stumbles: Mapping[str, LibraryLimitation] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """Name and version: ``ranx 0.3.21``."""
        return f"{self.name} {self.version}".strip()

    def call(self, metric: Metric[Any]) -> str:
        """The library's name of the metric, or a message that it has none."""
        form = metric_form(metric)
        if form not in self.calls:
            why = self.lacks.get(form) or f"it has {', '.join(self.calls)}"
            raise ParameterError(f"{self.name} has no {metric.name}", hint=f"{why[:1].lower()}{why[1:]}".rstrip("."))
        return self.calls[form].format(k=getattr(metric, "k", None))

    def rules(self, metric: Metric[Any]) -> Conventions:
        """The conventions for one metric; an error if the library does not have it."""
        self.call(metric)
        conventions = self.conventions.with_values(self.exceptions.get(metric_form(metric), {}))
        if self.name == EQUIPOISE:  # metrics of this package may define their conventions
            requested = {name: getattr(metric, name) for name in ("norm", "gain") if hasattr(metric, name)}
            conventions = conventions.with_values(requested)
        return conventions


def metric_form(metric: Metric[Any]) -> str:
    """The metric without the number of its cutoff: ``nDCG@k``, ``R(capped)@k``, ``MRR``.

    >>> from equipoise.metrics.parser import parse_metrics
    >>> [metric_form(metric) for metric in parse_metrics(["nDCG@10", "R(capped)@5", "MRR"])]
    ['nDCG@k', 'R(capped)@k', 'MRR']
    """
    cutoff = getattr(metric, "k", None)
    return metric.name if cutoff is None else f"{metric.name.rpartition('@')[0]}@k"


_NEEDS_CUTOFF = "every metric of this library has a cutoff: write @10"
_TREC = Conventions(ties="id_down", scores="float32", missing="left_out", empty="zero", grades="whole", norm="R")
_TREC_CALLS = {"nDCG@k": "ndcg_cut_{k}", "MAP@k": "map_cut_{k}", "P@k": "P_{k}", "R@k": "recall_{k}"}
_FRACTIONS = "{name} rejects gains that are not integers (TypeError); they were truncated here"

_EQUIPOISE = Preset(
    name=EQUIPOISE,
    version="",
    entry="equipoise.evaluate(Ranking.from_runs(qrels, run), metric)",
    conventions=Conventions(),
    calls={
        form: form.replace("@k", "@{k}")
        for form in (
            *("nDCG@k", "nDCG", "nDCG(gain=exp)@k", "nDCG(gain=exp)", "MRR@k", "MRR", "HR@k", "P@k"),
            *("R@k", "R(capped)@k", "MAP@k", "MAP", "MAP(norm=R)@k", "MAP(norm=R)"),
        )
    },
    lacks={
        "MR": "the libraries have no mean rank, so there is nothing to compare it with",
        "MedianRank": "the libraries have no median rank, so there is nothing to compare it with",
    },
)

_TREC_EVAL = Preset(
    name="trec_eval",
    version="as pytrec_eval-terrier 0.5.11 wraps it",
    entry="trec_eval -m MEASURE qrels run",
    conventions=_TREC,
    calls=_TREC_CALLS
    | {"nDCG": "ndcg", "MAP": "map", "MRR": "recip_rank", "HR@k": "success_{k}"}
    | {"MRR@k": "recip_rank with -M {k}"},
    lacks={"R(capped)@k": "its recall is over R; R@k is what it has"},
    stumbles={FRACTIONS: LibraryLimitation(_FRACTIONS.format(name="pytrec_eval"))},
)

_MTEB = Preset(
    name="mteb",
    version="2.26.24",
    entry="mteb._evaluators.retrieval_metrics.calculate_retrieval_scores(results, qrels, k_values)",
    conventions=replace(_TREC, digits=5),
    calls={
        "nDCG@k": "ndcg_at_{k}",
        "MAP@k": "map_at_{k}",
        "P@k": "precision_at_{k}",
        "R@k": "recall_at_{k}",
        "MRR@k": "mrr_at_{k}",
        "HR@k": "hit_rate_at_{k}",
    },
    exceptions={"MRR@k": {"scores": "float64", "digits": None, "grades": "kept"}},
    lacks={"nDCG": _NEEDS_CUTOFF, "MAP": _NEEDS_CUTOFF, "MRR": _NEEDS_CUTOFF},
    stumbles={
        UNJUDGED: LibraryLimitation(
            "mteb stops with a KeyError at queries that the truth does not know; here they are ignored"
        ),
        FRACTIONS: LibraryLimitation(_FRACTIONS.format(name="mteb")),
    },
)

_BEIR_OWN: Mapping[str, Value] = {
    "ties": "input",
    "scores": "float64",
    "missing": "zero",
    "own_id": "kept",
    "grades": "kept",
}
"""Conventions of the metrics that beir computes without pytrec_eval."""
_BEIR_FORMS = ("MRR@k", "HR@k", "R(capped)@k")

_BEIR = Preset(
    name="beir",
    version="2.2.0",
    entry="EvaluateRetrieval.evaluate(qrels, results, k_values), and evaluate_custom for MRR, HR, R(capped)",
    conventions=replace(_TREC, own_id="dropped", digits=5),
    calls={
        "nDCG@k": "NDCG@{k}",
        "MAP@k": "MAP@{k}",
        "P@k": "P@{k}",
        "R@k": "Recall@{k}",
        "MRR@k": "MRR@{k}",
        "HR@k": "Accuracy@{k}",
        "R(capped)@k": "R_cap@{k}",
    },
    exceptions=dict.fromkeys(_BEIR_FORMS, _BEIR_OWN),
    lacks={"nDCG": _NEEDS_CUTOFF, "MAP": _NEEDS_CUTOFF, "MRR": _NEEDS_CUTOFF},
    stumbles={
        UNJUDGED: LibraryLimitation(
            "metrics of beir raise KeyError for queries that are not in the qrels; here they are ignored",
            _BEIR_FORMS,
        ),
        FRACTIONS: LibraryLimitation(_FRACTIONS.format(name="beir"), tuple(_TREC_CALLS)),
        EMPTY: LibraryLimitation(
            "beir's R_cap stops with a ZeroDivisionError at a query without relevant items; here it scores 0",
            ("R(capped)@k",),
        ),
    },
)

_RANX = Preset(
    name="ranx",
    version="0.3.21",
    entry="ranx.evaluate(Qrels(qrels), Run(run), metric)",
    conventions=Conventions(ties="quicksort", empty="zero", grades="whole", norm="R"),
    calls={
        "nDCG@k": "ndcg@{k}",
        "nDCG": "ndcg",
        "MAP@k": "map@{k}",
        "MAP": "map",
        "MRR@k": "mrr@{k}",
        "MRR": "mrr",
        "HR@k": "hit_rate@{k}",
        "P@k": "precision@{k}",
        "R@k": "recall@{k}",
    },
    lacks={"R(capped)@k": "its recall is over R; R@k is what it has"},
    stumbles={
        OTHER_QUERIES: LibraryLimitation(
            "ranx rejects a run whose queries differ from those of the qrels (AssertionError); here it is scored "
            "as with make_comparable=True, which also sorts it again"
        )
    },
)

_SENTENCE_TRANSFORMERS = Preset(
    name="sentence-transformers",
    version="6.2.0",
    entry="InformationRetrievalEvaluator(...).compute_metrics(lists)",
    conventions=Conventions(ties="id_up", grades="binary"),
    calls={
        "nDCG@k": "ndcg@{k}",
        "MAP@k": "map@{k}",
        "MRR@k": "mrr@{k}",
        "HR@k": "accuracy@{k}",
        "P@k": "precision@{k}",
        "R@k": "recall@{k}",
    },
    lacks={"nDCG": _NEEDS_CUTOFF, "MAP": _NEEDS_CUTOFF, "MRR": _NEEDS_CUTOFF},
)

_LISTS = Conventions(
    ties="expected",
    missing="left_out",
    empty="zero",
    unretrieved="unseen",
    grades="kept",
    norm="hits",
    fewest=1,
)
"""Libraries that take one row of scores and one of gains per query: only retrieved items are known."""

_TORCH_PICKED: Mapping[str, Value] = {"ties": PICK, "nonpositive": "lost"}
_TORCH_SORTED: Mapping[str, Value] = {"ties": SORT}

_TORCHMETRICS = Preset(
    name="torchmetrics",
    version="1.9.0",
    entry="RetrievalNormalizedDCG(top_k=k) and the like, on the retrieved items of each query",
    conventions=replace(_LISTS, scores="float32"),
    calls={
        "nDCG@k": "RetrievalNormalizedDCG(top_k={k})",
        "nDCG": "RetrievalNormalizedDCG()",
        "MAP@k": "RetrievalMAP(top_k={k})",
        "MAP": "RetrievalMAP()",
        "MRR@k": "RetrievalMRR(top_k={k})",
        "MRR": "RetrievalMRR()",
        "HR@k": "RetrievalHitRate(top_k={k})",
        "P@k": "RetrievalPrecision(top_k={k})",
        "R@k": "RetrievalRecall(top_k={k})",
    },
    exceptions=dict.fromkeys(("MAP@k", "MAP", "MRR@k", "MRR", "P@k"), _TORCH_PICKED)
    | {"HR@k": _TORCH_SORTED, "R@k": {**_TORCH_SORTED, "nonpositive": "lost"}},
    stumbles={
        TIES: LibraryLimitation(
            "torch does not define the order of ties, and other queries change it; here it is that of an "
            "x86-64 processor under Linux"
        ),
        NEGATIVE: LibraryLimitation(
            "torchmetrics counts a negative gain as a loss; here it is not relevant", ("nDCG@k", "nDCG")
        ),
    },
)

_SKLEARN = Preset(
    name="sklearn",
    version="1.9.1",
    entry="ndcg_score([gains], [scores], k=k) and average_precision_score, query by query, and their mean",
    conventions=replace(_LISTS, fewest=2),
    calls={"nDCG@k": "ndcg_score(k={k})", "nDCG": "ndcg_score()", "MAP": "average_precision_score()"},
    exceptions={"MAP": {"ties": "threshold", "fewest": 1}},
    lacks={
        "MAP@k": "average_precision_score has no cutoff; MAP is what it has",
        "HR@k": "top_k_accuracy_score is for one right class among the columns of a matrix, not for lists",
        "MRR": "label_ranking_average_precision_score with one relevant item is the nearest it has",
        "MRR@k": "label_ranking_average_precision_score with one relevant item is the nearest it has",
        "P@k": "precision_score is for predicted classes, not for ranked lists",
        "R@k": "recall_score is for predicted classes, not for ranked lists",
    },
    stumbles={
        NEGATIVE: LibraryLimitation(
            "sklearn's ndcg_score rejects negative gains; here they are not relevant", ("nDCG@k", "nDCG")
        )
    },
)

PRESETS: Mapping[str, Preset] = {
    preset.name: preset
    for preset in (
        _EQUIPOISE,
        _TREC_EVAL,
        _RANX,
        _MTEB,
        _BEIR,
        _SENTENCE_TRANSFORMERS,
        _TORCHMETRICS,
        _SKLEARN,
    )
}


def get_preset(name: str | Preset) -> Preset:
    """The preset of a name, in any case, or a did-you-mean.

    >>> get_preset("Ranx").title
    'ranx 0.3.21'
    """
    if isinstance(name, Preset):
        return name
    by_name = {key.casefold(): preset for key, preset in PRESETS.items()}
    preset_found = by_name.get(str(name).casefold())
    if preset_found is None:
        raise UnknownNameError.of("preset", str(name), PRESETS, more=f"the presets are {', '.join(PRESETS)}")
    return preset_found
