"""Queues: counted, paused, resumed, limited and purged."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final

from fastapi import APIRouter, Path
from starlette.responses import Response

from duetime.model.limits import Limit as QueueLimit, Rate
from duetime.model.text import check_name
from duetime.model.time import SECOND
from duetime.scheduler.records import QueueRecord
from duetime.web.access import Access, Admin, Operator, Viewer
from duetime.web.answers import NOT_GIVEN, Body, answer, model_of, plain
from duetime.web.api.values import Duration, Reason
from duetime.web.problems import documented

router = APIRouter(prefix="/queues", tags=["queues"])

QueuePath = Annotated[str, Path(description="The name of a queue.", examples=["mail"])]


class RateBody(Body):
    """How many jobs may start in a period."""

    count: int
    per: Duration


Queue = model_of(QueueRecord, limit=int | None, rate=RateBody | None)


class QueueListAnswer(Body):
    """All queues that have jobs, settings or a living worker, by name."""

    items: list[Queue]  # type: ignore[valid-type]


class PauseBody(Body):
    """Why."""

    EXAMPLE: ClassVar = {"reason": "the relay is down"}

    reason: Reason = NOT_GIVEN


class LimitBody(Body):
    """How many jobs may run at once, and start in a period, over all workers; what is left out is unlimited."""

    EXAMPLE: ClassVar = {"limit": 5, "rate": {"count": 10, "per": "1m"}}

    limit: int = NOT_GIVEN
    rate: RateBody = NOT_GIVEN


class PurgeBody(Body):
    """A confirmation."""

    EXAMPLE: ClassVar = {"confirm": "mail"}

    confirm: str
    """The name of the queue once more."""
    reason: Reason = NOT_GIVEN


class PurgeAnswer(Body):
    """What came of it."""

    purged: int
    """How many jobs were cancelled."""


_NO_REASON: Final = PauseBody()
_WRITE = documented(413, 415)


@router.get("", response_model=QueueListAnswer)
async def list_queues(access: Viewer) -> Response:
    """List queues with what is in them; of many jobs no more than 10,000 of a kind are counted, and `at_least` says so."""
    found = await access.scheduler.queues.list()
    return answer({"items": [_queue_answer(queue) for queue in found if access.user.sees(queue.name)]})


@router.get("/{queue:path}", response_model=Queue, responses=documented(404))
async def get_queue(access: Viewer, queue: QueuePath) -> Response:
    """Show a queue; one that nothing names is empty."""
    return await _queue(access, queue)


@router.post("/{queue:path}/pause", response_model=Queue, responses=_WRITE)
async def pause_queue(access: Operator, queue: QueuePath, body: PauseBody = _NO_REASON) -> Response:
    """Hand out nothing more from a queue; what is claimed already, or due within half a second, still runs."""
    access.check_queue(queue)
    await access.scheduler.queues.pause(queue, by=access.by, **body.given())
    return await _queue(access, queue)


@router.post("/{queue:path}/resume", response_model=Queue, responses=_WRITE)
async def resume_queue(access: Operator, queue: QueuePath) -> Response:
    """Hand out jobs of a queue again."""
    access.check_queue(queue)
    await access.scheduler.queues.resume(queue, by=access.by)
    return await _queue(access, queue)


@router.put("/{queue:path}/limit", response_model=Queue, responses=_WRITE)
async def limit_queue(access: Operator, queue: QueuePath, body: LimitBody) -> Response:
    """Limit how many jobs of a queue run at once, and start in a period, over all workers."""
    access.check_queue(queue)
    given = body.model_fields_set
    most = QueueLimit(body.limit) if "limit" in given else None
    rate = Rate(body.rate.count, body.rate.per) if "rate" in given else None
    await access.scheduler.queues.limit(queue, most, rate=rate, by=access.by)
    return await _queue(access, queue)


@router.post("/{queue:path}/purge", response_model=PurgeAnswer, responses=_WRITE)
async def purge_queue(access: Admin, queue: QueuePath, body: PurgeBody) -> Response:
    """Cancel all jobs of a queue that no worker has yet."""
    access.check_queue(queue)
    return answer({"purged": await access.scheduler.queues.purge(queue, by=access.by, **body.given())})


async def _queue(access: Access, name: str) -> Response:
    access.check_queue(check_name(name, what="queue"))
    return answer(_queue_answer(await access.scheduler.queues.get(name)))


def _queue_answer(queue: QueueRecord) -> dict[str, Any]:
    """Return a queue as JSON values, its limits as one writes them."""
    values: dict[str, Any] = plain(queue)
    limit, rate = queue.limit, queue.rate
    pace = None if rate is None else {"count": rate.count, "per": rate.period / SECOND}
    return values | {"limit": None if limit is None else limit.most, "rate": pace}
