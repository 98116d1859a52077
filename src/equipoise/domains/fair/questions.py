"""Questions with answers (the question set): read and check them, and find their relevant passages."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.checks.base import join_names
from equipoise.domains.fair.answer_matching import AnswerMatcher, normalize_answer
from equipoise.errors import DuplicateError, FormatError, InputError, ParameterError, did_you_mean
from equipoise.io.columns import is_frame, table_of
from equipoise.io.documents import read_document
from equipoise.io.json import parse_json, parse_lines
from equipoise.io.tables import table_format
from equipoise.io.text import PathLike, TextFile, display_path, open_text
from equipoise.stats.slices import NOT_GIVEN

if TYPE_CHECKING:
    from equipoise.models.chunking import Chunk
    from equipoise.types import Ints


CATEGORIES = ("exact", "reformulated", "multi_hop", "fine_detail", "implicit", "negation")
DIFFICULTIES = ("easy", "medium", "hard")
UNSPECIFIED = NOT_GIVEN
"""The category and difficulty of a question without one."""

_LISTS = ("questions", "qa_pairs")
_EXAMPLE = '{"question": "...", "answer": "..."}'


@dataclass(frozen=True, slots=True)
class QuestionAnswer:
    """A question, its answer in the words of the document, its category and its difficulty.

    ``alternatives`` are further accepted answers: any of them is enough. ``passages`` are excerpts of the document;
    if there are any, only an answer inside one of them counts. ``draft`` marks an unedited question.
    """

    id: str
    question: str
    answer: str
    category: str = UNSPECIFIED
    difficulty: str = UNSPECIFIED
    alternatives: tuple[str, ...] = ()
    passages: tuple[str, ...] = ()
    draft: bool = False

    @property
    def answers(self) -> tuple[str, ...]:
        """All accepted answers."""
        return (self.answer, *self.alternatives)

    @property
    def answer_text(self) -> str:
        """The accepted answers in one line."""
        return " | ".join(self.answers)

    @property
    def kinds(self) -> dict[str, str]:
        """The category and the difficulty, if specified."""
        both = {"category": self.category, "difficulty": self.difficulty}
        return {name: kind for name, kind in both.items() if kind != UNSPECIFIED}


def check_questions(pairs: Iterable[Mapping[str, Any] | QuestionAnswer]) -> tuple[QuestionAnswer, ...]:
    """Checked questions from dicts with ``question`` and ``answer``, or from ``QuestionAnswer`` objects.

    ``id`` is a string or an integer; the default is q1, q2, ... by position. ``answer`` is a string, or a list of
    accepted answers. ``passages`` (or ``passage``) are excerpts of the document that contain the answer.
    ``category`` and ``difficulty`` are free text, ``draft`` is a boolean. Other keys are ignored.

    >>> check_questions([{"question": "When was it founded?", "answer": "1995", "difficulty": "easy"}])[0].kinds
    {'difficulty': 'easy'}
    """
    if is_frame(pairs):
        pairs = table_of(pairs).records(question="query", answer="positive")
    if isinstance(pairs, str | bytes | Mapping) or not isinstance(pairs, Iterable):
        raise InputError(f"the questions are a {type(pairs).__name__}, not a list", hint=f"pass [{_EXAMPLE}, ...]")
    return _check_pairs(list(pairs), _Source())


def read_questions(path: PathLike) -> tuple[QuestionAnswer, ...]:
    """Read questions with answers from a JSON or JSONL file, plain or gzipped.

    Parameters
    ----------
    path
        JSON: a list of objects, or an object with that list under ``questions`` or ``qa_pairs``. JSONL: one object per
        line. An object has ``question`` and ``answer`` (a string or a list of accepted answers), and optionally ``id``,
        ``category``, ``difficulty``, ``passages`` (excerpts of the document that contain the answer) and ``draft``.

    Returns
    -------
    tuple of QuestionAnswer
        The questions in the order of the file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "questions.jsonl")
    ...     _ = file.write_text('{"question": "When was the mill built?", "answer": "1871"}')
    ...     read_questions(file)[0].answer
    '1871'
    """
    form = table_format(path)
    if form not in ("json", "jsonl"):
        raise FormatError(
            f"{display_path(path)} cannot be read as a question set: its file extension is neither .json nor .jsonl",
            hint=f"write a list of {_EXAMPLE} as JSON, or one such object per line as JSONL",
        )
    file = open_text(path)
    if form == "jsonl":
        numbered = parse_lines(file)
        return _check_pairs([row for _, row in numbered], _Source(file, [line for line, _ in numbered]))
    return _check_pairs(_question_list(file, parse_json(file)), _Source(file))


@dataclass(frozen=True, slots=True)
class _Source:
    """Where the questions come from, for error messages: lines of a file, positions in a file, or Python."""

    file: TextFile | None = None
    lines: Sequence[int] | None = None

    def error(self, kind: type[InputError], indices: Sequence[int], fact: str, hint: str = "") -> InputError:
        numbers = [index + 1 if self.lines is None else self.lines[index] for index in indices]
        unit = "question" if self.lines is None else "line"
        location = f"{unit}{'s' if len(numbers) > 1 else ''} {' and '.join(map(str, numbers))}"
        if self.file is None:
            return kind(f"{location} {fact}", hint=hint)
        excerpt = "" if self.lines is None else self.file.excerpt(*numbers)
        return kind(f"{self.file.name} {location} {fact}", hint=hint, excerpt=excerpt)


def _question_list(file: TextFile, value: Any) -> list[Any]:
    """The list of a JSON question set, which may be under a key of an object."""
    if isinstance(value, dict):
        under = [key for key in _LISTS if key in value]
        if len(under) != 1:
            keys = f"the keys {', '.join(map(repr, value))}" if value else "no keys"
            raise FormatError(
                f"{file.name} is a JSON object with {keys}; the list of questions was not found",
                hint=f"put it under one of {' or '.join(map(repr, _LISTS))}, or write only the list",
            )
        value = value[under[0]]
    if not isinstance(value, list):
        raise FormatError(f"{file.name} is JSON without a list of questions", hint=f"write [{_EXAMPLE}, ...]")
    return value


def _check_pairs(pairs: list[Any], source: _Source) -> tuple[QuestionAnswer, ...]:
    if not pairs:
        name = "the list of questions" if source.file is None else source.file.name
        raise InputError(f"{name} contains no question", hint=f"add at least one {_EXAMPLE}")
    questions = tuple(_question(pair, index, source) for index, pair in enumerate(pairs))
    first_of: dict[str, int] = {}
    for index, question in enumerate(questions):
        first = first_of.setdefault(question.id, index)
        if first != index:
            raise source.error(DuplicateError, [first, index], f"both have the id {question.id}", "rename one of them")
    return questions


def _question(pair: Any, index: int, source: _Source) -> QuestionAnswer:
    if isinstance(pair, QuestionAnswer):
        pair = {name: getattr(pair, name) for name in QuestionAnswer.__dataclass_fields__} | {"answer": pair.answers}
    if not isinstance(pair, Mapping):
        raise source.error(FormatError, [index], f"is a {type(pair).__name__}, not an object", f"write {_EXAMPLE}")
    answer, *alternatives = _texts(pair, _first_key(pair, "answer", "answers"), index, source)
    passages_key = _first_key(pair, "passages", "passage")
    draft = pair.get("draft") or False
    if not isinstance(draft, bool):
        raise source.error(FormatError, [index], f"has {draft!r} as draft", "write true or false")
    category, difficulty = (
        UNSPECIFIED if pair.get(key) is None else _text(pair, key, index, source) for key in ("category", "difficulty")
    )
    return QuestionAnswer(
        _id(pair.get("id"), index, source),
        _text(pair, "question", index, source),
        answer,
        category,
        difficulty,
        alternatives=tuple(alternatives),
        passages=_texts(pair, passages_key, index, source) if pair.get(passages_key) else (),
        draft=draft,
    )


def _first_key(pair: Mapping[str, Any], *keys: str) -> str:
    """The key that the object has; the first one if it has none of them."""
    return next((key for key in keys if key in pair), keys[0])


def _id(value: Any, index: int, source: _Source) -> str:
    if value is None:
        return f"q{index + 1}"
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
        raise source.error(FormatError, [index], f"has the id {value!r}", "an id is a string or an integer")
    return str(value).strip()


def _texts(pair: Mapping[str, Any], key: str, index: int, source: _Source) -> tuple[str, ...]:
    """One text or several different ones under a key."""
    values = pair.get(key)
    if not isinstance(values, list | tuple):
        return (_text(pair, key, index, source),)
    if not values:
        raise source.error(FormatError, [index], f"has an empty list as its {key}", "write at least one text")
    return tuple(dict.fromkeys(_text({key: value}, key, index, source) for value in values))


def _text(pair: Mapping[str, Any], key: str, index: int, source: _Source) -> str:
    """The text under a key, without the white space at its ends."""
    if key not in pair:
        columns = [str(name) for name in pair]
        hint = did_you_mean(key, columns) or (f"it has: {', '.join(columns)}" if columns else "it is empty")
        raise source.error(FormatError, [index], f"has no key {key!r}", hint)
    value = pair[key]
    if not isinstance(value, str):
        kind = "null" if value is None else type(value).__name__
        number = isinstance(value, int | float) and not isinstance(value, bool)
        hint = f'write it in quotes: "{value}"' if number else "write a text in quotes"
        raise source.error(FormatError, [index], f"has {kind} instead of text as its {key}", hint)
    if not value.strip():
        raise source.error(FormatError, [index], f"has an empty {key}", "write it, or remove the question")
    return value.strip()


def check_drafts(questions: Sequence[QuestionAnswer], *, allowed: bool) -> None:
    """Raise ``InputError`` if there are draft questions and these are not allowed."""
    drafts = [question.id for question in questions if question.draft]
    if drafts and not allowed:
        raise InputError(
            f"{len(drafts)} of {len(questions)} questions are unedited drafts: {join_names(drafts)}",
            hint='edit each question and remove its "draft" key; --allow-drafts compares on drafts (finding EQ116)',
        )


def timekeeping() -> tuple[str, tuple[QuestionAnswer, ...]]:
    """Load the sample document and its questions.

    The document has about 9,000 words about the history of timekeeping. The answers occur verbatim in it. The 130
    questions cover all six categories and three difficulties.

    Returns
    -------
    tuple
        The text of the document, and the questions.

    Examples
    --------
    >>> document, questions = timekeeping()
    >>> len(questions)
    130
    """
    with as_file(files("equipoise.io") / "samples" / "timekeeping") as folder:
        return read_document(folder / "timekeeping.md"), read_questions(folder / "questions.jsonl")


# Relevant passages of questions: where they are in the documents, and which chunks contain an answer inside one.

# A word with its hyphens, also one that is hyphenated at a line end, and the same with the line break as a space.
_HYPHEN = "[-\u00ad\u2010\u2011]"
_WORD = re.compile(rf"\w+(?:{_HYPHEN}\s*\w+)*")
_INSIDE_WORD = re.compile(rf"{_HYPHEN}\s*")
_EXCERPT = 60


@dataclass(frozen=True, slots=True)
class PassageSpan:
    """A stretch of a document: the index of the document, and offsets of characters."""

    document: int
    start: int
    end: int

    def overlap(self, document: int, start: int, end: int, text: str) -> str:
        """The text that this span and another one have in common; empty if there is none."""
        return text[max(self.start, start) : min(self.end, end)] if document == self.document else ""


class PassageFinder:
    """Finds passages in documents word by word; case, punctuation, white space and hyphens at line ends are ignored.

    >>> PassageFinder(["It was sold.", "The inter-\\nnational Mill, founded in 1871."]).find("international mill")
    [PassageSpan(document=1, start=4, end=25)]
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._words = [[(_normal(match.group()), *match.span()) for match in _WORD.finditer(text)] for text in texts]
        self._joined = [f" {' '.join(word for word, _, _ in words)} " for words in self._words]
        self._borders = [np.cumsum([0, *(len(word) + 1 for word, _, _ in words)]).tolist() for words in self._words]

    def find(self, passage: str) -> list[PassageSpan]:
        """Every occurrence of the passage."""
        return list(self._exact(passage)) or list(self._by_words(passage))

    def _exact(self, passage: str) -> Iterator[PassageSpan]:
        for document, text in enumerate(self._texts):
            for match in re.finditer(re.escape(passage), text):
                yield PassageSpan(document, *match.span())

    def _by_words(self, passage: str) -> Iterator[PassageSpan]:
        words = [_normal(match.group()) for match in _WORD.finditer(passage)]
        for document, joined in enumerate(self._joined if words else ()):
            for match in re.finditer(rf"(?= {re.escape(' '.join(words))} )", joined):
                first = bisect_left(self._borders[document], match.start())
                start, end = self._words[document][first][1], self._words[document][first + len(words) - 1][2]
                yield PassageSpan(document, *_with_punctuation(self._texts[document], start, end))


