"""Draft questions about a document: cloze and heading questions without a model, or questions of a chat model.

Drafts are to be edited: each has its passage and the mark ``draft``, and a comparison refuses them until the mark
is removed.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count, groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from equipoise.domains.fair.answer_matching import answer_matcher, normalize_answer
from equipoise.domains.fair.answer_verification import count_answers, one_line
from equipoise.domains.fair.plan import documents_from
from equipoise.domains.fair.questions import PassageFinder, QuestionAnswer
from equipoise.domains.fair.validation import NEAR_DUPLICATE_SIMILARITY, character_trigrams
from equipoise.errors import InputError, ParameterError, PartialError, StoreError, check_options, did_you_mean
from equipoise.io.atomic import write_text
from equipoise.io.text import display_path
from equipoise.models.backends.hosted import positive_option, retry_policy_from
from equipoise.models.backends.hosted_retry import (
    RequestFailedError,
    RequestFailure,
    RetryPolicy,
    call_with_retries,
    classify_error,
)
from equipoise.models.backends.litellm import open_engine
from equipoise.models.backends.openai import open_client
from equipoise.models.chunking import markdown_sections, sentence_starts
from equipoise.models.registry import BY_ALIAS, parse_spec

if TYPE_CHECKING:
    from equipoise.domains.fair.validation import Documents
    from equipoise.io.documents import TextDocument

GAP = "____"
LANGUAGES = ("en", "de")
HEADING_SHARE = 0.25
"""The share of heading questions, where the document has headings."""

MIN_WORDS, MAX_WORDS = 8, 45
"""The length of a sentence that becomes a cloze question."""
MAX_ANSWER_WORDS = 5
PASSAGE_WORDS = 250
"""The length of the passages that a chat model reads."""
QUESTIONS_PER_PASSAGE = 3

_MATCHER = answer_matcher("words")
_LINE_END_HYPHEN = re.compile(r"(?<=[^\W\d_])[-\u00ad\u2010]\s*\n\s*(?=[^\W\d_])")
"""The hyphen of a word that continues on the next line, as in the text of a PDF."""
T = TypeVar("T")


@dataclass(frozen=True)
class DraftSet:
    """Draft questions in the order of the document, how each was made, and how many candidates were dropped and why.

    ``failure`` is the error message of a chat model that stopped answering; the drafts made before are kept.
    """

    questions: tuple[QuestionAnswer, ...]
    methods: Mapping[str, str]
    dropped: Mapping[str, int] = field(default_factory=dict)
    failure: str = ""

    def __len__(self) -> int:
        return len(self.questions)

    def to_dicts(self) -> list[dict[str, Any]]:
        """The questions with the keys of a question set."""
        return [
            {
                "id": question.id,
                "question": question.question,
                "answer": question.answer,
                "category": question.category,
                "passage": question.passages[0],
                "draft": True,
                "method": self.methods[question.id],
            }
            for question in self.questions
        ]

    def to_jsonl(self) -> str:
        """The question set, one JSON object per line."""
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in self.to_dicts())

    def write(self, path: Path) -> None:
        """Write a file that ``eq fair validate`` reads: a JSON list to ``.json``, else one object per line."""
        is_list = path.suffix.casefold() == ".json"
        text = json.dumps(self.to_dicts(), ensure_ascii=False, indent=1) if is_list else self.to_jsonl()
        check_draft_path(path)
        check_not_replaced(path, text)
        write_text(path, text)


def check_draft_path(path: Path) -> None:
    """Raise ``ParameterError`` for a file name that no question set can have."""
    if path.suffix.casefold() not in (".json", ".jsonl"):
        raise ParameterError(
            f"{display_path(path)} cannot be written: a question set is a .jsonl or .json file",
            hint=f"for example {display_path(path.with_suffix('.jsonl'))}",
        )


def check_not_replaced(path: Path, text: str | None = None) -> None:
    """Raise ``StoreError`` if the file exists with other content than ``text``: its questions may have been edited."""
    if path.is_file() and (text is None or path.read_bytes() != text.encode()):
        raise StoreError(
            f"{display_path(path)} exists, and its questions would be replaced",
            hint="choose another name with -o, or remove the file",
        )


def draft_questions(
    doc_content: Documents,
    n_questions: int = 80,
    *,
    model: str | ChatModel | None = None,
    language: str | None = None,
    progress: Callable[[int], None] | None = None,
) -> DraftSet:
    """Propose questions about a document, to be edited by a person.

    Without a model there are cloze questions (a sentence with a gap) and heading questions (what a section says about
    its title). They are worded like the document, which favours lexical systems, so rephrase them. Every draft has a
    passage that contains its answer. A draft is dropped if its question contains the answer, if the answer occurs
    several times or belongs to another draft, or if the question nearly duplicates another one.

    Parameters
    ----------
    doc_content
        A text, a list of texts, or documents.
    n_questions
        The maximum number of drafts; they are spread over the document.
    model
        A chat model: ``openai:MODEL``, ``openai:MODEL,base_url=URL`` for a compatible server, or
        ``litellm:PROVIDER/MODEL``. The key is read from the environment.
    language
        ``en`` or ``de``: the language of heading questions. By default it is detected.
    progress
        Called with the number of drafts so far.

    Returns
    -------
    DraftSet
        The drafts; ``to_jsonl()`` is a question set for ``eq fair validate``.

    Examples
    --------
    >>> text = "# Mills\\n\\nThe old mill at the river was built by Jonas Weber and his brother in 1871."
    >>> [(draft.question, draft.answer) for draft in draft_questions(text, 1).questions]
    [('The old mill at the river was built by ____ and his brother in 1871.', 'Jonas Weber')]
    """
    if isinstance(n_questions, bool) or not isinstance(n_questions, int) or n_questions < 1:
        raise ParameterError(f"n_questions is {n_questions!r}; it must be an integer of 1 or more")
    if language is not None and language not in LANGUAGES:
        hint = did_you_mean(language, LANGUAGES) or f"known: {', '.join(LANGUAGES)}"
        raise ParameterError(f"there are no heading questions in the language {language!r}", hint=hint)
    documents = [
        replace(document, text=_LINE_END_HYPHEN.sub("", document.text)) for document in documents_from(doc_content)
    ]
    sentences = list(_sentences(documents))
    if not sentences:
        raise InputError(
            f"no sentence of {MIN_WORDS} to {MAX_WORDS} words was found",
            hint="check how the sentences of the document end",
        )
    drafts = _Collector(documents, n_questions, progress)
    if model is None:
        language = language or _detected_language(documents)
        headings = list(_heading_drafts(sentences, language))
        drafts.add_from(_evenly(headings, round(HEADING_SHARE * n_questions)), limit=round(HEADING_SHARE * n_questions))
        strata = np.array_split(np.arange(len(sentences)), min(n_questions, len(sentences)))
        drafts.add_from([_cloze_drafts([sentences[at] for at in part.tolist()]) for part in strata])
    else:
        chat = chat_model(model) if isinstance(model, str) else model
        passages = list(_passages(sentences))
        first = _evenly(passages, -(-n_questions // QUESTIONS_PER_PASSAGE))
        try:
            drafts.add_from([_model_drafts(chat, passage) for passage in first])
            for passage in passages:  # further ones if drafts were dropped
                if passage not in first:
                    drafts.add_from([_model_drafts(chat, passage)])
        except PartialError as error:
            result = drafts.result()
            if not len(result):
                raise
            return replace(result, failure=error.message)
    return drafts.result()


@dataclass(frozen=True, slots=True)
class _Sentence:
    """A sentence on one line, and the title of its section."""

    text: str
    title: str
    order: int


@dataclass(frozen=True, slots=True)
class _Draft:
    """A question that was not checked yet; ``order`` is the position of its passage."""

    question: str
    answer: str
    passage: str
    category: str
    method: str
    order: int
    topic: str = ""
    """What near-duplicates are recognised by; the question if empty."""

    @property
    def grams(self) -> frozenset[str]:
        """The character trigrams of the topic."""
        return character_trigrams(self.topic or self.question)


_LIST_MARK = re.compile(r"^(?:[-*+>•‣▪·]|\d{1,2}[.)])\s+")
_EMPHASIS = re.compile(r"\*\*")
_NUMBERED_HEADING = re.compile(
    r"(?:(?:chapter|section|kapitel|abschnitt|part|teil)\s+)?\d+(?:\.\d+)*[.:]?\s+(?P<title>[^\W\d_].*)", re.IGNORECASE
)
MAX_HEADING_WORDS = 10
_MARKUP = re.compile(r"[|`<>{}\[\]]|https?://|_{3,}|([.~=*#+-])\1{3}")


def _sentences(documents: Sequence[TextDocument]) -> Iterator[_Sentence]:
    """The sentences of all documents, without headings, tables, code and links."""
    order = count()
    for document in documents:
        text = document.text
        sections = markdown_sections(text)
        for section, end in zip(sections, [*(other.start for other in sections[1:]), len(text)], strict=True):
            title = section.title.rpartition(" > ")[2]
            lines = text[section.start : end].splitlines()
            body = [line for line in lines if not line.startswith(("#", "=", "---")) and line.strip() != title]
            for paragraph_title, paragraph in _paragraphs(body, title):
                starts = sentence_starts(paragraph)
                for start, stop in zip(starts, [*starts[1:], len(paragraph)], strict=True):
                    line = _EMPHASIS.sub("", _LIST_MARK.sub("", one_line(paragraph[start:stop])))
                    if MIN_WORDS <= len(line.split()) <= MAX_WORDS and not _MARKUP.search(line):
                        yield _Sentence(line, paragraph_title, next(order))


def _paragraphs(lines: Sequence[str], title: str) -> Iterator[tuple[str, str]]:
    """The title and text of each paragraph and list item; headings of plain text and PDF files begin a section."""
    paragraph: list[str] = []
    for line in [*lines, ""]:
        bare = line.strip()
        heading = plain_heading(bare)
        if paragraph and (not bare or heading or _LIST_MARK.match(bare)):
            yield title, "\n".join(paragraph)
            paragraph = []
        if heading:
            title = heading
        elif bare:
            paragraph.append(bare)


def plain_heading(line: str) -> str:
    """The title of a line that is a heading without markup: numbered, or in capitals; else empty.

    >>> plain_heading("3.2. Early or late selection"), plain_heading("BESCHREIBUNG"), plain_heading("It was sold.")
    ('Early or late selection', 'BESCHREIBUNG', '')
    """
    words = line.split()
    if not 0 < len(words) <= MAX_HEADING_WORDS or line[-1] in ".,;:!?" or ". ." in line:
        return ""
    numbered = _NUMBERED_HEADING.fullmatch(line)
    if numbered is not None:
        title = numbered["title"]
        is_title = title[0].isupper() and not title[-1].isdigit() and not _MARKUP.search(title)
        return title if is_title else ""
    letters = "".join(filter(str.isalpha, line))
    return line if len(letters) > 3 and letters.isupper() and len(letters) > 0.8 * len("".join(words)) else ""


def _evenly(items: list[T], number: int) -> list[T]:
    """At most this many items, evenly spaced."""
    if number >= len(items):
        return items
    return [items[at] for at in np.linspace(0, len(items) - 1, number).astype(int).tolist()]


# Answers within a sentence: names, numbers with their unit, and pairs of long words.

_WORD = re.compile(r"[^\W\d_][\w’'-]*")
_NUMBER = re.compile(r"(?<![\w.,–-])\d(?:[\d.,:]*\d)?(?!\d|[–-]\w)(?:\s?%|\s(?P<unit>[^\W\d_]{2,}))?")
_LONG_WORD = 6
_REFERENCE = re.compile(
    r"\b(?:section|figure|table|page|chapter|appendix|equation|abschnitt|abbildung|tabelle|seite|kapitel|anhang|gleichung)"
    r"[ns]?\s*$",
    re.IGNORECASE,
)
"""What a number of a cross-reference follows."""
_CODE_SIGNS = "\\/_@=&#$^~+"
_NO_UNITS = {
    "an", "and", "are", "as", "at", "but", "by", "for", "from", "had", "he", "in", "is", "it", "of", "on", "or",
    "she", "that", "the", "their", "they", "this", "to", "was", "were", "when", "which", "who", "with", "als", "am",
    "auf", "aus", "bei", "bis", "das", "dem", "den", "der", "des", "die", "ein", "eine", "er", "es", "für", "hat",
    "im", "ist", "mit", "nach", "nur", "sich", "sie", "sind", "um", "und", "von", "vor", "war", "waren", "wie",
    "wird", "wurde", "wurden", "zu", "zum", "zur",
}  # fmt: skip
"""Words after a number that are no unit."""


@dataclass(frozen=True, slots=True)
class _AnswerSpan:
    """A possible answer: its position in the sentence, its category, and how specific it is."""

    start: int
    end: int
    category: str
    score: float


def _answer_spans(sentence: str) -> list[_AnswerSpan]:
    """Possible answers of a sentence, the most specific first."""
    words = list(_WORD.finditer(sentence))
    spans = []
    for number in _NUMBER.finditer(sentence):
        if _REFERENCE.search(sentence, 0, number.start()):
            continue
        has_unit = number["unit"] is not None and number["unit"] not in _NO_UNITS
        end = number.end() if has_unit or number["unit"] is None else number.start("unit") - 1
        if end - number.start() > 1:  # a single digit is no specific answer
            spans.append(_AnswerSpan(number.start(), end, "fine_detail", 2.0))
    run: list[re.Match[str]] = []
    for word in [*words[1:], None]:
        adjacent = not run or (word is not None and sentence[run[-1].end() : word.start()] == " ")
        if word is not None and word.group()[0].isupper() and adjacent:
            run.append(word)
            continue
        if run:
            spans.append(_AnswerSpan(run[0].start(), run[-1].end(), "exact", 3.0 if len(run) > 1 else 1.0))
        run = [word] if word is not None and word.group()[0].isupper() else []
    for first, second in pairwise(words[1:]):
        is_long = min(len(first.group()), len(second.group())) >= _LONG_WORD
        if is_long and sentence[first.end() : second.start()] == " ":
            spans.append(_AnswerSpan(first.start(), second.end(), "exact", 0.5))
    in_text = (span for span in spans if not _touches_code(sentence, span))
    return sorted(in_text, key=lambda span: -span.score)


def _touches_code(sentence: str, span: _AnswerSpan) -> bool:
    r"""Whether the span is a part of a command, path or name such as ``\KOMAoptions`` or ``draft=false``."""
    before, after = sentence[: span.start][-1:], sentence[span.end :][:1]
    return (bool(before) and before in _CODE_SIGNS) or (bool(after) and after in _CODE_SIGNS)


def _cloze_drafts(sentences: Sequence[_Sentence]) -> Iterator[_Draft]:
    """Sentences with a gap, the most specific answers first."""
    spans = [(sentence, span) for sentence in sentences for span in _answer_spans(sentence.text)]
    for sentence, span in sorted(spans, key=lambda pair: -pair[1].score):
        text = sentence.text
        question = f"{text[: span.start]}{GAP}{text[span.end :]}"
        yield _Draft(question, text[span.start : span.end], text, span.category, "cloze", sentence.order)


_HEADING_QUESTIONS = {
    "en": "What does the document say about {title}?",
    "de": "Was sagt das Dokument über {title}?",
}
_STOP_WORDS = {"en": {"the", "and", "of", "is", "to"}, "de": {"der", "die", "und", "das", "ist"}}


def _heading_drafts(sentences: Sequence[_Sentence], language: str) -> Iterator[Iterator[_Draft]]:
    """For each section title, questions about it with the answers of the section, the most specific first."""
    by_title: dict[str, list[_Sentence]] = {}
    for sentence in sentences:
        # One word in capitals names a part of a manual page, such as DESCRIPTION, and no topic.
        if sentence.title and not (sentence.title.isupper() and len(sentence.title.split()) == 1):
            by_title.setdefault(sentence.title, []).append(sentence)
    for title, body in by_title.items():
        question = _HEADING_QUESTIONS[language].format(title=title.rstrip(".?!:= "))
        changes = {"question": question, "method": "heading", "category": "implicit", "topic": title}
        yield map(partial(replace, **changes), _cloze_drafts(body))


def _detected_language(documents: Sequence[TextDocument]) -> str:
    """The language whose stop words are more frequent."""
    counts = Counter(word for document in documents for word in document.text.casefold().split())
    return max(LANGUAGES, key=lambda language: sum(counts[word] for word in _STOP_WORDS[language]))


# Questions of a chat model.

_PROMPT = """\
Write {number} questions that can be answered from the passage below, in the language of the passage.
The answer must be copied word for word from the passage: a name, a number, a date or a short phrase of at most
{words} words. Do not use the words of the answer in the question, and rephrase the passage instead of quoting it.
A reader who does not see the passage must understand the question.
Answer with a JSON list only: [{{"question": "...", "answer": "..."}}]

