"""What a matching rule is: it says which texts hold an answer, and how many texts in order are needed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np

from equipoise.types import Bools, Ints


@dataclass(frozen=True, eq=False)
class Parts:
    """What an answer is made of where texts are read together: a row a part, which texts have it.

    Texts that together have ``needed`` of the parts hold the answer.
    """

    there: Bools
    needed: int

    def scattered(self) -> Parts | None:
        """The parts that some texts have and others lack; None where no two texts complete each other.

        >>> there = np.array([[True, True, True], [True, False, False], [False, True, False]])
        >>> Parts(there, 3).scattered()
        Parts(there=array([[ True, False, False],
               [False,  True, False]]), needed=2)
        """
        count = self.there.sum(axis=1)
        everywhere = count == self.there.shape[1]
        some = self.there[(count > 0) & ~everywhere]
        needed = self.needed - int(everywhere.sum())
        return Parts(some, needed) if 2 <= needed <= len(some) else None


class Shelf(ABC):
    """Texts that were prepared once, to be asked for many answers."""

    @abstractmethod
    def holders(self, answer: str) -> Ints:
        """The positions of the texts that hold the answer, each by itself, ascending."""

    @abstractmethod
    def first_hit(self, answer: str, order: Sequence[int] | Ints) -> int | None:
        """How many texts, in this order, are needed until the answer is there; None if all do not do."""

    def parts(self, answer: str) -> Parts | None:
        """What texts that are read together may have of the answer; None where each is read by itself."""
        return None


@dataclass(frozen=True)
class Matcher(ABC):
    """One rule for "this text holds this answer"; its fields are its options."""

    kind: ClassVar[str]
    joins: ClassVar[bool] = False
    """Whether texts that are retrieved together are read as one, so that an answer may span two of them."""

    @property
    def name(self) -> str:
        """The kind of rule, with the options that are not the usual ones."""
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        usual = {field.name: field.default for field in fields(self)}
        changed = [f"{name}={value}" for name, value in own.items() if value != usual[name]]
        return f"{self.kind}({', '.join(changed)})" if changed else self.kind

    @abstractmethod
    def shelve(self, texts: Sequence[str]) -> Shelf:
        """Prepare texts, so that asking for many answers is fast."""

    def holds(self, answer: str, text: str) -> bool:
        """Whether one text holds the answer."""
        return bool(len(self.shelve([text]).holders(answer)))

    def holders(self, answers: Sequence[str], texts: Sequence[str]) -> list[Ints]:
        """For each answer the positions of the texts that hold it."""
        shelf = self.shelve(texts)
        return [shelf.holders(answer) for answer in answers]

    def first_hit(self, answer: str, texts: Sequence[str]) -> int | None:
        """How many texts, from the first on, are needed until the answer is there; None if all do not do.

        >>> from equipoise.tasks.answers.matcher import matcher
        >>> matcher("words").first_hit("rye", ["wheat flour", "rye flour"])
        2
        """
        return self.shelve(texts).first_hit(answer, np.arange(len(texts)))
