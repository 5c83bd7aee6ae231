"""What must be true of every step that the claim protocol can take."""

from __future__ import annotations

from tests.protocol.space import Invariant, Step
from tests.protocol.world import FAILED_OVER, Accepted, State, TakenOver


def _no_zombie(before: State, step: Step[State]) -> bool:
    """An accepted settlement comes from the claim that the row carries."""
    if not isinstance(step.event, Accepted):
        return True
    request = step.event.request
    job = before.store.jobs[request.job]
    return (job.fence, job.claim, job.worker) == (request.fence, request.claim, request.worker)


def _one_settlement(before: State, step: Step[State]) -> bool:
    """Two claims never both settle the same run."""
    if not isinstance(step.event, Accepted):
        return True
    request = step.event.request
    return before.store.jobs[request.job].settled in (0, request.claim)


def _terminal_is_final(before: State, step: Step[State]) -> bool:
    """A row that has ended is not written again, unless the store itself went back in time."""
    if step.event == FAILED_OVER:
        return True
    pairs = zip(before.store.jobs, step.state.store.jobs, strict=False)
    return all(old.recorded == new.recorded for old, new in pairs if old.terminal)


def _one_live_claim(before: State, step: Step[State]) -> bool:
    """Among the workers whose lease has not run out, at most one believes that a job is its own."""
    store = step.state.store
    believed: list[int] = []
    for process in step.state.processes:
        row = store.worker(process.id)
        held = process.held
        # Once its settlement is sent, a worker runs the job no more and only waits for the answer.
        if held is not None and not held.outcome and row is not None and row.leased:
            believed.append(held.job)
    return len(believed) == len(set(believed))


def _one_job_per_occurrence(before: State, step: Step[State]) -> bool:
    """Every occurrence up to `fired_through` made one job, and no later one made any."""
    store = step.state.store
    return all(
        made == (occurrence <= store.fired_through) for occurrence, made in enumerate(store.made, start=1)
    )


def _counts_are_honest(before: State, step: Step[State]) -> bool:
    """Failures and crashes are counted only for runs that began: not for releases or unstarted claims."""
    return all(job.failures + job.crashes <= job.runs for job in step.state.store.jobs)


def _fences_rise(before: State, step: Step[State]) -> bool:
    """A fence never falls, and a new claim always has a higher one."""
    pairs = zip(before.store.jobs, step.state.store.jobs, strict=False)
    return all(
        new.fence > old.fence if new.claim != old.claim else new.fence >= old.fence for old, new in pairs
    )


def _only_lapsed_rescued(before: State, step: Step[State]) -> bool:
    """A job is rescued only after its worker's lease ran out, or its process was seen gone, during the claim."""
    event = step.event
    return not isinstance(event, TakenOver) or event.own or before.store.jobs[event.job].lapsed


def at_most_once(before: State, step: Step[State]) -> bool:
    """No job begins twice; promised for `on_crash="fail"` only."""
    return all(job.runs <= 1 for job in step.state.store.jobs)


ALWAYS: dict[str, Invariant[State]] = {
    "no settlement is accepted from a claim that was lost": _no_zombie,
    "one run has one accepted settlement": _one_settlement,
    "a terminal row never changes": _terminal_is_final,
    "an occurrence makes one job": _one_job_per_occurrence,
    "only a claim whose lease ran out or whose process is gone is rescued": _only_lapsed_rescued,
}
"""Hold even in a store that loses acknowledged writes."""

DURABLE: dict[str, Invariant[State]] = ALWAYS | {
    "at most one live claim": _one_live_claim,
    "only runs that began are counted": _counts_are_honest,
    "fences only rise": _fences_rise,
}
"""Hold in a store that keeps what it acknowledged."""
