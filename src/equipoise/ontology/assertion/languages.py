"""The rules of each language."""

from __future__ import annotations

from equipoise.ontology.assertion import english, german
from equipoise.ontology.assertion.rules import Rules

RULES: dict[str, Rules] = {"en": english.RULES, "de": german.RULES}
