"""Checks of a fixture of questions: answers that cannot be found, or too easily; too few questions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

from equipoise.checks.base import Check, Observation, evidence_names, join_names, pluralize
from equipoise.stats.formatting import format_value
from equipoise.stats.power import PowerEstimate, accuracy_table, detectable_difference
from equipoise.types import Severity

ACCURACY = 0.8
"""Planning takes systems of this accuracy: what fair fixtures usually show."""

MAX_RETRIEVED_FRACTION = 0.5
"""From this share of the chunks on, retrieving is hardly a choice."""

_ANSWER_WIDTH = 40


@dataclass(frozen=True, slots=True)
class AnswerOccurrences:
    """An answer, at how many places of the document it stands, and how many chunks hold it."""

    question: str
    """The id of the question."""
    answer: str
    places: int
    chunks: int

    def __str__(self) -> str:
        answer = " ".join(self.answer.split())
        return f'{self.question} "{answer if len(answer) <= _ANSWER_WIDTH else answer[:_ANSWER_WIDTH] + "..."}"'


@dataclass(frozen=True)
class AnswersInDocument:
    """Where the answers of a fixture stand in a document that was cut into so many chunks."""

    answers: Sequence[AnswerOccurrences]
    chunks: int
    chunking: str = "the chunks"
    fixture: str = "the fixture"


@dataclass(frozen=True)
class SplitAnswers:
    """Answers that stand in the document and in no chunk, by the name of each chunking that was tried."""

    cut: Mapping[str, Sequence[AnswerOccurrences]]
    answers: int
    fixture: str = "the fixture"

    @property
    def worst(self) -> str:
        """The chunking that cuts most."""
        return max(self.cut, key=lambda name: len(self.cut[name]))


@dataclass(frozen=True)
class QuestionSet:
    """How many questions there are, those that were asked before, and those that hold their own answer.

    Questions are named as people find them again: by id, and in their own words.
    """

    questions: int
    repeated: Sequence[str] = ()
    leaking: Sequence[str] = ()
    fixture: str = "the fixture"


@dataclass(frozen=True)
class SampleSize:
    """How many questions there are, the fewest that are wanted, and what that many can show.

    >>> size = SampleSize(80)
    >>> round(size.half_width, 3), round(size.detectable.value, 3)
    (0.087, 0.179)
    """

    questions: int
    minimum: int = 50
    accuracy: float = ACCURACY
    fixture: str = "the fixture"

    @property
    def half_width(self) -> float:
        """Half the width of the 95 % Wilson interval of the accuracy."""
        return accuracy_table([self.questions], accuracy=self.accuracy)[0].half_width

    @property
    def detectable(self) -> PowerEstimate:
        """The smallest difference between two systems that is shown four times in five.

        Both have the accuracy and err independently, which is the worst usual case: their differences have
        the variance 2 p (1 - p). Systems that fail on the same questions are told apart by fewer.
        """
        spread = sqrt(2 * self.accuracy * (1 - self.accuracy))
        planned = detectable_difference(spread, self.questions)
        if planned.known and planned.value > 1:
            return PowerEstimate.unknown("no difference is large enough")
        return planned


@dataclass(frozen=True)
class RetrievedFraction:
    """How many of a document's chunks one search returns."""

    chunks: int
    top_k: int
    document: str = "the document"
    chunking: str = ""
    """How it was cut, where several ways were tried."""


def missing_answers(found: AnswersInDocument | SplitAnswers) -> Iterator[Observation]:
    """EQ102: answers that are not in the document, or that chunk borders cut in two wherever they stand."""
    if isinstance(found, SplitAnswers):
        yield from _cut_answers(found)
        return
    total = pluralize(len(found.answers), "answer")
    absent = [each for each in found.answers if each.places == 0 and each.chunks == 0]
    if absent:
        verb = "is" if len(absent) == 1 else "are"
        yield Observation(
            found.fixture,
            f"{len(absent):,} of {total} {verb} not in the document, and no system can find "
            f"{'it' if len(absent) == 1 else 'them'}: {join_names(absent)}",
            evidence_names(absent),
        )
    cut = [each for each in found.answers if each.places and not each.chunks]
    yield from _cut_answers(SplitAnswers({found.chunking: cut}, len(found.answers), found.fixture))


