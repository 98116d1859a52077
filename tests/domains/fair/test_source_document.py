"""The calls of the document of embedding-eval, with one import path: ``equipoise.fair``."""

from equipoise.fair import (
    BinaryEvaluator,
    FixedSizeChunker,
    InMemoryVectorStore,
    OpenAIEmbedding,
    SentenceTransformerEmbedding,
    optimize_model,
    run_fair_comparison,
    timekeeping,
    validate_fixture,
)

DOCUMENT, QUESTIONS = timekeeping()
PAIRS = [
    {"question": question.question, "answer": question.answer, "category": "exact", "difficulty": "medium"}
    for question in QUESTIONS
]


def test_models_are_compared_and_every_field_can_be_printed() -> None:
    results = run_fair_comparison(models=["hash", "bm25:"], doc_content=DOCUMENT, qa_pairs=PAIRS)
    lines = []
    for result in results:
        lines.append(f"{result.model_name}:")
        lines.append(f"  Baseline: {result.baseline_accuracy:.1f}%")
        lines.append(
            f"  Optimized: {result.best_accuracy:.1f}% (95% CI: [{result.ci_lower:.1f}%, {result.ci_upper:.1f}%])"
        )
        lines.append(f"  Best params: {result.best_params}")
    assert len(lines) == 8
    assert all(0 <= result.ci_lower <= result.best_accuracy <= result.ci_upper <= 100 for result in results)
    assert set(results[0].best_params) == {"chunk_size", "overlap", "top_k"}


def test_the_grid_is_optional() -> None:
    grid = {"chunk_sizes": [256, 384, 512], "overlaps": [25, 50, 100], "top_ks": [5, 10, 15]}
    results = run_fair_comparison(models=["bm25:", "tfidf:"], doc_content=DOCUMENT, qa_pairs=PAIRS, **grid)
    assert results[0].configurations_tested == 27
    result = optimize_model(model_spec="bm25:", doc_content=DOCUMENT, qa_pairs=PAIRS)
    assert result.best_accuracy > 50


def test_the_evaluator_scores_the_answer() -> None:
    evaluator = BinaryEvaluator()
    score = evaluator.evaluate(
        question="What is the capital?",
        expected_answer="Paris",
        retrieved_chunks=["France is a country. Paris is its capital."],
    )
    assert score.score == 1.0


def test_chunks_vectors_store_and_evaluator_work_together() -> None:
    chunker = FixedSizeChunker(chunk_size=512, overlap=50)
    chunks = chunker.chunk(DOCUMENT)
    texts = [chunk.text for chunk in chunks]
    ids = [f"chunk_{index}" for index in range(len(texts))]
    embeddings = [[float(len(text)), float(text.count("e")), 1.0] for text in texts]
    store = InMemoryVectorStore()
    store.connect()
    store.create_collection("test", dimensions=3)
    store.upsert("test", ids, embeddings, texts=texts)
    results = store.search("test", embeddings[2], top_k=10)
    assert len(results) == min(10, len(texts))
    assert (results[0]["id"], results[0]["text"]) == ("chunk_2", texts[2])
    assert results[0].get("metadata") == {}
    assert set(results[0]) == {"id", "score", "text", "metadata"}
    evaluator = BinaryEvaluator()
    answer = PAIRS[0]["answer"]
    assert evaluator.evaluate(PAIRS[0]["question"], answer, chunks).score == 1.0
    assert evaluator.evaluate(PAIRS[0]["question"], answer, results).score in (0.0, 1.0)


def test_embedding_models_have_the_names_of_the_document() -> None:
    for model in (SentenceTransformerEmbedding, OpenAIEmbedding):
        assert callable(model.embed_documents)
        assert callable(model.embed_query)


def test_a_question_set_is_validated() -> None:
    result = validate_fixture(PAIRS, DOCUMENT)
    assert result.is_valid is False  # no multi-hop and no hard questions
    assert "130" in result.summary
    with_missing_answer = validate_fixture(
        [*PAIRS, {"question": "Where is it?", "answer": "not in the text"}], DOCUMENT
    )
    assert [issue.answer for issue in with_missing_answer.answer_issues if issue.issue_type == "partial_match"]
