# Written by scripts/write_stubs.py from PUBLIC_NAMES. Do not edit.

from equipoise.domains.fair.answer_verification import AnswerIssue as AnswerIssue
from equipoise.domains.fair.compat import BinaryEvaluator as BinaryEvaluator
from equipoise.domains.fair.compat import EvaluationScore as EvaluationScore
from equipoise.domains.fair.compat import InMemoryVectorStore as InMemoryVectorStore
from equipoise.domains.fair.compat import OpenAIEmbedding as OpenAIEmbedding
from equipoise.domains.fair.compat import SentenceTransformerEmbedding as SentenceTransformerEmbedding
from equipoise.domains.fair.config import FairConfig as FairConfig
from equipoise.domains.fair.draft import DraftSet as DraftSet
from equipoise.domains.fair.draft import draft_questions as draft_questions
from equipoise.domains.fair.experiment import optimize_model as optimize_model
from equipoise.domains.fair.experiment import run_fair_comparison as run_fair_comparison
from equipoise.domains.fair.questions import QuestionAnswer as QuestionAnswer
from equipoise.domains.fair.questions import read_questions as read_questions
from equipoise.domains.fair.questions import timekeeping as timekeeping
from equipoise.domains.fair.results import FairComparison as FairComparison
from equipoise.domains.fair.results import OptimizationResult as OptimizationResult
from equipoise.domains.fair.validation import ValidationResult as ValidationResult
from equipoise.domains.fair.validation import validate_fixture as validate_fixture
from equipoise.models.chunking import FixedSizeChunker as FixedSizeChunker