def _normal(word: str) -> str:
    return normalize_answer(_INSIDE_WORD.sub("", word))


def _with_punctuation(text: str, start: int, end: int) -> tuple[int, int]:
    """The span with the signs directly before and after it, such as a percent sign."""
    while start > 0 and not (text[start - 1].isspace() or text[start - 1].isalnum()):
        start -= 1
    while end < len(text) and not (text[end].isspace() or text[end].isalnum()):
        end += 1
    return start, end


Passages = Mapping[str, Sequence[PassageSpan]]
"""The passages of each question that has some, by the id of the question."""


def locate_passages(questions: Sequence[QuestionAnswer], texts: Sequence[str], matcher: AnswerMatcher) -> Passages:
    """The passages of all questions; a passage that is not there or does not contain an answer is an error."""
    with_passages = [question for question in questions if question.passages]
    if not with_passages:
        return {}
    if matcher.joins:
        raise ParameterError(
            f"the matcher {matcher.name} joins the retrieved chunks, so an answer cannot be required in a passage",
            hint="use the matcher words, or remove the passages",
        )
    finder = PassageFinder(texts)
    spans: dict[str, list[PassageSpan]] = {}
    for question in with_passages:
        spans[question.id] = []
        for passage in question.passages:
            passage_spans = finder.find(passage)
            if not passage_spans:
                raise InputError(
                    f"a passage of {question.id} is not in the document: {_excerpt(passage)}",
                    hint="copy the passage from the document; eq fair validate --doc lists all such questions",
                )
            spans[question.id] += passage_spans
        if not answered_within(question, spans[question.id], texts, matcher):
            raise InputError(
                f"no passage of {question.id} contains its answer: {_excerpt(question.answer_text)}",
                hint="add the passage that contains it, or remove the passages",
            )
    return spans


