"""What to use, and where the data do not say."""

from collections.abc import Sequence
from dataclasses import replace

from equipoise.domains.concepts.comparison import recommend
from equipoise.domains.concepts.report import ScoreComparison
from equipoise.stats.contrasts import Contrast
from equipoise.stats.intervals import Interval
from equipoise.stats.result import Estimate
from equipoise.types import Direction


def estimate(value: float, low: float, high: float, chance: float = 0.0) -> Estimate:
    return Estimate("x", value, Interval(low, high), 50, 0, chance, Direction.UP)


def standing(
    letters: dict[str, tuple[str, ...]], ari: dict[str, Estimate], contrasts: Sequence[Contrast] = ()
) -> ScoreComparison:
    values = {name: estimate(0.9 - 0.1 * at, 0.0, 1.0) for at, name in enumerate(letters)}
    return ScoreComparison(
        score="clustering_score",
        title="",
        formula="",
        estimates=values,
        contrasts=(),
        letters=letters,
        order=tuple(letters),
        drawn="",
        truth="ARI",
        truth_contrasts=tuple(contrasts),
        reference_metrics={"ARI": ari},
    )


BEST, GOOD, LUCKY = estimate(0.8, 0.7, 0.9), estimate(0.5, 0.4, 0.6), estimate(0.02, -0.1, 0.2)


def higher(a: str, b: str, p: float) -> Contrast:
    """The first has a higher ARI, with this p."""
    return Contrast("ARI", a, b, Direction.UP, 0.3, Interval(0.1, 0.5), p, p, 50, 0)


def test_models_that_share_a_band_with_the_leader_are_all_named() -> None:
    letters = {"a": ("a",), "b": ("a", "b"), "c": ("b",)}
    (advice,) = recommend([standing(letters, dict.fromkeys(letters, GOOD))])
    assert (advice.use, advice.message) == ("Concept Clustering", "a or b: not separated by this data")
    assert not advice.settled


def test_a_leader_that_is_alone_in_its_band_is_recommended() -> None:
    (advice,) = recommend([standing({"a": ("a",), "b": ("b",)}, {"a": GOOD, "b": LUCKY})])
    assert (advice.message, advice.caution) == ("a", "")


def test_a_recommendation_that_the_true_labels_contradict_says_so() -> None:
    letters = {"a": ("a",), "b": ("b",)}
    beside = {"a": LUCKY, "b": GOOD}
    (advice,) = recommend([standing(letters, beside, [higher("b", "a", 0.001)])])
    assert advice.caution == ("but a is not shown to be above chance in ARI, and b has a higher ARI than a")


def test_a_higher_figure_that_is_not_separated_is_not_claimed() -> None:
    letters = {"a": ("a",), "b": ("b",)}
    (advice,) = recommend([standing(letters, {"a": GOOD, "b": BEST}, [higher("b", "a", 0.4)])])
    assert advice.caution == ""


def test_every_model_that_is_named_is_judged_by_name() -> None:
    letters = {"hash:": ("a",), "use": ("a",), "c": ("b",)}
    beside = {"hash:": LUCKY, "use": BEST, "c": GOOD}
    (advice,) = recommend([standing(letters, beside)])
    assert advice.caution == "but hash: is not shown to be above chance in ARI"


def test_shuffles_decide_over_the_interval_who_is_above_chance() -> None:
    letters = {"a": ("a",), "b": ("b",)}
    own = replace(standing(letters, {"a": LUCKY, "b": GOOD}), chance_p={"ARI": {"a": 0.01, "b": 0.2}})
    assert own.above_chance("ARI", "a")
    assert not own.above_chance("ARI", "b")


def test_a_model_beside_one_without_a_score_has_not_won() -> None:
    (advice,) = recommend([standing({"a": ("a",), "b": ()}, {"a": GOOD, "b": LUCKY})])
    assert advice.message == "a, the only one with a score"