def _cut_answers(found: SplitAnswers) -> Iterator[Observation]:
    """The chunking that cuts most answers, and how many others cut some."""
    unwhole = {name: cut for name, cut in found.cut.items() if cut}
    if not unwhole:
        return
    worst = found.cut[found.worst]
    verb = "stands" if len(worst) == 1 else "stand"
    others = len(unwhole) - 1
    more = f"; {pluralize(others, 'other chunking')} of {len(found.cut) - 1:,} cut some too" if others else ""
    yield Observation(
        found.fixture,
        f"{len(worst):,} of {pluralize(found.answers, 'answer')} {verb} in the document and in no chunk of "
        f"{found.worst}, since borders cut {'it' if len(worst) == 1 else 'them'} in two, so that "
        f"{_ceiling(worst, found)} is the most that any system can score there: {join_names(worst)}{more}",
        (*_ceilings(found, unwhole), *evidence_names(worst)),
        "enlarge the overlap beyond the longest answer, or the chunks",
    )


def _ceiling(cut: Sequence[AnswerOccurrences], found: SplitAnswers) -> str:
    return format_value(1 - len(cut) / found.answers, 2)


def _ceilings(found: SplitAnswers, unwhole: Mapping[str, Sequence[AnswerOccurrences]]) -> Iterator[str]:
    """What can be scored at best with each chunking that cuts answers, where several were tried."""
    if len(found.cut) > 1:
        for name, cut in unwhole.items():
            yield f"{name} cuts {len(cut):,}: at best {_ceiling(cut, found)}"


def duplicate_questions(asked: QuestionSet) -> Iterator[Observation]:
    """EQ111: questions that an earlier one equals."""
    if asked.repeated:
        many = len(asked.repeated) > 1
        yield Observation(
            asked.fixture,
            f"{len(asked.repeated):,} of {pluralize(asked.questions, 'question')} {'were' if many else 'was'} "
            f"asked before: {join_names(asked.repeated)}",
            evidence_names(asked.repeated),
        )


def leaking_questions(asked: QuestionSet) -> Iterator[Observation]:
    """EQ112: questions that hold their own answer."""
    if asked.leaking:
        verb = "hold their" if len(asked.leaking) > 1 else "holds its"
        yield Observation(
            asked.fixture,
            f"{len(asked.leaking):,} of {pluralize(asked.questions, 'question')} {verb} own answer: "
            f"{join_names(asked.leaking)}",
            evidence_names(asked.leaking),
        )


def ambiguous_answers(found: AnswersInDocument) -> Iterator[Observation]:
    """EQ103: answers that stand at several places, of which only one was asked for."""
    several = sorted((each for each in found.answers if each.places > 1), key=lambda each: (-each.places, -each.chunks))
    if several:
        verb = "stands" if len(several) == 1 else "stand"
        widest = several[0]
        yield Observation(
            found.fixture,
            f"{len(several):,} of {pluralize(len(found.answers), 'answer')} {verb} at more than one place of "
            f"the document; {widest} at {widest.places:,}, "
            f"in {widest.chunks:,} of {pluralize(found.chunks, 'chunk')}",
            evidence_names([f"{each}: {pluralize(each.places, 'place')}, {each.chunks:,} chunks" for each in several]),
        )


def too_few_questions(size: SampleSize) -> Iterator[Observation]:
    """EQ105: fewer questions than the fewest that are wanted."""
    if size.questions < size.minimum:
        detectable = size.detectable
        shown = (
            f"a difference below {format_value(detectable.value, 2)} would mostly go unseen"
            if detectable.known
            else "no difference between systems could be shown"
        )
        yield Observation(
            size.fixture,
            f"{pluralize(size.questions, 'question')} of at least {size.minimum:,}: an accuracy of "
            f"{format_value(size.accuracy, 1)} would be known to within "
            f"{format_value(size.half_width, 2)}, and {shown}",
            (
                f"Wilson half-width {format_value(size.half_width)} at accuracy {format_value(size.accuracy, 1)}",
                f"detectable at 80 % power: {format_value(detectable.value, reason=detectable.reason)}",
            ),
        )


def retrieves_most(share: RetrievedFraction) -> Iterator[Observation]:
    """EQ108: a search returns half of the document or more."""
    returned = min(share.top_k, share.chunks)
    if share.chunks and returned >= MAX_RETRIEVED_FRACTION * share.chunks:
        chance = returned / share.chunks
        yield Observation(
            share.document,
            f"top_k {share.top_k} returns {returned:,} of {pluralize(share.chunks, 'chunk')}"
            f"{f' of {share.chunking}' if share.chunking else ''}: drawing them at "
            f"random would find an answer that stands in one chunk with probability {format_value(chance, 2)}",
            (f"{format_value(chance, 4)} of the chunks returned",),
        )


