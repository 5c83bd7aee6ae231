"""Errors as answers: RFC 9457 problems with the sentences of the Python API."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import Response

from duetime import errors

PROBLEM_TYPE: Final = "application/problem+json"
_RETRY_AFTER: Final = {"Retry-After": "2"}
_STATUSES: Final[tuple[tuple[type[Exception], int], ...]] = (
    # The first that fits counts.
    (errors.JobNotFound, 404),
    (errors.ScheduleNotFound, 404),
    (errors.WorkerNotFound, 404),
    (errors.TokenNotFound, 404),
    (errors.UnknownTask, 422),
    (errors.PayloadTooLarge, 413),
    (errors.InvalidValue, 422),
    (errors.KeyTaken, 409),
    (errors.JobActive, 409),
    (errors.JobEnded, 409),
    (errors.NothingToSkip, 409),
    (errors.JobChanged, 412),
    (errors.ScheduleChanged, 412),
    (errors.WorkerGone, 409),
    (errors.StoreError, 503),
    (errors.NotOpen, 503),
    (TimeoutError, 504),
)


class FieldProblem(BaseModel):
    """What is wrong with one value."""

    pointer: str
    """Where it is: `/delay` in the body, or the name of a parameter."""
    detail: str


class ProblemAnswer(BaseModel):
    """What went wrong (RFC 9457)."""

    type: str
    """`urn:duetime:` and the name of the Python error, or `about:blank`."""
    title: str
    status: int
    detail: str
    errors: list[FieldProblem] | None = None
    """Where a request has several values that do not fit, each of them."""


class Problem(HTTPException):
    """Ends a request with an answer that says what is wrong."""

    def __init__(
        self,
        status: int,
        title: str,
        detail: str,
        *,
        kind: str = "about:blank",
        headers: Mapping[str, str] | None = None,
        fields: Sequence[Mapping[str, str]] = (),
    ) -> None:
        super().__init__(status, detail, headers)
        self.title = title
        self.kind = kind
        self.fields = fields

    def response(self) -> Response:
        """Return it as an answer."""
        said: dict[str, Any] = {
            "type": self.kind,
            "title": self.title,
            "status": self.status_code,
            "detail": self.detail,
        }
        if self.fields:
            said["errors"] = self.fields
        return Response(
            msgspec.json.encode(said), self.status_code, headers=self.headers, media_type=PROBLEM_TYPE
        )


def problem_of(error: Exception) -> Problem | None:
    """Return the answer to an error that is the caller's, or the database's; `None` for one that is ours."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, HTTPException):
        return Problem(error.status_code, _HTTP_TITLES.get(error.status_code, "Refused"), str(error.detail),
                       headers=error.headers)  # fmt: skip
    if isinstance(error, RequestValidationError):
        return _unfit_values(error)
    status = next((status for kind, status in _STATUSES if isinstance(error, kind)), None)
    if status is None:
        return None
    kind = type(error).__name__
    headers = _RETRY_AFTER if isinstance(error, errors.StoreUnavailable) else {}
    return Problem(status, _in_words(kind), str(error) or kind, kind=f"urn:duetime:{kind}", headers=headers)


async def answer_error(_: Request, error: Exception) -> Response:
    """Answer an error; one of ours says nothing of what it is: that is for the log."""
    return (problem_of(error) or OURS).response()


_HTTP_TITLES: Final = {400: "Unreadable", 404: "Not found", 405: "Method not allowed"}


def _unfit_values(error: RequestValidationError) -> Problem:
    """Name each value that does not fit, without repeating it: it may be secret."""
    fields = [_field(one) for one in error.errors()]
    first = fields[0]
    more = f"; and {len(fields) - 1} more" if len(fields) > 1 else ""
    return Problem(
        422,
        "Invalid value",
        f"{first['pointer']}: {first['detail']}{more}".removeprefix(": "),
        kind="urn:duetime:InvalidValue",
        fields=fields,
    )


def _field(one: Mapping[str, Any]) -> dict[str, str]:
    source, *path = one["loc"]
    if one["type"] == "json_invalid":
        return {"pointer": "", "detail": "the body is not JSON"}
    pointer = "".join(f"/{part}" for part in path) if source == "body" else "/".join(map(str, path))
    detail = "unknown field" if one["type"] == "extra_forbidden" else str(one["msg"])
    return {"pointer": pointer, "detail": detail}


def _in_words(name: str) -> str:
    """Write the name of an error in words: `Job not found`."""
    return " ".join(re.findall(r"[A-Z][a-z]*", name)).capitalize()


OURS: Final = Problem(500, "Internal error", "something went wrong here; the log of the server says what")


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return what OpenAPI says about answers with these codes."""
    texts = {
        400: "The request cannot be read.",
        401: "No one is signed in, or the token is not valid.",
        403: "The role, or the queues that the token is for, do not include this.",
        404: "There is no such thing, or not in the queues that the token is for.",
        409: "It cannot be done as things stand.",
        412: "It has been changed since it was read.",
        413: "The body or the arguments are too large.",
        415: "The body is not JSON.",
        421: "The API does not answer to this host.",
        422: "A value does not fit; the answer names it.",
        429: "Too many attempts; Retry-After says when to try again.",
        503: "The database cannot be reached or used; Retry-After, if given, says when to try again.",
        504: "A worker has not answered in time.",
    }
    content = {PROBLEM_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemAnswer"}}}
    return {status: {"description": texts[status], "content": content} for status in statuses}


EVERYWHERE: Final = documented(400, 401, 403, 421, 422, 503)
"""What every operation may answer."""
