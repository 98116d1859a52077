"""The error of a model that failed before all texts were embedded, which says how many were."""

from __future__ import annotations

from equipoise.errors import PartialError


class StoppedError(PartialError):
    """A model failed after ``done`` texts of ``total``, None where it is unknown how many there are.

    >>> StoppedError("tiny", "the server answered 500", 2, 8).counted(2050, None).sentence
    'tiny failed after 2,050 texts: the server answered 500'
    """

    def __init__(self, model: str, reason: str, done: int, total: int | None, *, hint: str = "") -> None:
        texts = f"{done:,} texts" if total is None else f"{done:,} of {total:,} texts"
        super().__init__(f"{model} failed after {texts}: {reason}", hint=hint)
        self.model, self.reason, self.done, self.total = model, reason, done, total

    def counted(self, done: int, total: int | None) -> StoppedError:
        """The same failure as it is counted in a larger piece of work."""
        more = StoppedError(self.model, self.reason, done, total, hint=self.hint)
        more.finished = self.finished
        return more

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (self.model, self.reason, self.done, self.total, self.hint))


def _rebuild(model: str, reason: str, done: int, total: int | None, hint: str) -> StoppedError:
    return StoppedError(model, reason, done, total, hint=hint)
