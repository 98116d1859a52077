"""Next location: accuracy, MRR, nDCG and F1 from logits of any size, beside what luck and habit score."""

from equipoise.domains.places.score import score_places
from equipoise.domains.places.training_loop import (
    PlaceMeter,
    calculate_correct_total_prediction,
    get_mrr,
    get_ndcg,
    get_performance_dict,
    top_k_accuracy,
)

__all__ = [
    "PlaceMeter",
    "calculate_correct_total_prediction",
    "get_mrr",
    "get_ndcg",
    "get_performance_dict",
    "score_places",
    "top_k_accuracy",
]
