"""What to use, and where the data do not say."""

from equipoise.recipes.concepts.advice import advise
from equipoise.report.concepts_edition import Standing
from equipoise.stats.interval import Interval
from equipoise.stats.result import Estimate
from equipoise.types import Direction


def estimate(value: float, low: float, high: float, chance: float = 0.0) -> Estimate:
    return Estimate("x", value, Interval(low, high), 50, 0, chance, Direction.UP)


def standing(letters: dict[str, tuple[str, ...]], ari: dict[str, Estimate]) -> Standing:
    values = {name: estimate(0.9 - 0.1 * at, 0.0, 1.0) for at, name in enumerate(letters)}
    return Standing(
        score="clustering_score",
        title="",
        formula="",
        estimates=values,
        contrasts=(),
        letters=letters,
        order=tuple(letters),
        drawn="",
        beside={"ARI": ari},
    )


GOOD, LUCKY = estimate(0.5, 0.4, 0.6), estimate(0.02, -0.1, 0.2)


def test_models_that_share_a_band_with_the_leader_are_all_named() -> None:
    letters = {"a": ("a",), "b": ("a", "b"), "c": ("b",)}
    (advice,) = advise([standing(letters, dict.fromkeys(letters, GOOD))])
    assert (advice.use, advice.sentence) == ("Concept Clustering", "a or b: not separated by this data")
    assert not advice.settled


def test_a_leader_that_is_alone_in_its_band_is_recommended() -> None:
    (advice,) = advise([standing({"a": ("a",), "b": ("b",)}, {"a": GOOD, "b": LUCKY})])
    assert (advice.sentence, advice.caution) == ("a", "")


def test_a_recommendation_that_the_true_labels_contradict_says_so() -> None:
    (advice,) = advise([standing({"a": ("a",), "b": ("b",)}, {"a": LUCKY, "b": GOOD})])
    assert advice.caution == "but b has the highest ARI, where it is not above chance"


def test_nobody_above_chance_is_said() -> None:
    (advice,) = advise([standing({"a": ("a",), "b": ("b",)}, {"a": LUCKY, "b": LUCKY})])
    assert advice.caution == "but no model is shown to be above chance in ARI"
