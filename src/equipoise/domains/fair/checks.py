"""Checks of a question set: missing, split or ambiguous answers; duplicate, leaking or too few questions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

from equipoise.checks.base import Check, Observation, evidence_names, join_names, pluralize
from equipoise.stats.formatting import format_value
from equipoise.stats.power import PowerEstimate, accuracy_table, detectable_difference
from equipoise.types import Severity

TOO_FEW_QUESTIONS = "EQ105"
ACCURACY = 0.8
"""The accuracy assumed for power calculations; typical for fair comparisons."""

MAX_RETRIEVED_FRACTION = 0.5
"""Retrieving at least this share of the chunks is reported."""

_ANSWER_WIDTH = 40


@dataclass(frozen=True, slots=True)
class AnswerOccurrences:
    """An answer, how often it occurs in the document, and how many chunks contain it."""

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
    """The occurrences of all answers of a question set in a document with this many chunks."""

    answers: Sequence[AnswerOccurrences]
    chunks: int
    chunking: str = ""
    name: str = "the question set"


@dataclass(frozen=True)
class SplitAnswers:
    """Answers that occur in the document and in no chunk, by chunking."""

    cut: Mapping[str, Sequence[AnswerOccurrences]]
    answers: int
    name: str = "the question set"

    @property
    def worst(self) -> str:
        """The chunking that splits the most answers."""
        return max(self.cut, key=lambda name: len(self.cut[name]))


@dataclass(frozen=True)
class QuestionSet:
    """The number of questions, the duplicates, the questions that contain their answer, and the drafts.

    Questions are named by id and text.
    """

    questions: int
    repeated: Sequence[str] = ()
    leaking: Sequence[str] = ()
    drafts: Sequence[str] = ()
    name: str = "the question set"


@dataclass(frozen=True)
class SampleSize:
    """The number of questions, the minimum number, and the precision of that many.

    >>> size = SampleSize(80)
    >>> round(size.half_width, 3), round(size.detectable.value, 3)
    (0.087, 0.179)
    """

    questions: int
    minimum: int = 50
    accuracy: float = ACCURACY
    name: str = "the question set"

    @property
    def half_width(self) -> float:
        """Half the width of the 95 % Wilson interval of the accuracy."""
        return accuracy_table([self.questions], accuracy=self.accuracy)[0].half_width

    @property
    def detectable(self) -> PowerEstimate:
        """The smallest difference between two systems that is detected with 80 % power.

        Both have the same accuracy p and err independently, so their differences have the variance
        2 p (1 - p). Systems that fail on the same questions need fewer questions.
        """
        standard_deviation = sqrt(2 * self.accuracy * (1 - self.accuracy))
        planned = detectable_difference(standard_deviation, self.questions)
        if planned.known and planned.value > 1:
            return PowerEstimate.unknown("no difference is detectable")
        return planned


@dataclass(frozen=True)
class RetrievedFraction:
    """How many of a document's chunks one search returns."""

    chunks: int
    top_k: int
    document: str = "the document"
    chunking: str = ""
    """The chunking, if there are several."""


def missing_answers(subject: AnswersInDocument | SplitAnswers) -> Iterator[Observation]:
    """EQ102: answers that are not in the document, or that chunk boundaries split at every occurrence."""
    if isinstance(subject, SplitAnswers):
        yield from _cut_answers(subject)
        return
    total = pluralize(len(subject.answers), "answer")
    missing = [answer for answer in subject.answers if answer.places == 0 and answer.chunks == 0]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        yield Observation(
            subject.name,
            f"{len(missing):,} of {total} {verb} not in the document, and no system can find "
            f"{'it' if len(missing) == 1 else 'them'}: {join_names(missing)}",
            evidence_names(missing),
        )
    cut = [answer for answer in subject.answers if answer.places and not answer.chunks]
    yield from _cut_answers(SplitAnswers({subject.chunking: cut}, len(subject.answers), subject.name))


def chunking_sizes(chunk_size: int, overlap: int, chunker: str = "fixed") -> str:
    """The sizes of a chunking, with the chunker if it is not the default.

    >>> chunking_sizes(512, 50)
    'size 512, overlap 50'
    """
    return f"size {chunk_size}, overlap {overlap}{'' if chunker == 'fixed' else f' ({chunker})'}"


