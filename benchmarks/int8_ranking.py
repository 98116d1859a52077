"""MiniLM in int8 on the processor: the loss in ranking on Cranfield, and the throughput, in one run.

python -m benchmarks.int8_ranking FOLDER       FOLDER has Cranfield in the format of BEIR
"""

from __future__ import annotations

import sys
from time import process_time

import numpy as np

from equipoise import Dataset, compare, evaluate
from equipoise.domains.bench.retrieval_data import Retrieval, retrieve
from equipoise.evidence.ranking import Ranking
from equipoise.models.dense import DenseRetriever, MemoisedEmbedder
from equipoise.models.embedder import embedder
from equipoise.models.encoder import Role, Vectors

FLOAT32 = "minilm,device=cpu"
SYSTEMS = {"float32": FLOAT32, "int8": "minilm,precision=int8", "minilm-int8": "minilm-int8"}


def measure(spec: str, data: Dataset) -> tuple[Ranking, Vectors, list[float]]:
    """The ranking, the vectors of the documents, and documents and queries per CPU second."""
    model = MemoisedEmbedder(embedder(spec, cache=False))
    documents = [text for text in data.items.values() if text]
    model.embed(["the first text loads the model"])
    rates = []
    for texts, role in ((documents, Role.DOCUMENT), (list(data.units.values()), Role.QUERY)):
        start = process_time()
        model.embed(texts, role)
        rates.append(len(texts) / (process_time() - start))
    return retrieve(DenseRetriever(model), data), model.embed(documents), rates


def main() -> None:
    """Print a table: nDCG@10 with its interval, the difference from float32, the mean cosine, texts per CPU second."""
    data = Retrieval(sys.argv[1]).dataset
    float32_results = None
    for name, spec in SYSTEMS.items():
        ranking, vectors, rates = measure(spec, data)
        result = evaluate(ranking, ["nDCG@10"], system=name)
        estimate = result.estimates["nDCG@10"]
        cells = [f"{estimate.value:.4f} [{estimate.interval.low:.4f}, {estimate.interval.high:.4f}]"]
        if float32_results is None:
            float32_results = result, vectors, rates
        else:
            (contrast,) = compare([result, float32_results[0]], ["nDCG@10"]).contrasts
            cells.append(f"{contrast.difference:+.4f} [{contrast.interval.low:+.4f}, {contrast.interval.high:+.4f}]")
        cells.append(f"cosine {np.einsum('ij,ij->i', vectors, float32_results[1]).mean():.4f}")
        cells += [f"{new:.1f}/s, {new / old:.2f} x" for new, old in zip(rates, float32_results[2], strict=True)]
        print(name, *cells, sep=" | ", flush=True)


if __name__ == "__main__":
    main()
