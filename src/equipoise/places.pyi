# Written by scripts/write_stubs.py from PUBLIC_NAMES. Do not edit.

from equipoise.domains.places.baselines import majority as majority
from equipoise.domains.places.baselines import markov as markov
from equipoise.domains.places.baselines import most_frequent_per_user as most_frequent_per_user
from equipoise.domains.places.baselines import random_chance as random_chance
from equipoise.domains.places.checks import read_mobility_data as read_mobility_data
from equipoise.domains.places.demo import MarkovModel as MarkovModel
from equipoise.domains.places.demo import PlacesDemo as PlacesDemo
from equipoise.domains.places.demo import simulate_mobility as simulate_mobility
from equipoise.domains.places.geography import DistanceErrors as DistanceErrors
from equipoise.domains.places.geography import read_coordinates as read_coordinates
from equipoise.domains.places.metrics import PlaceCalibration as PlaceCalibration
from equipoise.domains.places.prediction_files import ScoredPredictions as ScoredPredictions
from equipoise.domains.places.prediction_files import TopKPredictions as TopKPredictions
from equipoise.domains.places.prediction_files import read_predictions as read_predictions
from equipoise.domains.places.published_results import PublishedScores as PublishedScores
from equipoise.domains.places.published_results import read_published_results as read_published_results
from equipoise.domains.places.score import PlaceScores as PlaceScores
from equipoise.domains.places.score import score_places as score_places
from equipoise.domains.places.score import score_top_k as score_top_k
from equipoise.domains.places.seed_comparison import SeedComparison as SeedComparison
from equipoise.domains.places.seed_comparison import SeedResults as SeedResults
from equipoise.domains.places.seed_comparison import compare_across_seeds as compare_across_seeds
from equipoise.domains.places.torch_metric import PlaceMetric as PlaceMetric
from equipoise.domains.places.training_meter import PlaceMeter as PlaceMeter
from equipoise.domains.places.training_meter import PlaceSummary as PlaceSummary
from equipoise.domains.places.training_meter import (
    calculate_correct_total_prediction as calculate_correct_total_prediction,
)
from equipoise.domains.places.training_meter import get_mrr as get_mrr
from equipoise.domains.places.training_meter import get_ndcg as get_ndcg
from equipoise.domains.places.training_meter import get_performance_dict as get_performance_dict
from equipoise.domains.places.training_meter import top_k_accuracy as top_k_accuracy
from equipoise.domains.places.visits import VisitHistory as VisitHistory
from equipoise.domains.places.visits import read_history as read_history
from equipoise.domains.places.visits import read_test_sequences as read_test_sequences
