"""Workers: shown, and told what to do. They belong to no queue, so that users who are bound to some see none."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final

from fastapi import APIRouter, Path
from starlette.responses import Response

from duetime.errors import InvalidOption
from duetime.model.time import SECOND, parse_duration
from duetime.scheduler.explanations import WorkerExplanation
from duetime.scheduler.records import CommandRecord, WorkerRecord
from duetime.web.access import Access, UnboundAdmin, UnboundOperator, UnboundViewer
from duetime.web.answers import NOT_GIVEN, Body, answer, model_of
from duetime.web.api.values import Duration, Reason
from duetime.web.problems import documented

router = APIRouter(prefix="/workers", tags=["workers"])

EXAMPLE_WORKER: Final = "0198c5a07d3e7c429a576a1f6d4f2b11"
Worker = model_of(WorkerRecord)
WorkerPath = Annotated[str, Path(description="The id of a worker.", examples=[EXAMPLE_WORKER], max_length=64)]
_LONGEST_WAIT: Final = 25 * SECOND
_ONE = documented(404)
_TOLD = documented(404, 409, 413, 415, 504)


class WorkerListAnswer(Body):
    """All workers that are known, newest first; those that are gone are kept for a while."""

    items: list[Worker]  # type: ignore[valid-type]


class CommandBody(Body):
    """How it is told."""

    EXAMPLE: ClassVar = {"wait": 0}

    reason: Reason = NOT_GIVEN
    wait: Duration = NOT_GIVEN
    """How long to wait for its answer, 10 seconds if not given; 0 for not at all."""


class ResumeBody(Body):
    """How it is told."""

    EXAMPLE: ClassVar = {"wait": 1}

    wait: Duration = NOT_GIVEN


class StopBody(CommandBody):
    """How it is told."""

    now: bool = NOT_GIVEN
    """Whether jobs that run are cancelled, in place of having the grace time to end."""


class Reply(Body):
    """What a worker answered."""

    reply: str | None
    """Null if it was not waited for."""


_TELL: Final = CommandBody()
_RESUME: Final = ResumeBody()
_STOP: Final = StopBody()


@router.get("", response_model=WorkerListAnswer)
async def list_workers(access: UnboundViewer) -> Response:
    """List workers with their last heartbeat, slots and counters."""
    return answer({"items": await access.scheduler.workers.list()})


@router.get("/{worker_id}", response_model=Worker, responses=_ONE)
async def get_worker(access: UnboundViewer, worker_id: WorkerPath) -> Response:
    """Show a worker."""
    return answer(await access.scheduler.workers.get(worker_id))


@router.get("/{worker_id}/explain", response_model=model_of(WorkerExplanation), responses=_ONE)
async def explain_worker(access: UnboundViewer, worker_id: WorkerPath) -> Response:
    """Tell what a worker was told and has come to, and why it takes no jobs."""
    return answer(await access.scheduler.workers.explain(worker_id))


@router.get("/{worker_id}/commands", response_model=list[model_of(CommandRecord)], responses=_ONE)  # type: ignore[misc]
async def list_commands(access: UnboundViewer, worker_id: WorkerPath) -> Response:
    """Show what a worker was told last and what came of it, newest first."""
    return answer(await access.scheduler.workers.commands(worker_id))


@router.post("/{worker_id}/pause", response_model=Reply, responses=_TOLD)
async def pause_worker(access: UnboundOperator, worker_id: WorkerPath, body: CommandBody = _TELL) -> Response:
    """Have a worker start nothing more; what runs goes on."""
    return await _tell(access, access.scheduler.workers.pause, worker_id, body)


@router.post("/{worker_id}/resume", response_model=Reply, responses=_TOLD)
async def resume_worker(
    access: UnboundOperator, worker_id: WorkerPath, body: ResumeBody = _RESUME
) -> Response:
    """Have a paused worker start jobs again."""
    return await _tell(access, access.scheduler.workers.resume, worker_id, body)


@router.post("/{worker_id}/stop", response_model=Reply, responses=_TOLD)
async def stop_worker(access: UnboundAdmin, worker_id: WorkerPath, body: StopBody = _STOP) -> Response:
    """Have a worker stop as after a signal."""
    return await _tell(access, access.scheduler.workers.stop, worker_id, body)


@router.post("/{worker_id}/stacks", response_model=Reply, responses=_TOLD)
async def ask_stacks(access: UnboundOperator, worker_id: WorkerPath, body: ResumeBody = _RESUME) -> Response:
    """Show where all threads and tasks of a worker stand, also when its event loop is blocked."""
    return answer({"reply": await access.scheduler.workers.stacks(worker_id, **_wait(body))})


async def _tell(access: Access, verb: Any, worker_id: str, body: Body) -> Response:
    given = body.given() | _wait(body)
    return answer({"reply": await verb(worker_id, by=access.by, **given)})


def _wait(body: Body) -> dict[str, Any]:
    """Return for how long a worker is waited for; a request must not wait for ever."""
    found = body.given()
    if "wait" in found and parse_duration(found["wait"], what="wait") > _LONGEST_WAIT:
        raise InvalidOption("wait must be at most 25 seconds: proxies give up on longer requests")
    return {"wait": found["wait"]} if "wait" in found else {}
