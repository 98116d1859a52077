"""The five concept scores and their composite, as the Daemonium document defines them: weighted sums of parts."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from math import isnan, nan
from typing import TYPE_CHECKING

from equipoise.config import StatsConfig
from equipoise.types import Direction

if TYPE_CHECKING:
    from equipoise.stats.intervals import Interval

COMPOSITE = "composite_score"
GROUND_TRUTH = "ground_truth_score"
"""The mean of the ground-truth metrics, each rescaled so that chance is 0 and the maximum 1."""

CONCEPT_STATS = StatsConfig(n_resamples=200)
"""The default options. The standard error of a score is then known to 5 %; each resample scores all units again."""


@dataclass(frozen=True, slots=True)
class ScoreTerm:
    """A part of a weighted sum.

    Attributes
    ----------
    part
        The name of the part.
    weight
        Its weight.
    cap
        The largest value that counts; None for no limit.
    from_one
        Whether 1 minus the part is added.
    better
        Whether higher or lower values of what is added are better.
    bounds
        The range of the value that is added.
    fixed
        Whether the part depends on the data only, and not on the model.

    >>> ScoreTerm("mae", 0.2, from_one=True).adds(0.25), str(ScoreTerm("density", 0.3, cap=0.5))
    (0.15000000000000002, '0.3 x min(density, 0.5)')
    """

    part: str
    weight: float
    cap: float | None = None
    from_one: bool = False
    better: Direction = Direction.UP
    bounds: tuple[float, float] = (-1.0, 1.0)
    fixed: bool = False

    def entering(self, value: float) -> float:
        """The part as it is weighted; NaN remains NaN."""
        if self.from_one:
            return 1.0 - value
        return value if self.cap is None or not value > self.cap else self.cap

    def adds(self, value: float) -> float:
        """The contribution of the part to the blend."""
        return self.weight * self.entering(value)

    @property
    def entry(self) -> str:
        """The part as it enters, in letters."""
        if self.from_one:
            return f"(1 - {self.part})"
        return self.part if self.cap is None else f"min({self.part}, {self.cap:g})"

    def __str__(self) -> str:
        return f"{self.weight:g} x {self.entry}"


@dataclass(frozen=True, slots=True)
class ConceptScore:
    """A weighted sum of parts; it is undefined if a part is.

    Attributes
    ----------
    name
        The name of the score.
    title
        Its title in tables.
    task
        The task that it belongs to, such as ``similarity``.
    needs
        The section of a concept set that it is measured on.
    use
        The use for which the Daemonium document recommends the model with the highest score.
    truth
        The ground-truth metric that decides instead.
    chance_baseline
        The random baseline of its chance level.
    terms
        The parts with their weights.
    definitions
        How its parts are defined where the document leaves a choice.
    limits
        What the score does not show.
    """

    name: str
    task: str
    title: str
    needs: str
    use: str
    truth: str
    chance_baseline: str
    terms: tuple[ScoreTerm, ...]
    definitions: tuple[str, ...] = ()
    """Definitions of its parts."""
    limits: str = ""

    def value(self, parts: Mapping[str, float]) -> float:
        """The score; NaN where a part is NaN or absent."""
        return sum(term.adds(parts.get(term.part, nan)) for term in self.terms)

    @property
    def bounds(self) -> tuple[float, float]:
        """The lowest and the highest that the score can be."""
        low, high = (sum(term.weight * term.bounds[end] for term in self.terms) for end in (0, 1))
        return low, high

    @property
    def formula(self) -> str:
        """The sum in letters."""
        return " + ".join(map(str, self.terms))


_ALL = (
    ConceptScore(
        "semantic_similarity_score",
        "similarity",
        "Semantic similarity",
        "pairs",
        "Semantic Similarity Tasks",
        "Spearman",
        "shuffled pairs",
        (
            ScoreTerm("accuracy", 0.4, bounds=(0.0, 1.0)),
            ScoreTerm("correlation", 0.4),
            ScoreTerm("mae", 0.2, from_one=True),
        ),
        (
            "accuracy is the share of pairs whose cosine is within 0.1 of the expected similarity",
            "correlation is the Pearson correlation, mae the mean absolute error",
        ),
        limits="Agreement of the cosines of pairs with their expected similarities. Accuracy and MAE compare the "
        "values as they are: a model whose cosines have another scale scores low, although it may order the pairs "
        "correctly.",
    ),
    ConceptScore(
        "clustering_score",
        "clustering",
        "Clustering",
        "clusters",
        "Concept Clustering",
        "ARI",
        "K-means on random directions of the same norms",
        (
            ScoreTerm("silhouette_score", 0.5),
            ScoreTerm("cluster_coherence", 0.3),
            ScoreTerm("cluster_separation", 0.2, bounds=(0.0, 2.0)),
        ),
        (
            "silhouette_score is the silhouette of the clusters that K-means found, with euclidean distances",
            "cluster_coherence is the mean cosine of the pairs within each found cluster, averaged over the "
            "clusters; clusters of a single concept are left out",
            "cluster_separation is the mean of 1 - cosine over the points of two found clusters, averaged "
            "over the pairs of clusters",
        ),
        "Compactness and separation of clusters of concepts. Every component is computed on the clusters that K-means "
        "found, not on the true ones: vectors in a few tight groups score high, whatever they mean.",
    ),
    ConceptScore(
        "entity_recognition_score",
        "entities",
        "Entity recognition",
        "sentences",
        "Entity Recognition",
        "probe accuracy",
        "shuffled types, and entities paired with other sentences",
        (ScoreTerm("entity_clustering_silhouette", 0.6), ScoreTerm("avg_entity_text_similarity", 0.4)),
        (
            "entity_clustering_silhouette is the silhouette of the entities by type, with euclidean distances; each "
            "entity counts once, even if several sentences name it",
            "avg_entity_text_similarity is the mean cosine of every mention of an entity with its sentence",
        ),
        "Separation of the types of entities, and similarity of entities to their sentences. The mean cosine of an "
        "entity with its sentence is highest for collapsed vectors.",
    ),
    ConceptScore(
        "knowledge_graph_score",
        "relations",
        "Knowledge graph",
        "relations",
        "Relation Extraction",
        "link MRR",
        "all pairs of entities",
        (
            ScoreTerm("relation_coherence", 0.4),
            ScoreTerm("graph_density", 0.3, cap=0.5, bounds=(0.0, 0.5), fixed=True),
            ScoreTerm("clustering_coefficient", 0.3, bounds=(0.0, 1.0), fixed=True),
        ),
        (
            "relation_coherence is the mean cosine of related entities; each pair counts once, even if it has several "
            "relations",
            "graph_density is the share of possible directed edges that exist, clustering_coefficient the mean local "
            "clustering coefficient of the undirected graph",
        ),
        "Similarity of related entities, and density of the graph of relations. Density and clustering coefficient "
        "depend on the data alone, and the coherence is highest for collapsed vectors.",
    ),
    ConceptScore(
        "embedding_quality_score",
        "quality",
        "Embedding quality",
        "concepts",
        "",
        "",
        "random directions of the same norms",
        (
            ScoreTerm("diversity_score", 0.4, bounds=(0.0, 2.0)),
            ScoreTerm("embedding_variance", 0.3, cap=1.0, bounds=(0.0, 1.0)),
            ScoreTerm("norm_std/norm_mean", 0.3, cap=1.0, better=Direction.DOWN, bounds=(0.0, 1.0)),
        ),
        (
            "diversity_score is 1 - the mean cosine of all pairs of concepts",
            "embedding_variance is the mean variance of the dimensions",
            "norm_std/norm_mean is the standard deviation of the norms over their mean; variances and standard "
            "deviations divide by n",
        ),
        "Diversity, variance and norms of the vectors of the concepts. It uses no labels. Random directions have the "
        "largest diversity, and uneven norms raise the score: noise scores higher than trained models.",
    ),
)

CONCEPT_SCORES: dict[str, ConceptScore] = {blend.task: blend for blend in _ALL}
"""By task, in a fixed order."""

GENERAL_USE = "General Knowledge Graph Tasks"
"""The use that the composite decides."""


def explain_score(name: str) -> tuple[str, str, dict[str, str]] | None:
    """Title, definition and facts about one of the scores, for ``eq explain``; None for another name."""
    if name == COMPOSITE:
        measured = " + ".join(score.name for score in CONCEPT_SCORES.values())
        text = (
            "The mean of the five weighted scores of eq concepts; --weight changes the weights. Noise can rank first, "
            "because most components need no labels. eq concepts therefore recommends models by ground_truth_score."
        )
        return f"{COMPOSITE}  composite of eq concepts", text, {"formula": f"({measured}) / 5"} | _COMMON
    if name == GROUND_TRUTH:
        truths = [score.truth for score in CONCEPT_SCORES.values() if score.truth]
        text = (
            f"The mean of {', '.join(truths[:-1])} and {truths[-1]}, each rescaled so that chance is 0 and the maximum "
            f"1. With --weight, it has the same weights as {COMPOSITE}."
        )
        facts = {"formula": "mean of (metric - chance) / (1 - chance)", "range": "at most 1; larger is better"}
        return f"{GROUND_TRUTH}  mean of the ground-truth metrics", text, {**facts, "chance": "0"}
    score = next((score for score in CONCEPT_SCORES.values() if score.name == name), None)
    if score is None:
        return None
    low, high = score.bounds
    facts = {
        "formula": score.formula,
        "components": "; ".join(score.definitions),
        "range": f"{low:.3g} to {high:.3g}; larger is better",
        "chance": score.chance_baseline,
        "measured on": score.needs,
        "compare models by": score.truth,
    }
    return f"{score.name}  weighted score of eq concepts", score.limits, facts | _COMMON


# The grade of a score: poor, moderate, good or excellent, according to its interval.

THRESHOLDS = (0.3, 0.5, 0.7)
LABELS = ("poor", "moderate", "good", "excellent")
_COMMON = {
    "ratings": "poor below 0.3, moderate from 0.3, good from 0.5, excellent from 0.7; they ignore the chance level",
    "use": "eq concepts run",
    "source": "Sentence Transformer Evaluation Metrics, a document of Daemonium, a project for a philosophical chatbot",
}


def interpret_score(score: float, interval: Interval | None = None) -> str:
    """Return the rating of a score: poor, moderate, good or excellent.

    A score at a limit has the better rating. A score below 0 is poor.

    Parameters
    ----------
    score
        The score.
    interval
        Its confidence interval. If the ratings of its ends differ, both are returned.

    Returns
    -------
    str
        The rating.

    Examples
    --------
    >>> from equipoise import Interval
    >>> interpret_score(0.5), interpret_score(0.52, Interval(0.44, 0.6)), interpret_score(-0.1)
    ('good', 'moderate to good', 'poor')
    """
    if isnan(score):
        return "n/a"
    ends = (interval.low, interval.high) if interval is not None and interval.known else (score, score)
    low, high = (LABELS[bisect_right(THRESHOLDS, end)] for end in ends)
    return low if low == high else f"{low} to {high}"
