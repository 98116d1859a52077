"""The extra memory that scoring dicts of dicts takes; alone in its process, since a peak is never forgotten.

python -m benchmarks.memory ours 10000 100 5       prints MB
"""

from __future__ import annotations

import sys

from benchmarks import peers
from benchmarks.retrieval import Results
from benchmarks.timing import extra_megabytes
from equipoise.evidence.ranking import Ranking

WORK = {
    "ours": lambda qrels, run: peers.ours(Ranking.from_runs(qrels, run)),
    "pytrec_eval": peers.by_pytrec_eval,
}


def main() -> None:
    """Measure one of them on one size."""
    work, size = WORK[sys.argv[1]], [int(number) for number in sys.argv[2:]]
    work(*Results.of_size(20, 20, 3).as_dicts())
    data = Results.of_size(*size).as_dicts()
    print(extra_megabytes(lambda: work(*data)))


if __name__ == "__main__":
    main()