Passage:
{passage}
"""


def _passages(sentences: Sequence[_Sentence]) -> Iterator[list[_Sentence]]:
    """Consecutive sentences of one section, of about ``PASSAGE_WORDS`` words."""
    for _, section in groupby(sentences, key=lambda sentence: sentence.title):
        passage: list[_Sentence] = []
        for sentence in section:
            passage.append(sentence)
            if sum(len(part.text.split()) for part in passage) >= PASSAGE_WORDS:
                yield passage
                passage = []
        if passage:
            yield passage


def _model_drafts(model: ChatModel, sentences: Sequence[_Sentence]) -> Iterator[_Draft]:
    """The questions that the model writes about a passage; the passage of a draft is the sentence with its answer."""
    passage = " ".join(sentence.text for sentence in sentences)
    prompt = _PROMPT.format(number=QUESTIONS_PER_PASSAGE, words=MAX_ANSWER_WORDS, passage=passage)
    for pair in list(_parsed_pairs(model.complete(prompt))) or [{"question": "", "answer": ""}]:
        question, answer = one_line(pair["question"]), one_line(pair["answer"])
        holder = next((one for one in sentences if _MATCHER.holds(answer, one.text)), sentences[0])
        yield _Draft(question, answer, holder.text, "reformulated", model.name, holder.order)


def _parsed_pairs(answer: str) -> Iterator[dict[str, str]]:
    """The pairs of question and answer in the text of a model; text around the JSON list is ignored."""
    start, end = answer.find("["), answer.rfind("]")
    try:
        rows = json.loads(answer[start : end + 1])
    except ValueError:
        return
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict) and all(isinstance(row.get(key), str) for key in ("question", "answer")):
            yield row


# Checks of drafts, one by one.


class _Collector:
    """Accepts drafts that pass all checks, up to a number, and counts the others by reason."""

    def __init__(
        self, documents: Sequence[TextDocument], n_questions: int, progress: Callable[[int], None] | None = None
    ) -> None:
        self._progress = progress
        self._texts = [normalize_answer(document.text) for document in documents]
        self._finder = PassageFinder([document.text for document in documents])
        self._limit = n_questions
        self._accepted: list[_Draft] = []
        self._grams: list[frozenset[str]] = []
        self._answers: set[str] = set()
        self._dropped: Counter[str] = Counter()

    def add_from(self, sources: Sequence[Iterator[_Draft]], limit: int | None = None) -> None:
        """Take accepted drafts round-robin from the sources, until there are enough or no source has another one."""
        limit = self._limit if limit is None else min(limit, self._limit)
        open_sources = list(sources)
        while open_sources and len(self._accepted) < limit:
            open_sources = [source for source in open_sources if len(self._accepted) < limit and self._add_next(source)]

    def _add_next(self, source: Iterator[_Draft]) -> bool:
        for draft in source:
            reason = self._problem(draft)
            if not reason:
                self._accepted.append(draft)
                self._grams.append(draft.grams)
                self._answers.add(normalize_answer(draft.answer))
                if self._progress is not None:
                    self._progress(len(self._accepted))
                return True
            self._dropped[reason] += 1
        return False

    def _problem(self, draft: _Draft) -> str:
        """Why a draft is dropped; empty if it is accepted."""
        if not draft.question.strip() or not draft.answer.strip():
            return "no question or no answer"
        if len(draft.answer.split()) > MAX_ANSWER_WORDS:
            return "answer too long"
        if not _MATCHER.holds(draft.answer, draft.passage):
            return "answer not in the passage"
        if _MATCHER.holds(draft.answer, draft.question):
            return "answer in the question"
        if normalize_answer(draft.answer) in self._answers:
            return "same answer as another draft"
        if count_answers(QuestionAnswer("", draft.question, draft.answer), self._texts, _MATCHER) != 1:
            return "answer occurs several times"
        grams = draft.grams
        if any(len(grams & other) >= NEAR_DUPLICATE_SIMILARITY * len(grams | other) for other in self._grams):
            return "near-duplicate of another draft"
        if not self._finder.find(draft.passage):
            return "passage not found without its markup"
        return ""

    def result(self) -> DraftSet:
        """The accepted drafts in the order of the document, numbered."""
        ordered = sorted(self._accepted, key=lambda draft: draft.order)
        questions = tuple(
            QuestionAnswer(
                f"d{number}", draft.question, draft.answer, draft.category, passages=(draft.passage,), draft=True
            )
            for number, draft in enumerate(ordered, start=1)
        )
        methods = {question.id: draft.method for question, draft in zip(questions, ordered, strict=True)}
        return DraftSet(questions, methods, dict(self._dropped.most_common()))


# A hosted chat model: one prompt, one answer.

CHAT_KINDS = ("openai", "litellm")
CHAT_OPTIONS = ("base_url", "api_version", "key_env", "timeout", "attempts")
TIMEOUT_SECONDS = 120.0


class ChatModel:
    """A chat model at a server; the key is read from the environment."""

    def __init__(self, send: Callable[..., Any], name: str, retry_policy: RetryPolicy) -> None:
        self.name = name
        self._send, self._retry_policy = send, retry_policy

    def complete(self, prompt: str) -> str:
        """The answer to a prompt; a failed request is retried, and raises ``PartialError`` in the end."""
        try:
            return call_with_retries(lambda: self._answer(prompt), self._retry_policy)
        except RequestFailedError as error:
            reason = error.failure.reason
        raise PartialError(
            f"{self.name} did not answer: {reason}",
            hint="check that the server runs, its address (base_url), the key and the name of the model",
        )

    def _answer(self, prompt: str) -> str:
        failure: RequestFailure
        try:
            text = self._send(messages=[{"role": "user", "content": prompt}]).choices[0].message.content
        except Exception as error:  # the exception may contain the key, so it is not chained
            failure = classify_error(error)
        else:
            if isinstance(text, str) and text.strip():
                return text
            failure = RequestFailure("the server answered without a text", invalid_response=True)
        raise RequestFailedError(failure)


def chat_model(text: str) -> ChatModel:
    """The chat model that a spec names; no request is made."""
    kind, separator, _ = text.partition(":")
    if not separator or (spec := parse_spec(text)).kind not in CHAT_KINDS or not spec.name:
        example = f"openai:{kind}" if not separator and kind not in BY_ALIAS else "openai:MODEL"
        raise ParameterError(
            f"{text} is not a chat model",
            hint=f"write {example}, openai:MODEL,base_url=http://localhost:11434/v1 or litellm:PROVIDER/MODEL",
        )
    check_options(f"the chat model {spec.kind}:{spec.name}", spec.options, CHAT_OPTIONS)
    retry_policy = retry_policy_from(spec)
    if spec.kind == "openai":
        return ChatModel(partial(open_client(spec).chat.completions.create, model=spec.name), spec.name, retry_policy)
    engine: Any = open_engine(spec, spec.name)
    request: dict[str, Any] = {"model": spec.name, "num_retries": 0, "max_retries": 0}
    request["timeout"] = positive_option(spec, "timeout") or TIMEOUT_SECONDS
    if "base_url" in spec.options:
        request["api_base"] = spec.options["base_url"]
    return ChatModel(partial(engine.completion, **request), spec.name, retry_policy)
