"""The memory that many short texts through the static model take; alone in its process.

python -m benchmarks.embedding_memory 1000000       prints MB beyond the bare interpreter
"""

from __future__ import annotations

import sys

from benchmarks.timing import extra_megabytes


def main() -> None:
    """Make the texts and embed them; all that is imported for it counts too."""

    def work() -> object:
        from equipoise.models.embedder import embedder

        texts = [f"short text number {number} of many" for number in range(int(sys.argv[1]))]
        return texts, embedder("wordllama", cache=False).embed(texts)

    print(extra_megabytes(work))


if __name__ == "__main__":
    main()
