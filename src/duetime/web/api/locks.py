"""Locks: who holds which, and released where they were left behind."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Path
from starlette.responses import Response

from duetime.web.access import UnboundAdmin, UnboundViewer
from duetime.web.answers import Body, answer
from duetime.web.problems import Problem, documented

router = APIRouter(prefix="/locks", tags=["locks"])


class Lock(Body):
    """A lock that is held."""

    name: str
    holder: str
    fence: int
    """Rises with every owner."""
    since: datetime
    deadline: datetime


class LockListAnswer(Body):
    """Who holds which lock."""

    items: list[Lock]


@router.get("", response_model=LockListAnswer)
async def list_locks(access: UnboundViewer) -> Response:
    """List the locks that are held."""
    names = Lock.model_fields  # Not the token of the owner, which is a secret.
    found = await access.scheduler.locks.list()
    return answer({"items": [{name: getattr(lock, name) for name in names} for lock in found]})


@router.delete("/{name}", status_code=204, responses=documented(404))
async def release_lock(
    access: UnboundAdmin, name: Annotated[str, Path(description="The name of a lock.", examples=["reindex"])]
) -> Response:
    """Release a lock, which its holder then loses."""
    if not await access.scheduler.locks.release(name):
        raise Problem(404, "Lock not found", "no one holds a lock of this name")
    return Response(status_code=204)
