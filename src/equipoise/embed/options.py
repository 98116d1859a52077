"""Options of a spec as numbers and choices, or a sentence that says what they may be."""

from __future__ import annotations

import math
from collections.abc import Sequence

from equipoise.embed.spec import Spec
from equipoise.errors import ParameterError, did_you_mean


def refuse_unknown_options(spec: Spec, known: Sequence[str]) -> None:
    """An option or a name that nothing reads would change nothing in silence."""
    if spec.name:
        raise ParameterError(
            f"{spec.kind}: has no models, and {spec.name!r} follows it",
            hint=f"write options behind a comma: {spec.kind}:,{known[0]}=...",
        )
    for option in spec.options:
        if option not in known:
            hint = did_you_mean(option, known) or f"the options are {', '.join(known)}"
            raise ParameterError(f"{spec.kind}: has no option {option!r}", hint=hint)


def number_option(spec: Spec, option: str, default: float) -> float:
    """A finite number; the default where the option was not given."""
    value = spec.options.get(option)
    if value is None:
        return default
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ParameterError(f"{option} is {value!r} in {spec}", hint=f"{option} is a number")
    return number
