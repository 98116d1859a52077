"""What a text asserts of a finding: rules of cues and their scopes, in English and German."""

from equipoise.domains.phenotypes.assertion.detect import detect_assertions
from equipoise.domains.phenotypes.assertion.rules import ASSERTIONS, Assertion

__all__ = ["ASSERTIONS", "Assertion", "detect_assertions"]
