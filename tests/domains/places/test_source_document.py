"""Every function and worked example of the description of the metrics; ``equipoise.places`` is the only import.

The numbers are those of the document, which rounds to two or three digits.
"""

from equipoise import places

CAFE, WORK, HOME, GYM = range(4)


def is_close(value, expected, digits):
    return abs(value - expected) <= 0.5 * 10**-digits


def scores_with_ranks(ranks, classes=20):
    """One row of scores per rank: the target is class 0, and the classes before it score higher."""
    return [[float(rank)] + [float(classes - column) + (100 if column < rank else -100) for column in range(1, classes)]
            for rank in ranks], [0] * len(ranks)  # fmt: skip


def test_accuracy_of_two_samples():
    logits, targets = [[0.4, 0.3, 0.2, 0.1], [0.1, 0.3, 0.5, 0.1]], [WORK, HOME]
    assert places.top_k_accuracy(logits, targets, 1) / 2 == 0.5
    assert places.top_k_accuracy(logits, targets, 3) / 2 == 1.0
    assert places.top_k_accuracy(logits, targets, 4) / 2 == 1.0  # all of the vocabulary


def test_home_at_rank_three_has_the_values_of_the_summary():
    logits, targets = scores_with_ranks([3])
    assert places.top_k_accuracy(logits, targets, 1) == 0
    assert places.top_k_accuracy(logits, targets, 3) == places.top_k_accuracy(logits, targets, 5) == 1
    assert is_close(places.get_mrr(logits, targets), 0.333, 3)
    assert is_close(places.get_ndcg(logits, targets), 0.5, 12)


def test_mean_reciprocal_rank_of_three_samples():
    assert is_close(places.get_mrr(*scores_with_ranks([2, 1, 5])) / 3, 0.567, 3)


def test_ndcg_of_four_samples_and_the_table_of_discounts():
    assert is_close(places.get_ndcg(*scores_with_ranks([1, 3, 7, 15]), k=10) / 4, 0.458, 3)
    for rank, discount in {1: 1.0, 2: 0.631, 3: 0.5, 5: 0.387, 10: 0.289, 11: 0.0}.items():
        assert is_close(places.get_ndcg(*scores_with_ranks([rank])), discount, 3)


def test_weighted_f1_of_the_confusion_matrix():
    confusion = {
        HOME: {HOME: 50, WORK: 10, CAFE: 5},
        WORK: {HOME: 5, WORK: 80, CAFE: 15},
        CAFE: {HOME: 10, WORK: 20, CAFE: 35},
    }
    pairs = [(true, predicted) for true, row in confusion.items() for predicted, n in row.items() for _ in range(n)]
    logits = [[float(column == predicted) for column in range(4)] for _, predicted in pairs]
    sums, true, top1 = places.calculate_correct_total_prediction(logits, [true for true, _ in pairs])
    assert is_close(places.get_performance_dict(sums, true, top1)["f1"] / 100, 0.71, 2)


def test_a_batch_gives_seven_sums_labels_and_predictions():
    logits, targets = scores_with_ranks([1, 2, 4, 8, 12])
    sums, true, top1 = places.calculate_correct_total_prediction(logits, targets)
    assert [float(value) for value in sums[:4]] == [1, 2, 3, 4]
    assert float(sums[6]) == 5
    assert list(true) == targets
    assert len(top1) == 5
    performance = places.get_performance_dict(sums, true, top1)
    assert {"acc@1", "acc@5", "acc@10", "mrr", "ndcg", "f1"} <= set(performance)
    assert performance["acc@1"] <= performance["mrr"] <= performance["ndcg"] + 1e-9 <= performance["acc@10"]


def test_the_sample_results_are_read_with_their_units():
    (row,) = places.read_published_results(
        {"acc@1": 29.61, "acc@5": 54.48, "acc@10": 58.94, "mrr": 40.84, "ndcg": 44.96, "f1": 21.20}
    )
    assert is_close(row.values["HR@1"], 0.2961, 4)
    assert is_close(row.values["F1"], 0.212, 4)
    assert not row.rejected


def test_the_random_baseline_of_geolife():
    chance = places.random_chance(1187)
    assert is_close(100 * chance["HR@1"], 0.08, 2)
    # The document's estimate of MRR, 1 / log(n) = 14 %, is wrong: the mean of 1 / rank over all ranks is H_n / n.
    assert is_close(100 * chance["MRR"], 100 * sum(1 / rank for rank in range(1, 1188)) / 1187, 12)


def test_the_majority_baseline_is_the_frequency_of_the_most_common_location():
    counts, targets = [2, 9, 1], [1, 1, 0, 2]
    assert places.majority(counts, targets).ranks.tolist() == [1.0, 1.0, 2.0, 3.0]


def test_models_with_several_seeds_are_compared_by_a_t_test():
    def seed_results(shift):
        results = {}
        for seed in range(3):
            logits = [[float((row * 7 + column * (seed + 3)) % 11) for column in range(4)] for row in range(40)]
            for row in range(0, 40, shift):
                logits[row][row % 4] = 20.0
            results[seed] = places.score_places(logits, [row % 4 for row in range(40)]).all
        return results

    comparison = places.compare_across_seeds({"A": seed_results(3), "B": seed_results(2)}, metrics=["Acc@1"])
    (pair,) = comparison.pairs
    assert 0 <= pair.seeds.p <= 1
    assert comparison.rows[0].seeds.deviation >= 0


def test_argument_names_are_those_of_the_document():
    logits, targets = scores_with_ranks([1, 3, 12])
    sums, _, _ = places.calculate_correct_total_prediction(logits=logits, true_y=targets)
    assert places.top_k_accuracy(logits=logits, targets=targets, k=3) == float(sums[1]) == 2
    assert is_close(places.get_mrr(prediction=logits, targets=targets), float(sums[4]), 12)
    assert is_close(places.get_ndcg(prediction=logits, targets=targets), float(sums[5]), 12)
    assert is_close(places.get_ndcg(prediction=logits, targets=targets, k=3), 1.5, 12)
