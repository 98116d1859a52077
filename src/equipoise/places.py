"""Next-location evaluation: accuracy, MRR, nDCG and F1 from logits, with baselines.

Example::

    from equipoise.places import score_places

    print(score_places(logits, targets, users=users))
"""

from equipoise.lazy_imports import lazy_module

PUBLIC_NAMES = {
    "DistanceErrors": "equipoise.domains.places.geography",
    "MarkovModel": "equipoise.domains.places.demo",
    "PlaceCalibration": "equipoise.domains.places.metrics",
    "PlaceMeter": "equipoise.domains.places.training_meter",
    "PlaceMetric": "equipoise.domains.places.torch_metric",
    "PlaceScores": "equipoise.domains.places.score",
    "PlacesDemo": "equipoise.domains.places.demo",
    "PlaceSummary": "equipoise.domains.places.training_meter",
    "PublishedScores": "equipoise.domains.places.published_results",
    "ScoredPredictions": "equipoise.domains.places.prediction_files",
    "SeedComparison": "equipoise.domains.places.seed_comparison",
    "SeedResults": "equipoise.domains.places.seed_comparison",
    "TopKPredictions": "equipoise.domains.places.prediction_files",
    "VisitHistory": "equipoise.domains.places.visits",
    "calculate_correct_total_prediction": "equipoise.domains.places.training_meter",
    "compare_across_seeds": "equipoise.domains.places.seed_comparison",
    "get_mrr": "equipoise.domains.places.training_meter",
    "get_ndcg": "equipoise.domains.places.training_meter",
    "get_performance_dict": "equipoise.domains.places.training_meter",
    "majority": "equipoise.domains.places.baselines",
    "markov": "equipoise.domains.places.baselines",
    "most_frequent_per_user": "equipoise.domains.places.baselines",
    "random_chance": "equipoise.domains.places.baselines",
    "read_coordinates": "equipoise.domains.places.geography",
    "read_history": "equipoise.domains.places.visits",
    "read_mobility_data": "equipoise.domains.places.checks",
    "read_predictions": "equipoise.domains.places.prediction_files",
    "read_published_results": "equipoise.domains.places.published_results",
    "read_test_sequences": "equipoise.domains.places.visits",
    "score_places": "equipoise.domains.places.score",
    "score_top_k": "equipoise.domains.places.score",
    "simulate_mobility": "equipoise.domains.places.demo",
    "top_k_accuracy": "equipoise.domains.places.training_meter",
}

__getattr__, __dir__, __all__ = lazy_module(__name__, PUBLIC_NAMES)
