"""What is known of a field: pairs, clusters, annotated sentences, relations, concepts."""

from equipoise.data.field.problem import Problem, Rule
from equipoise.data.field.read import inspect_field, read_field
from equipoise.data.field.records import Cluster, Entity, Field, Pair, Relation, Sentence

__all__ = [
    "Cluster",
    "Entity",
    "Field",
    "Pair",
    "Problem",
    "Relation",
    "Rule",
    "Sentence",
    "inspect_field",
    "read_field",
]
