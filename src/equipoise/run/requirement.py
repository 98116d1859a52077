"""What a gate asks of a run: ``nDCG@10>=0.60``, or ``MR<=5`` where less is better."""

from __future__ import annotations

import re
from dataclasses import dataclass

from equipoise.data.number import NotANumber, NotFinite, number
from equipoise.errors import ParameterError
from equipoise.stats.result import Estimate
from equipoise.types import Direction

AT_LEAST, AT_MOST = ">=", "<="
_SPELLING = re.compile(
    r"^\s*(?P<metric>.*?[^\s<>=!])\s*(?P<sign><=|>=|==?|!=|<|>)\s*(?P<limit>\S+?)\s*(?P<percent>%?)\s*$"
)
_WORDS = {AT_LEAST: "at least", AT_MOST: "at most"}


@dataclass(frozen=True, slots=True)
class Requirement:
    """A metric and the figure that it must reach, or must not exceed.

    >>> Requirement.parse("nDCG@10 >= 60%")
    Requirement(metric='nDCG@10', sign='>=', limit=0.6, text='60%')
    """

    metric: str
    sign: str
    limit: float
    text: str

    @classmethod
    def parse(cls, text: str) -> Requirement:
        """From the spelling; a percent sign divides by 100."""
        # The = of a parameter, as in MAP(norm=R)@10, is no sign: only what follows the brackets counts.
        head, bracket, tail = text.rpartition(")")
        match = _SPELLING.match(f"_{tail}" if bracket else tail)
        if match is None:
            raise ParameterError(
                f"{text!r} is no requirement", hint="write a metric, >= or <=, and a number: nDCG@10>=0.60"
            )
        metric = f"{head})" + match["metric"].removeprefix("_") if bracket else match["metric"]
        if match["sign"] not in _WORDS:
            raise ParameterError(
                f"{text!r} compares with {match['sign']}",
                hint=f"write {metric}>={match['limit']}, or <= where less is better",
            )
        try:
            limit = float(number(match["limit"]))
        except (NotANumber, NotFinite):
            raise ParameterError(
                f"{text!r} asks for {match['limit']!r}, which is no number", hint="for example nDCG@10>=0.60"
            ) from None
        percent = match["percent"]
        return cls(metric, match["sign"], limit / 100 if percent else limit, match["limit"] + percent)

    @property
    def words(self) -> str:
        """``at least 0.60``."""
        return f"{_WORDS[self.sign]} {self.text}"

    def holds(self, value: float) -> bool:
        """Whether a figure meets it; NaN does not."""
        return value >= self.limit if self.sign == AT_LEAST else value <= self.limit

    def checked(self, estimate: Estimate) -> Requirement:
        """The same requirement, when it asks in the direction in which the metric is better."""
        wanted = AT_LEAST if estimate.better == Direction.UP else AT_MOST
        if self.sign != wanted:
            which = "more" if estimate.better == Direction.UP else "less"
            raise ParameterError(
                f"{self.metric}{self.sign}{self.text} asks for the wrong side: of {estimate.metric} {which} "
                "is better",
                hint=f"write {self.metric}{wanted}{self.text}",
            )
        if estimate.unit == "fraction" and not 0.0 <= self.limit <= 1.0:
            raise ParameterError(
                f"{self.metric} lies between 0 and 1, and {self.text} does not",
                hint=f"write {self.metric}{self.sign}{self.limit / 100:g}, or {self.text}%",
            )
        return self