def _cut_answers(subject: SplitAnswers) -> Iterator[Observation]:
    """The chunking that splits the most answers, and how many others split some."""
    splitting = {name: cut for name, cut in subject.cut.items() if cut}
    if not splitting:
        return
    worst = subject.cut[subject.worst]
    chunks_split = f"chunk {subject.worst} splits" if subject.worst else "chunks split"
    others = len(splitting) - 1
    verb = "splits" if others == 1 else "split"
    more = f"; {others} of {len(subject.cut) - 1} other chunkings also {verb} answers" if others else ""
    yield Observation(
        subject.name,
        f"{chunks_split} {len(worst):,} of {pluralize(subject.answers, 'answer')} (maximum score "
        f"{_ceiling(worst, subject)}){more}",
        (*_ceilings(subject, splitting), *evidence_names(worst)),
        "use an overlap longer than the longest answer, or larger chunks",
    )


def _ceiling(cut: Sequence[AnswerOccurrences], subject: SplitAnswers) -> str:
    return _percent(1 - len(cut) / subject.answers)


def _ceilings(subject: SplitAnswers, splitting: Mapping[str, Sequence[AnswerOccurrences]]) -> Iterator[str]:
    """The maximum score with each chunking that splits answers, if there are several chunkings."""
    if len(subject.cut) > 1:
        for name, cut in splitting.items():
            yield f"{name}: {pluralize(len(cut), 'answer')} split, maximum score {_ceiling(cut, subject)}"


def duplicate_questions(questions: QuestionSet) -> Iterator[Observation]:
    """EQ111: duplicate questions."""
    if questions.repeated:
        status = "are duplicates" if len(questions.repeated) > 1 else "is a duplicate"
        yield Observation(
            questions.name,
            f"{len(questions.repeated):,} of {pluralize(questions.questions, 'question')} {status}: "
            f"{join_names(questions.repeated)}",
            evidence_names(questions.repeated),
        )


def leaking_questions(questions: QuestionSet) -> Iterator[Observation]:
    """EQ112: questions that contain their answer."""
    if questions.leaking:
        verb = "contain their" if len(questions.leaking) > 1 else "contains its"
        yield Observation(
            questions.name,
            f"{len(questions.leaking):,} of {pluralize(questions.questions, 'question')} {verb} answer: "
            f"{join_names(questions.leaking)}",
            evidence_names(questions.leaking),
        )


def draft_questions(questions: QuestionSet) -> Iterator[Observation]:
    """EQ116: questions that are marked as drafts."""
    if questions.drafts:
        status = "are unedited drafts" if len(questions.drafts) > 1 else "is an unedited draft"
        yield Observation(
            questions.name,
            f"{len(questions.drafts):,} of {pluralize(questions.questions, 'question')} {status}: "
            f"{join_names(questions.drafts)}",
            evidence_names(questions.drafts),
        )


def ambiguous_answers(subject: AnswersInDocument) -> Iterator[Observation]:
    """EQ103: answers that occur several times, of which only one is meant."""
    several = sorted(
        (answer for answer in subject.answers if answer.places > 1), key=lambda answer: (-answer.places, -answer.chunks)
    )
    if several:
        verb = "occurs" if len(several) == 1 else "occur"
        widest = several[0]
        yield Observation(
            subject.name,
            f"{len(several):,} of {pluralize(len(subject.answers), 'answer')} {verb} more than once in "
            f"the document; {widest} {widest.places:,} times, "
            f"in {widest.chunks:,} of {pluralize(subject.chunks, 'chunk')}",
            evidence_names(
                [f"{answer}: {pluralize(answer.places, 'occurrence')}, {answer.chunks:,} chunks" for answer in several]
            ),
        )


def _percent(fraction: float) -> str:
    return f"{format_value(100 * fraction, 0)} %"


def _points(difference: float) -> str:
    """A difference of accuracies in percentage points."""
    return f"{format_value(100 * difference, 0)} points"


