"""Validation of fixtures: questions and answers that are to tell systems apart."""

from equipoise.recipes.fair.validation.result import AnswerIssue, ValidationResult
from equipoise.recipes.fair.validation.validate import validate_fixture

__all__ = ["AnswerIssue", "ValidationResult", "validate_fixture"]
