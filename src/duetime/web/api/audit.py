"""The audit trail: who did what."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from duetime.scheduler.audit import AuditRecord
from duetime.web.access import UnboundViewer
from duetime.web.answers import NOT_GIVEN, Body, answer, model_of, page_of
from duetime.web.api.values import Cursor, Limit
from duetime.web.cursors import seal, unseal

router = APIRouter(prefix="/audit", tags=["audit"])


class AuditQuery(Body):
    """Which page, of what was done to what; at most one thing is named."""

    schedule: str = NOT_GIVEN
    job: str = NOT_GIVEN
    queue: str = NOT_GIVEN
    worker: str = NOT_GIVEN
    limit: Limit = 50
    cursor: Cursor = NOT_GIVEN


@router.get("", response_model=page_of(model_of(AuditRecord, "AuditEntry")))
async def list_audit(access: UnboundViewer, query: Annotated[AuditQuery, Query()]) -> Response:
    """List what people and code have done, newest first, to one thing if one is named."""
    named = {name: value for name, value in query.given().items() if name not in {"limit", "cursor"}}
    cursor = unseal(query.cursor, "audit", named)
    found = await access.scheduler.audit.list(**named, limit=query.limit, cursor=cursor)
    return answer({"items": found, "next": seal(found.cursor, "audit", named)})
