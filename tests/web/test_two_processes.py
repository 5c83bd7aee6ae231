"""What another process does, on each store: told step by step, at rest and under load."""

from __future__ import annotations

import pytest

from benchmarks.stream import Delays, measure

GENEROUS = 5.0
"""Far more than a step takes: how long that is, `python -m benchmarks.stream` measures."""


def check(found: Delays, *, probes: int) -> None:
    """Each job was told when it was stored and when it had ended, and soon; that it runs only if someone looked then."""
    assert (len(found.stored), len(found.ended)) == (probes, probes)
    assert max(*found.stored, *found.started, *found.ended) < GENEROUS


@pytest.mark.timeout(180)
async def test_a_job_that_runs_in_another_process_is_told(store_url: str) -> None:
    check(await measure(store_url, probes=3, pause=0.2), probes=3)


@pytest.mark.timeout(180)
async def test_it_is_told_among_hundreds_of_jobs_a_second(store_url: str) -> None:
    check(await measure(store_url, probes=3, rate=300, pause=0.2), probes=3)


@pytest.mark.timeout(180)
async def test_a_job_of_a_hybrid_is_told_wherever_it_lives(hybrid_url: str) -> None:
    check(await measure(hybrid_url, probes=3, pause=0.2), probes=3)
