"""The memory for embedding many short texts with the static model, measured in a separate process.

python -m benchmarks.embedding_memory 1000000       prints MB in addition to the interpreter
"""

from __future__ import annotations

import sys

from benchmarks.timing import extra_megabytes


def main() -> None:
    """Create the texts and embed them; the memory includes imported packages."""

    def work() -> object:
        from equipoise.models.embedder import embedder

        texts = [f"short text number {number} of many" for number in range(int(sys.argv[1]))]
        return texts, embedder("wordllama", cache=False).embed(texts)

    print(extra_megabytes(work))


if __name__ == "__main__":
    main()