CHECKS: tuple[Check, ...] = (
    Check(
        code="EQ102",
        title="answer absent",
        severity=Severity.ISSUE,
        applies_to=AnswersInDocument | SplitAnswers,
        function=missing_answers,
        why="""\
A question counts as answered when a retrieved chunk holds its answer. Where no chunk does, every system
fails, and the best accuracy that can be reached is below 1 for a reason that no system can help. Mostly the
answer is a paraphrase or has a typing error. An answer that the document does hold is lost all the
same where the border between two chunks runs through it.""",
        hint="write the answer as the document does; eq fair validate shows the closest passage",
        example="""\
from equipoise.checks.registry import run_checks
from equipoise.domains.fair.checks import AnswerOccurrences, AnswersInDocument
absent = AnswerOccurrences("q2", "Lyons", places=0, chunks=0)
run_checks(AnswersInDocument([AnswerOccurrences("q1", "Paris", places=1, chunks=1), absent], chunks=40))""",
    ),
    Check(
        code="EQ103",
        title="answer ambiguous",
        severity=Severity.TIP,
        applies_to=AnswersInDocument,
        function=ambiguous_answers,
        why="""\
An answer such as "1995" or "Paris" may stand in many chunks, and a system that retrieves any of them is
credited, also when that chunk says nothing about the question. The more chunks hold the answer, the higher
the chance level, and the less a hit shows. Overlap alone does not make an answer ambiguous: what counts is
the number of places in the document.""",
        hint="make the answer longer, so that only the right passage holds it",
        example="""\
from equipoise.checks.registry import run_checks
from equipoise.domains.fair.checks import AnswerOccurrences, AnswersInDocument
common = AnswerOccurrences("q1", "Paris", places=14, chunks=9)
run_checks(AnswersInDocument([common, AnswerOccurrences("q2", "in May 1871", places=1, chunks=1)], chunks=40))""",
    ),
    Check(
        code="EQ105",
        title="too few questions",
        severity=Severity.ISSUE,
        applies_to=SampleSize,
        function=too_few_questions,
        why="""\
The interval of an accuracy narrows with the square root of the number of questions, and so does the
smallest difference that can be told from luck. With 20 questions two systems must differ by more than a third
before it shows. The figures are computed for two systems of accuracy 0.8 that err independently, a
two-sided paired test at 5 %, and a power of 80 %.""",
        hint="write more questions; eq fair validate shows what how many of them can show",
        example="""\
from equipoise.checks.registry import run_checks
from equipoise.domains.fair.checks import SampleSize
run_checks(SampleSize(questions=20))""",
    ),
    Check(
        code="EQ108",
        title="the document is so short that top_k retrieves most of it",
        severity=Severity.ISSUE,
        applies_to=RetrievedFraction,
        function=retrieves_most,
        why="""\
When a search returns half of the chunks or more, a system that picks at random finds half of the answers or
more, and all systems look good and alike. The accuracy then measures the length of the document.""",
        hint="use a smaller top_k, smaller chunks, or a longer document",
        example="""\
from equipoise.checks.registry import run_checks
from equipoise.domains.fair.checks import RetrievedFraction
run_checks(RetrievedFraction(chunks=12, top_k=10))""",
    ),
    Check(
        code="EQ111",
        title="a question was asked before",
        severity=Severity.ISSUE,
        applies_to=QuestionSet,
        function=duplicate_questions,
        why="""\
Two equal questions are one observation. Counted twice, its luck counts twice, and intervals that take
questions for independent are too narrow. The nested comparison keeps questions of one answer together, so
its intervals hold; the figure still leans towards what was asked twice.""",
        hint="leave the repetition out, or ask for something else",
        example="""\
from equipoise.checks.registry import run_checks
from equipoise.domains.fair.checks import QuestionSet
run_checks(QuestionSet(questions=80, repeated=['q41 "Who built the mill?"']))""",
    ),
    Check(
        code="EQ112",
        title="a question holds its own answer",
        severity=Severity.TIP,
        applies_to=QuestionSet,
        function=leaking_questions,
        why="""\
Whoever asks "In which year, 1871 or 1873, was the mill built?" hands the answer over: a system that only
looks at words finds the chunk by it, and one that understands the question gains nothing.""",
        hint="ask without giving the answer away",
        example="""\
from equipoise.checks.registry import run_checks
from equipoise.domains.fair.checks import QuestionSet
run_checks(QuestionSet(questions=80, leaking=['q7 "Was it built in 1871?"']))""",
    ),
)
