from __future__ import annotations

import random

import pytest

from duetime.model.events import EventKind, kind_of
from duetime.model.job import Claim
from duetime.model.outcome import (
    Cancelled,
    Crashed,
    Failed,
    Interrupted,
    Outcome,
    Released,
    Skipped,
    Snoozed,
    Succeeded,
    decide,
)
from duetime.model.retry import fixed
from duetime.model.time import SECOND
from tests.unit.model.test_outcome import CLAIM, NOW


@pytest.mark.parametrize(
    ("outcome", "kind"),
    [
        (Succeeded(), EventKind.JOB_SUCCEEDED),
        (Failed(error="boom", final=True), EventKind.JOB_FAILED),
        (Failed(error="boom"), EventKind.JOB_RETRYING),
        (Failed(error="boom", reason="timeout"), EventKind.JOB_RETRYING),
        (Snoozed(SECOND), EventKind.JOB_SNOOZED),
        (Cancelled("off"), EventKind.JOB_CANCELLED),
        (Skipped("expired"), EventKind.JOB_SKIPPED),
        (Interrupted(reason="stop"), EventKind.JOB_INTERRUPTED),
        (Crashed(worker="w0", started=True, blamed=False), EventKind.JOB_LOST),
        (Released(), None),
    ],
)
def test_each_outcome_has_its_event(outcome: Outcome, kind: EventKind | None) -> None:
    made = decide(Claim(**CLAIM), outcome, policy=fixed(1, 1), started_at=NOW, now=NOW, rng=random.Random(1))
    assert kind_of(made, cancelling=False) is kind


@pytest.mark.parametrize("outcome", [Released(), Failed(error="boom"), Snoozed(SECOND)])
def test_what_would_go_back_while_it_is_cancelled_is_cancelled(outcome: Outcome) -> None:
    made = decide(Claim(**CLAIM), outcome, policy=fixed(1, 1), started_at=NOW, now=NOW, rng=random.Random(1))
    assert kind_of(made, cancelling=True) is EventKind.JOB_CANCELLED
