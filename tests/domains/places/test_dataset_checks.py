"""Checks of a data set of visits: each problem that was added is reported, and none in clean data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from equipoise.checks.base import run_checks
from equipoise.domains.places.checks import MobilityData
from equipoise.domains.places.demo import simulate_mobility
from equipoise.domains.places.visits import TestSequences


@pytest.fixture(scope="module")
def clean():
    """Simulated visits split by time; only rows with a known user and a known target are kept."""
    train, cases = simulate_mobility(users=12, days=21, places=60).split()
    kept_rows = np.flatnonzero((train.counts[cases.targets] > 0) & (train.codes_of(cases.users) >= 0))
    targets, previous = cases.targets[kept_rows], cases.previous[kept_rows]
    test = TestSequences(
        "test",
        cases.users[kept_rows],
        targets,
        previous,
        [np.array([place]) for place in previous],
        features={"previous": previous.tolist(), "hour": cases.hours[kept_rows].tolist()},
        times=[f"2024-05-{row:05}" for row in range(len(kept_rows))],
    )
    return MobilityData(train, test)


def finding_codes(data):
    return [finding.code for finding in run_checks(data)]


def test_clean_data_have_no_finding(clean):
    assert finding_codes(clean) == []


def test_unseen_places_and_users_are_counted(clean):
    targets = clean.test.targets.copy()
    targets[:3] = [60, 61, 60]
    users = clean.test.users.copy()
    users[:2] = "new"
    data = replace(clean, test=replace(clean.test, targets=targets, users=users))
    findings = {finding.code: finding for finding in run_checks(data)}
    assert set(findings) == {"EQ180", "EQ181"}
    assert findings["EQ180"].message.startswith(f"3 of {len(targets)} ")
    assert findings["EQ180"].evidence == ("place 60", "place 61")
    assert findings["EQ181"].message.startswith(f"2 of {len(targets)} ")
    assert data.unseen_for_user.sum() >= 3


@pytest.mark.parametrize("kind", ["column", "float", "text", "last", "first"])
def test_a_feature_that_contains_the_target_is_reported(clean, kind):
    targets = clean.test.targets.tolist()
    feature = {
        "column": targets,
        "float": [float(target) for target in targets],
        "text": [str(target) for target in targets],
        "last": [[1, 2, target] for target in targets],
        "first": [[target, 3] for target in targets],
    }[kind]
    data = replace(clean, test=replace(clean.test, features={**clean.test.features, "stop": feature}))
    (finding,) = run_checks(data)
    assert finding.code == "EQ182"
    assert finding.evidence == ("stop",)


def test_a_feature_that_often_equals_the_target_is_not_a_leak(clean):
    feature = [target if row % 2 else -1 for row, target in enumerate(clean.test.targets.tolist())]
    assert finding_codes(replace(clean, test=replace(clean.test, features={"half": feature}))) == []


def test_test_rows_that_are_training_rows_are_reported_by_their_time(clean):
    test = clean.test
    data = MobilityData(clean.train, test, train_rows=test)
    (finding,) = run_checks(data)
    assert finding.code == "EQ183"
    assert finding.message.startswith(f"{len(test)} of {len(test)} ")
    later = replace(test, times=[f"2025-{time}" for time in test.times])
    assert finding_codes(MobilityData(clean.train, test, train_rows=later)) == []


def test_without_times_only_long_sequences_identify_a_row(clean):
    without_times = replace(clean.test, times=None)
    assert finding_codes(MobilityData(clean.train, without_times, train_rows=without_times)) == []
    long_sequences = replace(without_times, sequences=[np.arange(9) for _ in range(len(without_times))])
    assert finding_codes(MobilityData(clean.train, long_sequences, train_rows=long_sequences)) == ["EQ183"]


def test_stays_split_into_equal_visits_are_reported(clean):
    assert finding_codes(replace(clean, test=replace(clean.test, previous=clean.test.targets, features={}))) == [
        "EQ184"
    ]
