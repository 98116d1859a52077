# Written by scripts/write_stubs.py from PUBLIC_NAMES. Do not edit.

from equipoise.domains.concepts.comparison import weight_sensitivity as weight_sensitivity
from equipoise.domains.concepts.concept_set import ConceptSet as ConceptSet
from equipoise.domains.concepts.concept_set_reader import read_concept_set as read_concept_set
from equipoise.domains.concepts.experiment import evaluate_concepts as evaluate_concepts
from equipoise.domains.concepts.results import ConceptEvaluation as ConceptEvaluation
from equipoise.domains.concepts.scores import CONCEPT_SCORES as CONCEPT_SCORES
from equipoise.domains.concepts.scores import ConceptScore as ConceptScore
from equipoise.domains.concepts.scores import ScoreTerm as ScoreTerm
from equipoise.domains.concepts.scores import interpret_score as interpret_score
