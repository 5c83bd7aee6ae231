"""The description of the API itself."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from duetime.web.access import Viewer
from duetime.web.answers import answer

router = APIRouter(tags=["description"])


@router.get("/openapi.json", response_model=dict[str, Any])
async def get_description(access: Viewer, request: Request) -> Response:
    """Give the OpenAPI description of the API."""
    del access  # Anyone who is known may read it.
    return answer(request.app.openapi())