def too_few_questions(size: SampleSize) -> Iterator[Observation]:
    """EQ105: fewer questions than the minimum."""
    if size.questions < size.minimum:
        detectable = size.detectable
        smallest = _points(detectable.value) if detectable.known else f"n/a ({detectable.reason})"
        examples = (
            f"a difference below {smallest} would usually go undetected"
            if detectable.known
            else "no difference between systems could be detected"
        )
        yield Observation(
            size.name,
            f"only {pluralize(size.questions, 'question')} (the minimum is {size.minimum:,}): an accuracy of "
            f"{_percent(size.accuracy)} would have an interval of ± {_points(size.half_width)}, "
            f"and {examples}",
            (
                f"Wilson half-width {_points(size.half_width)} at accuracy {_percent(size.accuracy)}",
                f"detectable at 80 % power: {smallest}",
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
            f"{f' with {share.chunking}' if share.chunking else ''}: random "
            f"chunks would find an answer that is in one chunk with probability {format_value(chance, 2)}",
            (f"{format_value(chance, 4)} of the chunks returned",),
        )


CHECKS: tuple[Check, ...] = (
    Check(
        code="EQ102",
        title="answers that no single chunk contains",
        severity=Severity.ISSUE,
        applies_to=AnswersInDocument | SplitAnswers,
        function=missing_answers,
        why="""\
A question counts as answered when a retrieved chunk contains its answer. If no chunk does, every system
fails, and the maximum accuracy is below 1. The usual cause is a paraphrase or a typo in the answer.
An answer that is in the document is also lost if a chunk boundary splits it; then use an overlap longer than the
longest answer, or larger chunks.""",
        hint="write the answer as it is in the document; eq fair validate shows the closest passage",
        example="""\
from equipoise.checks.base import run_checks
from equipoise.domains.fair.checks import AnswerOccurrences, AnswersInDocument
missing = AnswerOccurrences("q2", "Lyons", places=0, chunks=0)
run_checks(AnswersInDocument([AnswerOccurrences("q1", "Paris", places=1, chunks=1), missing], chunks=40))""",
    ),
    Check(
        code="EQ103",
        title="ambiguous answers",
        severity=Severity.TIP,
        applies_to=AnswersInDocument,
        function=ambiguous_answers,
        why="""\
An answer such as "1995" or "Paris" may be in many chunks, and retrieving any of them counts as a hit,
even if that chunk is unrelated to the question. The more chunks contain the answer, the higher the chance
level, and the less a hit shows. Overlap alone does not make an answer ambiguous: what counts is the number
of occurrences in the document.""",
        hint="make the answer longer, so that only the right passage contains it",
        example="""\
from equipoise.checks.base import run_checks
from equipoise.domains.fair.checks import AnswerOccurrences, AnswersInDocument
common = AnswerOccurrences("q1", "Paris", places=14, chunks=9)
run_checks(AnswersInDocument([common, AnswerOccurrences("q2", "in May 1871", places=1, chunks=1)], chunks=40))""",
    ),
    Check(
        code=TOO_FEW_QUESTIONS,
        title="too few questions",
        severity=Severity.ISSUE,
        applies_to=SampleSize,
        function=too_few_questions,
        why="""\
The interval of an accuracy narrows with the square root of the number of questions, and so does the
smallest detectable difference. With 20 questions, two systems must differ by more than a third. The values
are computed for two systems of accuracy 0.8 that err independently, a
two-sided paired test at 5 %, and a power of 80 %.""",
        hint="write more questions; eq fair validate shows the precision by number of questions",
        example="""\
from equipoise.checks.base import run_checks
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
When a search returns half of the chunks or more, random retrieval finds half of the answers or more, and
all systems have similar, high scores. The accuracy then measures the length of the document.""",
        hint="use a smaller top_k, smaller chunks, or a longer document",
        example="""\
from equipoise.checks.base import run_checks
from equipoise.domains.fair.checks import RetrievedFraction
run_checks(RetrievedFraction(chunks=12, top_k=10))""",
    ),
    Check(
        code="EQ111",
        title="duplicate question",
        severity=Severity.ISSUE,
        applies_to=QuestionSet,
        function=duplicate_questions,
        why="""\
Two equal questions are one observation. Counted twice, they violate the independence of questions, and
intervals are too narrow. The nested comparison keeps questions with the same answer in one fold and one
resampling cluster, so its intervals are valid; the score is still weighted towards the duplicates.""",
        hint="remove the duplicate",
        example="""\
from equipoise.checks.base import run_checks
from equipoise.domains.fair.checks import QuestionSet
run_checks(QuestionSet(questions=80, repeated=['q41 "Who built the mill?"']))""",
    ),
    Check(
        code="EQ112",
        title="question contains its answer",
        severity=Severity.TIP,
        applies_to=QuestionSet,
        function=leaking_questions,
        why="""\
The question "In which year, 1871 or 1873, was the mill built?" contains its answer: a lexical system finds
the chunk by matching it, so the question does not measure semantic retrieval.""",
        hint="rephrase the question without the answer",
        example="""\
from equipoise.checks.base import run_checks
from equipoise.domains.fair.checks import QuestionSet
run_checks(QuestionSet(questions=80, leaking=['q7 "Was it built in 1871?"']))""",
    ),
    Check(
        code="EQ116",
        title="draft questions",
        severity=Severity.ISSUE,
        applies_to=QuestionSet,
        function=draft_questions,
        why="""\
Drafts of eq fair draft are made by rules or by a model. Cloze questions repeat the words of the document, which favours
lexical systems, and a model writes questions that suit models of its kind. A comparison on drafts does not show which
system is better for the questions that people ask.""",
        hint='edit each question and remove its "draft"',
        example="""\
from equipoise.checks.base import run_checks
from equipoise.domains.fair.checks import QuestionSet
run_checks(QuestionSet(questions=80, drafts=['d7 "The mill was built in ____."']))""",
    ),
)
