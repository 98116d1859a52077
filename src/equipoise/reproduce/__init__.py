"""Score like other libraries, and attribute score differences to their conventions."""

from equipoise.reproduce.attribution import explain_difference
from equipoise.reproduce.difference import ScoreDifference
from equipoise.reproduce.presets import PRESETS, Preset
from equipoise.reproduce.published import ConventionSearch, explain_published
from equipoise.reproduce.score import score_like

__all__ = [
    "PRESETS",
    "ConventionSearch",
    "Preset",
    "ScoreDifference",
    "explain_difference",
    "explain_published",
    "score_like",
]
