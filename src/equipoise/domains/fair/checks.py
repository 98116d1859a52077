"""Checks of a question set: missing, split or ambiguous answers; duplicate, leaking or too few questions."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt

from equipoise.checks.base import Observation, declared_checks, evidence_names, join_names, pluralize
from equipoise.config import DEFAULT_STATS
from equipoise.stats.formatting import format_value
from equipoise.stats.intervals import wilson_interval
from equipoise.stats.power import PowerEstimate, detectable_difference, p_of_equal_signs
from equipoise.types import Finding, Severity

MISSING_ANSWERS = "EQ102"
TOO_FEW_QUESTIONS = "EQ105"
ACCURACY = 0.8
"""The accuracy assumed for power calculations; typical for fair comparisons."""

MAX_RETRIEVED_FRACTION = 0.5
"""Retrieving at least this share of the chunks is reported."""

_ANSWER_WIDTH = 40
_SPLIT_HINT = "use an overlap longer than the longest answer, or larger chunks"
MAX_QUESTION = 80
"""Characters of the question that a message shows."""


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
        return wilson_interval(self.accuracy * self.questions, self.questions).width / 2

    @property
    def detectable(self) -> PowerEstimate:
        """The smallest difference between two systems that is detected with 80 % power.

        Both have the same accuracy p and err independently, so their differences have the variance
        2 p (1 - p). Systems that fail on the same questions need fewer questions.
        """
        standard_deviation = sqrt(2 * self.accuracy * (1 - self.accuracy))
        planned = detectable_difference(standard_deviation, self.questions)
        if planned.known and (planned.value > 1 or p_of_equal_signs(self.questions) >= DEFAULT_STATS.alpha):
            return PowerEstimate.unknown("no difference is detectable")
        return planned


@dataclass(frozen=True)
class RetrievedFraction:
    """The number of a document's chunks that one search returns."""

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
        one = len(missing) == 1
        yield Observation(
            subject.name,
            f"{len(missing):,} of {total} {'was' if one else 'were'} not found, so no system can find "
            f"{'it' if one else 'them'}: {join_names(missing)}",
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
    chunking = f" with chunk {subject.worst}" if subject.worst else ""
    others = len(splitting) - 1
    verb = "splits" if others == 1 else "split"
    more = f"; {others} of the {len(subject.cut) - 1} other chunk configurations also {verb} answers" if others else ""
    yield Observation(
        subject.name,
        f"{len(worst):,} of {pluralize(subject.answers, 'answer')} {'is' if len(worst) == 1 else 'are'} split between "
        f"chunks{chunking}, so at most {_ceiling(worst, subject)} can be found{more}",
        (*_ceilings(subject, splitting), *evidence_names(worst)),
        _SPLIT_HINT,
    )


def with_affected_models(
    findings: Iterable[Finding], ceilings: Mapping[str, float], contenders: Collection[str]
) -> tuple[Finding, ...]:
    """The findings; the one on split answers names the models that select such a chunking, not the chunkings.

    ``ceilings`` has the maximum score of every model with its selected chunking. If none of the ``contenders`` (the
    best model and those that are not significantly worse) is affected, the finding is a tip; if all models are
    affected, there is nothing to add.
    """
    if all(ceiling < 1 for ceiling in ceilings.values()):
        return tuple(findings)
    affected = {name: f"{_percent(ceiling)} for {name}" for name, ceiling in ceilings.items() if ceiling < 1}
    limited = f"chunk boundaries split answers, so accuracy is at most {join_names(list(affected.values()))}"
    return tuple(
        replace(
            finding,
            subject=join_names(list(affected)) or finding.subject,
            message=limited if affected else f"{finding.message.partition('; ')[0]}; no model in the table uses it",
            severity=finding.severity if affected.keys() & set(contenders) else Severity.TIP,
        )
        if finding.code == MISSING_ANSWERS and finding.hint == _SPLIT_HINT
        else finding
        for finding in findings
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
    yield from _faulty(questions, questions.repeated, "is a duplicate", "are duplicates")


def _faulty(questions: QuestionSet, faulty: Sequence[str], singular: str, plural: str) -> Iterator[Observation]:
    """How many questions have a fault, and the beginning of the first one; the evidence lists them."""
    if faulty:
        first = textwrap.shorten(faulty[0], MAX_QUESTION, placeholder=" ...")
        yield Observation(
            questions.name,
            f"{len(faulty):,} of {pluralize(questions.questions, 'question')} "
            f"{plural if len(faulty) > 1 else singular}: {first}"
            + (f" and {len(faulty) - 1:,} more" if len(faulty) > 1 else ""),
            evidence_names(faulty),
        )


def leaking_questions(questions: QuestionSet) -> Iterator[Observation]:
    """EQ112: questions that contain their answer."""
    yield from _faulty(questions, questions.leaking, "contains its answer", "contain their answer")


def draft_questions(questions: QuestionSet) -> Iterator[Observation]:
    """EQ116: questions that are marked as drafts."""
    yield from _faulty(questions, questions.drafts, "is an unedited draft", "are unedited drafts")


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
                [
                    f"{answer}: {pluralize(answer.places, 'occurrence')}, {pluralize(answer.chunks, 'chunk')}"
                    for answer in several
                ]
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
        undetected = "" if detectable.known else ", and no difference between systems could be detected"
        yield Observation(
            size.name,
            f"only {pluralize(size.questions, 'question')} (the minimum is {size.minimum:,}): an accuracy of "
            f"{_percent(size.accuracy)} would have a 95 % interval of ± {_points(size.half_width)}{undetected}",
            (
                f"Wilson half-width {_points(size.half_width)} at accuracy {_percent(size.accuracy)}",
                f"detectable with 80 % power if the errors of two systems are independent: {smallest}",
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
            f"{f' with {share.chunking}' if share.chunking else ''}, so random "
            f"chunks would find an answer that is in one chunk with probability {format_value(chance, 2)}",
            (f"{format_value(chance, 4)} of the chunks returned",),
        )


CHECKS = declared_checks(
    "equipoise.domains.fair",
    {
        MISSING_ANSWERS: (AnswersInDocument | SplitAnswers, missing_answers),
        "EQ103": (AnswersInDocument, ambiguous_answers),
        TOO_FEW_QUESTIONS: (SampleSize, too_few_questions),
        "EQ108": (RetrievedFraction, retrieves_most),
        "EQ111": (QuestionSet, duplicate_questions),
        "EQ112": (QuestionSet, leaking_questions),
        "EQ116": (QuestionSet, draft_questions),
    },
)
