"""Documents with the terms that people found in them: what extraction is measured against."""

from equipoise.data.annotated.document import ASSERTIONS, AnnotatedDocument, Annotation
from equipoise.data.annotated.read import SAMPLE, Annotated, Problem, read_annotated

__all__ = [
    "ASSERTIONS",
    "SAMPLE",
    "Annotated",
    "AnnotatedDocument",
    "Annotation",
    "Problem",
    "read_annotated",
]
