"""Checks of a data set of visits: each finds what was planted, and nothing in clean data."""

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
    learned, cases = simulate_mobility(users=12, days=21, places=60).split()
    keep = np.flatnonzero((learned.counts[cases.targets] > 0) & (learned.codes_of(cases.users) >= 0))
    targets, previous = cases.targets[keep], cases.previous[keep]
    test = TestSequences(
        "test",
        cases.users[keep],
        targets,
        previous,
        [np.array([place]) for place in previous],
        features={"previous": previous.tolist(), "hour": cases.hours[keep].tolist()},
        times=[f"2024-05-{row:05}" for row in range(len(keep))],
    )
    return MobilityData(learned, test)


def codes(data):
    return [finding.code for finding in run_checks(data)]


def test_clean_data_have_no_finding(clean):
    assert codes(clean) == []


def test_unseen_places_and_users_are_counted(clean):
    targets = clean.test.targets.copy()
    targets[:3] = [60, 61, 60]
    users = clean.test.users.copy()
    users[:2] = "new"
    data = replace(clean, test=replace(clean.test, targets=targets, users=users))
    found = {finding.code: finding for finding in run_checks(data)}
    assert set(found) == {"EQ180", "EQ181"}
    assert found["EQ180"].message.startswith(f"3 of {len(targets)} ")
    assert found["EQ180"].evidence == ("place 60", "place 61")
    assert found["EQ181"].message.startswith(f"2 of {len(targets)} ")
    assert data.unseen_for_user.sum() >= 3


@pytest.mark.parametrize("kind", ["column", "float", "text", "last", "first"])
def test_a_feature_that_contains_the_target_is_found(clean, kind):
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
    half = [target if row % 2 else -1 for row, target in enumerate(clean.test.targets.tolist())]
    assert codes(replace(clean, test=replace(clean.test, features={"half": half}))) == []


def test_rows_of_the_test_data_that_are_training_rows_are_found_by_their_time(clean):
    rows = clean.test
    same = MobilityData(clean.train, rows, train_rows=rows)
    (finding,) = run_checks(same)
    assert finding.code == "EQ183"
    assert finding.message.startswith(f"{len(rows)} of {len(rows)} ")
    later = replace(rows, times=[f"2025-{time}" for time in rows.times])
    assert codes(MobilityData(clean.train, rows, train_rows=later)) == []


def test_without_times_only_long_sequences_identify_a_row(clean):
    short = replace(clean.test, times=None)
    assert codes(MobilityData(clean.train, short, train_rows=short)) == []
    long = replace(short, sequences=[np.arange(9) for _ in range(len(short))])
    assert codes(MobilityData(clean.train, long, train_rows=long)) == ["EQ183"]


def test_stays_that_are_split_into_equal_visits_are_noted(clean):
    assert codes(replace(clean, test=replace(clean.test, previous=clean.test.targets, features={}))) == ["EQ184"]
