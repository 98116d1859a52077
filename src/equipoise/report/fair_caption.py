"""The text below the table of a fair comparison: enough to read it, and all of it on request."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.checks.base import listed
from equipoise.report.comparison import caption
from equipoise.report.edition import Edition
from equipoise.stats.comparison import Comparison
from equipoise.stats.numbers import figure, percent

REDRAWN = (
    "Questions that are scored by what others chose are not independent. So questions are resampled, split "
    "and chosen on again, thousands of times: intervals come from this bootstrap, and p is the larger of "
    "the test's and of the bootstrap's."
)

TOKENS_ARE = {"words": "A token is a word or a punctuation mark.", "": "What a token is was not recorded."}
"""What is said of a tokenizer that is no vocabulary."""


def short_caption(edition: Edition) -> Iterator[str]:
    """What a reader must know in order to read the table."""
    tried = edition.tried
    if tried == 1:
        yield "One configuration was tried, so that nothing was chosen."
    elif edition.nested:
        yield (
            f"Each question is scored with parameters chosen on others ({edition.folds} folds"
            f"{_over_splits(edition)}); optimistic chooses and scores on the same, and the gap is what that "
            "adds."
        )
    else:
        yield (
            f"The best of {tried:,} configurations is partly the luckiest of them; with folds it is scored "
            "on other questions than those that chose it."
        )
    if edition.comparison is not None:
        yield _about_p(edition.comparison, drawn=edition.nested and tried > 1)
    yield from _about_mcnemar(edition)
    if edition.ceilings:
        least = listed([f"{name} {figure(share, 2)}" for name, share in edition.ceilings.items()])
        yield f"Chunk borders cut answers, and the best that can be scored is below 1: {least}."
    yield TOKENS_ARE.get(edition.tokenizer, f"Tokens: {edition.tokenizer}.")


def _about_p(comparison: Comparison, *, drawn: bool) -> str:
    pairs = sum(each.metric == comparison.primary for each in comparison.contrasts)
    family = f"p is adjusted for {pairs} pairs" if pairs > 1 else "p is of one pair"
    choice = " and allows for the choice of parameters" if drawn else ""
    level = percent(comparison.question.level)
    return f"Models that share a letter are not significantly different at {level}; {family}{choice}."


def _over_splits(edition: Edition) -> str:
    """Over how many splits the scores are means, and how much the score of one split varies."""
    if edition.splits < 2:
        return ""
    spread = max(each.tuning.split_sd or 0.0 for each in edition.contenders)
    return f", mean over {edition.splits} splits; SD of one split up to {figure(spread, 3)}"


def _about_mcnemar(edition: Edition) -> Iterator[str]:
    """What the column of McNemar's test says, or why there is none."""
    if edition.comparison is None:
        return
    if edition.mcnemar is not None:
        counted = "questions answered in most splits" if edition.splits > 1 else "answered questions"
        yield f"McNemar p: exact, of {counted}, not adjusted."
    tied = [each.name for each in edition.contenders if each.tied_questions]
    if tied:
        yield f"McNemar's test was skipped where tied scores give fractional hits ({listed(tied)})."


def long_caption(edition: Edition) -> Iterator[str]:
    """How everything was made, in full."""
    yield (
        "Chance is what as many chunks drawn at random would score; tokens is what the best configuration "
        "retrieves for a question, in the mean. Of equally accurate configurations the one that retrieves "
        "less is chosen (with the matcher source: the first of the grid)."
    )
    if edition.nested:
        yield REDRAWN
    if edition.comparison is not None:
        yield caption(edition.comparison)
    if edition.mcnemar is not None:
        yield (
            "McNemar's exact test looks at the questions that one of two models answers and the other does "
            "not. It takes questions for independent and the parameters for given, which adj. p does not."
        )
