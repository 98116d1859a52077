"""Every score and example of the concept-evaluation document; ``equipoise.concepts`` is the only import.

Test data and formulas are those of the document. The model counts letters.
"""

import json

from equipoise import concepts

STANDARD = (
    "will to power", "eternal recurrence", "übermensch", "perspectivism", "master morality", "slave morality",
    "amor fati", "nihilism", "dionysian", "apollonian", "ressentiment", "free spirit",
)  # fmt: skip
FILES = {
    "pairs": [
        {"concept_1": "will to power", "concept_2": "übermensch", "expected_similarity": 0.85},
        {"concept_1": "master morality", "concept_2": "slave morality", "expected_similarity": 0.6},
        {"concept_1": "amor fati", "concept_2": "eternal recurrence", "expected_similarity": 0.7},
        {"concept_1": "nihilism", "concept_2": "free spirit", "expected_similarity": 0.2},
    ],
    "clusters": [
        {
            "cluster_id": 0,
            "theme": "Nietzschean_Ethics",
            "concepts": ["will to power", "master morality", "übermensch", "amor fati"],
        },
        {"cluster_id": 1, "theme": "Aesthetics", "concepts": ["dionysian", "apollonian", "tragedy"]},
    ],
    "entities": [
        {
            "text": "Nietzsche's concept of the will to power represents...",
            "entities": [
                {"text": "Nietzsche", "label": "PHILOSOPHER"},
                {"text": "will to power", "label": "CONCEPT"},
            ],
        },
        {
            "text": "Kant wrote about duty.",
            "entities": [{"text": "Kant", "label": "PHILOSOPHER"}, {"text": "duty", "label": "CONCEPT"}],
        },
    ],
    "relations": {
        "relations": [
            {"subject": "Nietzsche", "predicate": "developed", "object": "will to power"},
            {"subject": "will to power", "predicate": "relates_to", "object": "übermensch"},
        ]
    },
    "concepts": list(STANDARD),
}


class LetterCounts:
    """One vector of letter counts per text."""

    def encode(self, texts):
        return [[float(text.casefold().count(letter)) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]


def cosine(x, y):
    product = sum(a * b for a, b in zip(x, y, strict=True))
    return product / (sum(a * a for a in x) * sum(b * b for b in y)) ** 0.5


def evaluate_examples(folder):
    for name, content in FILES.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return concepts.evaluate_concepts({"letters": LetterCounts()}, folder, cache=False)


def test_each_score_is_the_weighted_sum_of_the_document():
    parts = {
        "similarity": {"accuracy": 0.5, "correlation": 0.75, "mae": 0.25},
        "clustering": {"silhouette_score": 0.2, "cluster_coherence": 0.6, "cluster_separation": 0.5},
        "entities": {"entity_clustering_silhouette": 0.1, "avg_entity_text_similarity": 0.5},
        "relations": {"relation_coherence": 0.5, "graph_density": 0.8, "clustering_coefficient": 0.25},
        "quality": {"diversity_score": 0.9, "embedding_variance": 1.7, "norm_std/norm_mean": 0.1},
    }
    expected = {
        "similarity": 0.5 * 0.4 + 0.75 * 0.4 + (1 - 0.25) * 0.2,
        "clustering": 0.2 * 0.5 + 0.6 * 0.3 + 0.5 * 0.2,
        "entities": 0.1 * 0.6 + 0.5 * 0.4,
        "relations": 0.5 * 0.4 + min(0.8, 0.5) * 0.3 + 0.25 * 0.3,
        "quality": 0.9 * 0.4 + min(1.7, 1.0) * 0.3 + min(0.1, 1.0) * 0.3,
    }
    for task, value in expected.items():
        assert abs(concepts.CONCEPT_SCORES[task].value(parts[task]) - value) < 1e-12


def test_the_examples_of_the_document_are_a_concept_set_with_all_scores(tmp_path):
    evaluation = evaluate_examples(tmp_path)
    scores = {name: estimate.value for name, estimate in evaluation["letters"].items()}
    score_names = [score.name for score in concepts.CONCEPT_SCORES.values()]
    assert list(scores) == [*score_names, "composite_score"]
    assert abs(scores["composite_score"] - sum(scores[name] for name in score_names) / 5) < 1e-12


def test_similarity_and_quality_equal_plain_python(tmp_path):
    scores = evaluate_examples(tmp_path)["letters"]
    encode = LetterCounts().encode
    predicted = [cosine(*encode([pair["concept_1"], pair["concept_2"]])) for pair in FILES["pairs"]]
    expected = [pair["expected_similarity"] for pair in FILES["pairs"]]
    errors = [abs(a - b) for a, b in zip(predicted, expected, strict=True)]
    means = [sum(values) / 4 for values in (predicted, expected)]
    centred = [[value - mean for value in values] for values, mean in zip((predicted, expected), means, strict=True)]
    accuracy = sum(error <= 0.1 for error in errors) / 4
    expected_score = accuracy * 0.4 + cosine(*centred) * 0.4 + (1 - sum(errors) / 4) * 0.2
    assert abs(scores["semantic_similarity_score"].value - expected_score) < 1e-9
    vectors = encode(STANDARD)
    pairs = [cosine(x, y) for index, x in enumerate(vectors) for y in vectors[:index]]
    columns = list(zip(*vectors, strict=True))
    variances = [sum((value - sum(column) / 12) ** 2 for value in column) / 12 for column in columns]
    norms = [cosine(vector, vector) and sum(value * value for value in vector) ** 0.5 for vector in vectors]
    spread = (sum((norm - sum(norms) / 12) ** 2 for norm in norms) / 12) ** 0.5 / (sum(norms) / 12)
    expected_score = (1 - sum(pairs) / len(pairs)) * 0.4 + min(sum(variances) / 26, 1.0) * 0.3 + min(spread, 1.0) * 0.3
    assert abs(scores["embedding_quality_score"].value - expected_score) < 1e-9


def test_the_interpretation_has_the_limits_of_the_document():
    interpretations = {0.29: "poor", 0.3: "moderate", 0.5: "good", 0.69: "good", 0.7: "excellent", 1.0: "excellent"}
    assert {score: concepts.interpret_score(score) for score in interpretations} == interpretations


def test_every_use_of_the_document_has_a_recommendation(tmp_path):
    assert list(evaluate_examples(tmp_path).recommendations) == [
        "General Knowledge Graph Tasks",
        "Semantic Similarity Tasks",
        "Concept Clustering",
        "Entity Recognition",
        "Relation Extraction",
    ]
