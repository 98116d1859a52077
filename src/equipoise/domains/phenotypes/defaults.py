"""The models that are used if none is named. The help of the commands shows them, so nothing is imported here."""

DEFAULT_MODEL = "sum:use+tfidf"
"""The best offline model for English and German: a multilingual model and character n-grams."""
DEFAULT_EXTRACTOR = "use"
"""The default model for phrases that the dictionary leaves free: multilingual and fast."""
