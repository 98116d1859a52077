"""All checks, in one literal list: adding one is a function, and an entry here.

Numbers up to 199 look at units and data, 2xx at the protocol, 3xx at scores and claims.
"""

from __future__ import annotations

from equipoise.checks import embedding, points, power, protocol, scores, units
from equipoise.checks.base import Check
from equipoise.checks.subjects import Embedded, LineUp, Scored, UnitSets, Window
from equipoise.embed.cache.cache import Cache
from equipoise.embed.retriever import Fitted
from equipoise.errors import UnknownNameError
from equipoise.stats.comparison import Comparison
from equipoise.stats.result import Result
from equipoise.types import Finding, Severity

CHECKS: tuple[Check, ...] = (
    Check(
        code="EQ101",
        title="units of the truth are missing from the run",
        severity=Severity.ISSUE,
        applies_to=Scored,
        function=units.missing_units,
        why="""\
A unit that has a right answer but no answer from the system scores 0. Leaving it out of the mean instead
would reward a system for staying silent where it is weak, and two systems would be compared on different
questions. Often the cause is harmless: an interrupted run, a filter, ids that are spelled in two ways.""",
        remedy="run the missing units, or see whether their ids are spelled alike in run and truth",
        example="""\
from equipoise import Ranking, evaluate
ranking = Ranking.from_runs({"q1": {"a": 1}, "q2": {"b": 1}}, {"q1": {"a": 0.9, "b": 0.1}})
evaluate(ranking, "MRR").findings""",
    ),
    Check(
        code="EQ104",
        title="units without a value",
        severity=Severity.NOTE,
        applies_to=Scored,
        function=units.undefined_units,
        why="""\
A unit for which a metric has no value, such as a query without any relevant item, can be answered
neither well nor badly. It is undefined: left out of the mean, and counted beside it. Other programs
count such units as 0, which lowers every score by the same factor, or drop them without a word.""",
        remedy="add the missing judgements, or leave these units out of the truth",
        example="""\
from equipoise import Ranking, evaluate
ranking = Ranking.from_runs({"q1": {"a": 1}, "q2": {"b": 0}}, {"q1": {"a": 0.9}, "q2": {"b": 0.8}})
evaluate(ranking, "MRR").findings""",
    ),
    Check(
        code="EQ106",
        title="units of the run that the truth does not know",
        severity=Severity.TIP,
        applies_to=Scored,
        function=units.unknown_units,
        why="""\
The run answers units that the truth does not contain. Nothing can be said about them and they change no
figure. A few are normal when the truth is a sample; many mean that run and truth belong to different
splits, or that ids are spelled in two ways.""",
        remedy="see whether the run belongs to this truth, and whether the ids are spelled alike",
        example="""\
from equipoise import Ranking, evaluate
ranking = Ranking.from_runs({"q1": {"a": 1}}, {"q1": {"a": 0.9, "b": 0.2}, "q7": {"a": 0.4}})
evaluate(ranking, "MRR").findings""",
    ),
    Check(
        code="EQ107",
        title="no lexical baseline",
        severity=Severity.TIP,
        applies_to=LineUp,
        function=protocol.no_lexical_baseline,
        why="""\
On many collections BM25 or TF-IDF over character n-grams is as good as a model, costs next to nothing and
needs no download. A comparison of models alone cannot show that none of them is worth its price.""",
        remedy="add bm25: or tfidf: to the systems",
        example="""\
from equipoise.checks.catalogue import examine
from equipoise.checks.subjects import LineUp
examine(LineUp(["minilm", "use"]))""",
    ),
    Check(
        code="EQ109",
        title="points that are invalid in their geometry",
        severity=Severity.ISSUE,
        applies_to=Embedded | Scored,
        function=points.invalid_points,
        why="""\
A hyperbolic distance exists only between points of the model: inside the open ball for Poincare, on the
upper sheet of the hyperboloid for Lorentz. A zero vector has no direction, so its cosine is not defined,
and NaN is near nothing. Programs that clamp such points in silence report figures of other points than
the ones that were trained. Here they are counted and named, and nothing is moved.""",
        remedy="project the points when they are trained, or embed these items again",
        example="""\
from equipoise.checks.catalogue import examine
from equipoise.checks.subjects import Embedded
from equipoise.geometry import geometry
examine(Embedded("accounts", [[0.1, 0.2], [0.9, 0.8]], geometry("poincare")))""",
    ),
    Check(
        code=scores.UNKNOWN_CANDIDATES,
        title="the number of candidates is unknown",
        severity=Severity.NOTE,
        applies_to=Scored,
        function=scores.unknown_candidates,
        why="""\
Lists that were cut at some depth do not say from how many items they were drawn. The metrics need no
more than the lists, but the chance level does: ten of twelve items found by luck are no feat, ten of a
million are. Without the size of the corpus the chance level counts only the items that were retrieved or
judged relevant. That is higher than the true one, and "not above chance" (EQ302) is not decided by it.""",
        remedy="say how many items could have been retrieved: corpus_size=N, or --corpus-size N",
        example="""\
from equipoise import Ranking, evaluate
ranking = Ranking.from_runs({"q1": {"a": 1, "b": 1}}, {"q1": {"a": 0.9, "c": 0.5}})
evaluate(ranking, "MRR").findings""",
    ),
    Check(
        code="EQ150",
        title="the vector cache cannot be used",
        severity=Severity.TIP,
        applies_to=Cache,
        function=embedding.cache_trouble,
        why="""\
Vectors are kept so that nothing is embedded twice. Where the file cannot be written or is damaged, they
are computed anew and not kept: the figures are the same, and the work is done again each time.""",
        remedy="make the folder writable, or set EQUIPOISE_CACHE to another one",
        example="""\
import numpy
from equipoise.checks.catalogue import examine
from equipoise.embed.cache.cache import Cache
from equipoise.embed.retriever import Fitted
cache = Cache("/dev/null/a file is no folder")
cache.put_many("model", "query", ["text"], numpy.ones((1, 2), dtype="float32"))
examine(cache)""",
    ),
    Check(
        code="EQ151",
        title="texts beyond the model's window",
        severity=Severity.TIP,
        applies_to=Window,
        function=embedding.beyond_the_window,
        why="""\
A model reads a fixed number of tokens and silently drops the rest. An answer that stands in the dropped part
cannot be found by its vector, and a model with a larger window then wins for a reason that has
nothing to do with how well it understands.""",
        remedy="split the texts into chunks that fit, or take a model that reads more",
        example="""\
from equipoise.checks.catalogue import examine
from equipoise.checks.subjects import Window
examine(Window("minilm", tokens=256, texts=100, truncated=12, lost_tokens=3400))""",
    ),
    Check(
        code="EQ152",
        title="the index misses what exact search finds",
        severity=Severity.TIP,
        applies_to=Fitted,
        function=embedding.index_loss,
        why="""\
An approximate index trades some of the nearest neighbours for speed. What it misses lowers every score of the
system, and without this figure the loss would be put down to the model.""",
        remedy="search exactly while comparing models, or raise the index's effort",
        example="""\
import numpy
from equipoise import retriever
from equipoise.checks.catalogue import examine
from equipoise.embed.stores.recall import RecallReport
system = retriever("hash").fit(["rye", "wheat"])  # with store="faiss:hnsw", search measures the recall
system.index_recall = RecallReport(10, numpy.array([1.0, 0.9, 0.7]))
examine(system)""",
    ),
    Check(
        code="EQ204",
        title="systems that were measured on different units",
        severity=Severity.ISSUE,
        applies_to=UnitSets,
        function=units.unpaired_units,
        why="""\
Two systems are compared on the same units, each unit with itself: the difficulty of the units then
cancels out, and far fewer of them are needed. Comparing on the units that both happen to share would
hide exactly those that one of them failed on. So unequal sets are refused, and this finding lists the
difference.""",
        remedy="score every system on the whole truth; a unit that a run misses scores 0 there",
        example="""\
from equipoise.checks.catalogue import examine
from equipoise.checks.subjects import UnitSets
examine(UnitSets({"bm25": ["q1", "q2"], "dense": ["q2", "q3"]}))""",
    ),
    Check(
        code=protocol.PARTIAL_RUN,
        title="a run is partial",
        severity=Severity.ISSUE,
        applies_to=Result,
        function=protocol.partial_run,
        why="""\
The run directory says of itself that the run was interrupted or failed. What it holds is what was finished
before that. The units that come last are not a sample of all of them, so the figures may move in either
direction when the rest is there, and a comparison with a complete run is not on equal terms.""",
        remedy="run the command again until it ends; what was finished is not done twice",
        example="""\
from dataclasses import replace
from equipoise import Ranking, evaluate
from equipoise.checks.catalogue import examine
result = evaluate(Ranking.from_ranks([1, 2, 4], candidates=20), "MRR", system="bm25")
examine(replace(result, settings={"status": "partial", "status_reason": "interrupted"}))""",
    ),
    Check(
        code=scores.TIES,
        title="many tied scores",
        severity=Severity.TIP,
        applies_to=Scored,
        function=scores.ties,
        why="""\
When a relevant item has the same score as other candidates, its rank depends on how equal scores are put
in order. Programs that sort keep the input order, which often lists the right answer first; then even a
constant score earns a perfect mark. Here a metric is its expectation over all orders of equal scores
(McSherry and Najork, 2008), so luck earns the chance level. More than 1 % of tied relevant items still
deserve a look: the range between the best and the worst order is how much of the figure is not decided
by the scores.""",
        remedy="keep more digits of the scores (float64, no rounding), or break ties in the system itself",
        example="""\
from equipoise import Ranking, evaluate
ranking = Ranking.from_runs({"q1": {"a": 1}}, {"q1": {"a": 0.5, "b": 0.5, "c": 0.1}})
evaluate(ranking, "MRR").findings""",
    ),
    Check(
        code="EQ302",
        title="not above chance",
        severity=Severity.ISSUE,
        applies_to=Scored,
        function=scores.not_above_chance,
        why="""\
The chance level is what the same evidence would give a system that knows nothing: every candidate gets
the same score, or the predictions are dealt out at random. An interval that reaches it means that these
units do not show the system to know anything. An interval wholly on the wrong side usually means that
distances were read as scores. A figure can look good and be luck: with 5 candidates, HR@3 is 0.6 for
nothing.""",
        remedy="use a smaller cutoff, more candidates or more units; or accept that nothing was learnt",
        example="""\
from equipoise import Ranking, evaluate
evaluate(Ranking.from_ranks([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], candidates=10), "MRR").findings""",
    ),
    Check(
        code="EQ303",
        title="a metric at its ceiling",
        severity=Severity.TIP,
        applies_to=Scored,
        function=scores.ceiling,
        why="""\
When the mean lies within 2 % of the best value, or more than nine units in ten have it, there is no room
left: a better system could not score better. Systems that such a metric calls equal may differ widely on
harder units, and the few units below the bound decide every comparison.""",
        remedy="use a harder metric (a smaller cutoff, or MRR for HR@10), more candidates, or harder units",
        example="""\
from equipoise import Ranking, evaluate
evaluate(Ranking.from_ranks([1] * 19 + [2], candidates=50), "HR@1").findings""",
    ),
    Check(
        code="EQ304",
        title="too few units for the difference seen",
        severity=Severity.TIP,
        applies_to=Comparison,
        function=power.too_few_units,
        why="""\
The systems differ on these units, but a difference of that size arises too often by luck with so few of
them. "Not significant" does not mean "equal". The number of units that would show this difference four
times in five is computed from the spread of the paired differences. It takes the difference seen for the
true one, and that is often smaller: plan for more.""",
        remedy="score about that many units, or report the systems as tied",
        example="""\
from equipoise import Ranking, compare
first = Ranking.from_ranks([1, 2, 1, 3, 1, 2, 4, 1], candidates=9)
second = Ranking.from_ranks([1, 3, 1, 2, 2, 2, 4, 2], candidates=9)
compare({"first": first, "second": second}, "MRR").findings""",
    ),
)

_BY_CODE = {check.code: check for check in CHECKS}


def explain(code: str) -> Check:
    """The check with this code, in any case; an unknown code gets a did-you-mean.

    >>> explain("eq301").title
    'many tied scores'
    """
    check = _BY_CODE.get(code.strip().upper())
    if check is None:
        raise UnknownNameError.of("check", code, _BY_CODE, more=f"known: {', '.join(_BY_CODE)}")
    return check


def examine(thing: object) -> tuple[Finding, ...]:
    """What all checks that apply to a thing find in it, by code.

    >>> [str(finding) for finding in examine(UnitSets({"a": ["q1"], "b": ["q1", "q2"]}))]
    ['EQ204 a, b: 0 units only in a (none), 1 only in b (q2)']
    """
    return tuple(finding for check in CHECKS for finding in check.findings(thing))
