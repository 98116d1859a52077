"""What stands below the table of a fair comparison: enough to read it, and all of it on request."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.checks.base import listed
from equipoise.report.comparison import caption
from equipoise.report.edition import Edition
from equipoise.stats.comparison import Comparison
from equipoise.stats.numbers import figure, percent

MCNEMAR = "mcnemar"

REDRAWN = (
    "Questions that are scored by what others chose depend on each other. So questions are drawn anew and "
    "chosen on again, thousands of times: intervals come from that, and p is the larger of what the test "
    "says and of what these draws say."
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
            f"Each question is scored with parameters chosen on others ({edition.folds} folds); optimistic "
            "chooses and scores on the same, and the gap is what that adds."
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
    luck = " and allows for the luck of choosing" if drawn else ""
    level = percent(comparison.question.level)
    return f"Models that share a letter cannot be told apart at {level}; {family}{luck}."


def _about_mcnemar(edition: Edition) -> Iterator[str]:
    """What the column of McNemar's test says, or why there is none."""
    comparison = edition.comparison
    if comparison is None or comparison.question.test == MCNEMAR:
        return
    if edition.mcnemar is not None:
        yield "McNemar: the same by his exact test of hits and misses."
        return
    parted = [each.name for each in edition.contenders if each.part_hits]
    if parted:
        yield f"No McNemar: his test needs whole hits, and equal scores leave part hits ({listed(parted)})."


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
        yield "McNemar's p, too, is the larger of what the exact test says and of what the draws say."
