"""Assertion detection with ConText rules (cues and scopes) for English and German."""

from equipoise.domains.phenotypes.assertion.detect import detect_assertions
from equipoise.domains.phenotypes.assertion.rules import ASSERTIONS, Assertion

__all__ = ["ASSERTIONS", "Assertion", "detect_assertions"]
