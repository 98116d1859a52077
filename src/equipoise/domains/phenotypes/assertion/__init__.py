"""Assertion detection with ConText rules (cues and scopes) for English and German."""
