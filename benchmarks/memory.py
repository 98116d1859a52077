"""The extra memory for scoring dicts of dicts, measured in a separate process because of the peak.

python -m benchmarks.memory equipoise 10000 100 5       prints MB
"""

from __future__ import annotations

import sys

from benchmarks import peers
from benchmarks.retrieval import Results
from benchmarks.timing import extra_megabytes
from equipoise.evidence.ranking import Ranking

WORK = {
    "equipoise": lambda qrels, run: peers.by_equipoise(Ranking.from_runs(qrels, run)),
    "pytrec_eval": peers.by_pytrec_eval,
}


def main() -> None:
    """Measure one package on one size."""
    work, size = WORK[sys.argv[1]], [int(number) for number in sys.argv[2:]]
    work(*Results.of_size(20, 20, 3).as_dicts())
    data = Results.of_size(*size).as_dicts()
    print(extra_megabytes(lambda: work(*data)))


if __name__ == "__main__":
    main()
