"""Scoring as other libraries do, and why two of them disagree."""

from equipoise.checks.like.difference import Difference
from equipoise.checks.like.explain import explain_difference
from equipoise.checks.like.presets import PRESETS, Preset
from equipoise.checks.like.published import Search, explain_published
from equipoise.checks.like.score import score_like

__all__ = [
    "PRESETS",
    "Difference",
    "Preset",
    "Search",
    "explain_difference",
    "explain_published",
    "score_like",
]
