"""An evaluation as plain values, for JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from equipoise.report.concepts_edition import Standing
from equipoise.stats.contrast import Contrast

if TYPE_CHECKING:
    from equipoise.recipes.concepts.evaluation import ConceptEvaluation


def evaluation_dict(found: ConceptEvaluation) -> dict[str, Any]:
    """Scores by the names of the source, their parts, the claims, and all that decided them."""
    edition = found.edition
    return {
        "schema": 1,
        "field": {"name": found.field.name, "fingerprint": found.field.fingerprint},
        "models": {
            name: {
                "dims": own.dims,
                "scores": {score: each.value for score, each in found[name].items()},
                "fingerprint": own.fingerprint,
            }
            for name, own in found.scores.items()
        },
        "scores": [_standing(each, edition.readings[each.score]) for each in edition.all_standings],
        "recommendations": [
            {
                "use": each.use,
                "score": each.score,
                "models": list(each.models),
                "sentence": each.sentence,
                "caution": each.caution,
            }
            for each in edition.advice
        ],
        "weight_sensitivity": [asdict(each) for each in edition.winning],
        "findings": [asdict(each) for each in found.findings],
        "notes": list(found.notes),
        "failures": {
            name: {"code": error.code, "sentence": error.sentence, "hint": error.hint}
            for name, error in found.failures.items()
        },
        "settings": {**edition.settings, "command": list(found.command)},
    }


def _standing(standing: Standing, readings: Any) -> dict[str, Any]:
    return {
        "score": standing.score,
        "formula": standing.formula,
        "resampled": standing.drawn,
        "chance_of": standing.luck,
        "method": standing.method,
        "readings": list(standing.readings),
        "correction": standing.family,
        "order": list(standing.order),
        "models": {
            name: {
                **each.to_dict(),
                "band": list(standing.letters[name]),
                "reading": readings[name],
                "parts": {part: own[name].to_dict() for part, own in standing.parts.items()},
                "beside": {
                    figure: {**own[name].to_dict(), **_shuffled(standing, figure, name)}
                    for figure, own in standing.beside.items()
                    if name in own
                },
            }
            for name, each in standing.estimates.items()
        },
        "comparisons": [_contrast(each) for each in standing.contrasts],
    }


def _shuffled(standing: Standing, figure: str, model: str) -> dict[str, float]:
    """The p of "no better than shuffled", corrected over the models, where shuffles were made."""
    return {"chance_p": standing.chance_p[figure][model]} if figure in standing.chance_p else {}


def _contrast(contrast: Contrast) -> dict[str, Any]:
    reach = contrast.interval
    return {
        "a": contrast.a,
        "b": contrast.b,
        "difference": contrast.difference,
        "interval": {"low": reach.low, "high": reach.high, "level": reach.level},
        "p": contrast.p,
        "adjusted_p": contrast.adjusted,
        "reason": contrast.reason,
    }
