"""What a text asserts of a finding: rules of cues and their scopes, in English and German."""

from equipoise.ontology.assertion.detect import detect
from equipoise.ontology.assertion.kinds import ASSERTIONS, Assertion

__all__ = ["ASSERTIONS", "Assertion", "detect"]