def answered_within(
    question: QuestionAnswer, spans: Sequence[PassageSpan], texts: Sequence[str], matcher: AnswerMatcher
) -> bool:
    """Whether one of the passages contains an accepted answer."""
    return any(
        matcher.holds_any(question.answers, texts[span.document][span.start : span.end])
        for span in dict.fromkeys(spans)
    )


def holders_within(
    question: QuestionAnswer,
    spans: Sequence[PassageSpan],
    holders: Ints,
    chunks: Sequence[Chunk],
    documents: Sequence[int],
    texts: Sequence[str],
    matcher: AnswerMatcher,
) -> Ints:
    """The chunks that contain an answer inside a passage.

    ``documents`` is the index of the document of each chunk. The text that a chunk and a passage have in common
    must contain the answer.
    """

    def holds(at: int) -> bool:
        chunk, document = chunks[at], documents[at]
        overlaps = (span.overlap(document, chunk.start, chunk.end, texts[document]) for span in spans)
        return any(overlap and matcher.holds_any(question.answers, overlap) for overlap in overlaps)

    return np.array([at for at in holders.tolist() if holds(at)], dtype=np.int64)


def _excerpt(text: str) -> str:
    line = " ".join(text.split())
    return f'"{line if len(line) <= _EXCERPT else line[:_EXCERPT] + "..."}"'
