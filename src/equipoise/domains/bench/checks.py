"""Checks of the data sets of a benchmark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from equipoise.checks.base import Observation, declared_checks


@dataclass(frozen=True)
class DatasetFingerprints:
    """The fingerprints of the data sets of a benchmark, by name."""

    fingerprints: Mapping[str, str]


def copied_datasets(suite: DatasetFingerprints) -> Iterator[Observation]:
    """EQ207: data sets with the same content under several names."""
    names_of: dict[str, list[str]] = {}
    for name, fingerprint in suite.fingerprints.items():
        names_of.setdefault(fingerprint, []).append(name)
    for fingerprint, names in names_of.items():
        if len(names) > 1:
            yield Observation(
                ", ".join(names),
                f"they have the same content, and the means over {len(suite.fingerprints)} data sets count it "
                f"{len(names)} times",
                (f"fingerprint {fingerprint[:16]}",),
            )


CHECKS = declared_checks("equipoise.domains.bench", {"EQ207": (DatasetFingerprints, copied_datasets)})
