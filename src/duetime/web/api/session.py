"""Who one is, and sessions: begun with a token that is pasted or a link that is used once, and ended."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from fastapi import APIRouter, Query, Request
from pydantic import Field
from starlette.responses import RedirectResponse, Response

from duetime.model.stored.credentials import Role
from duetime.web.access import Viewer
from duetime.web.answers import Body, answer
from duetime.web.api.values import EXAMPLE_CODE, EXAMPLE_TOKEN
from duetime.web.problems import Problem, documented
from duetime.web.sign_in import SignIn
from duetime.web.users import User

router = APIRouter(prefix="/session", tags=["session"])
entrance = APIRouter(tags=["session"])

PUBLIC = (("POST", "/api/v1/session"), ("GET", "/sign-in"))
HARMLESS = (("DELETE", "/api/v1/session"),)


class SessionBody(Body):
    """What tells who it is."""

    token: str
    """A token, or the code of a link."""

    EXAMPLE: ClassVar = {"token": EXAMPLE_TOKEN}


class UserAnswer(Body):
    """Who asks."""

    name: str
    role: Role
    queues: list[str] | None
    """The queues that may be seen and touched; null for all."""


class SignInQuery(Body):
    """The code of a link."""

    code: str = Field(examples=[EXAMPLE_CODE])


@router.get("", response_model=UserAnswer)
async def get_session(access: Viewer) -> Response:
    """Tell who asks."""
    return answer(_user_answer(access.user))


@router.post("", status_code=201, response_model=UserAnswer, responses=documented(404, 413, 415, 429))
async def begin_session(request: Request, body: SessionBody) -> Response:
    """Sign in with a token: the answer sets a cookie, which is good for 12 hours after its last use, and a week at most."""
    sign_in = await _sign_in(request)
    new, user = await sign_in.begin(body.token, request)
    response = answer(_user_answer(user), 201)
    _set_cookie(response, request, sign_in, new.secret)
    return response


@router.delete("", status_code=204, responses=documented(404))
async def end_session(access: Viewer, request: Request) -> Response:
    """Sign out: the session ends in the store."""
    del access  # Anyone who is signed in may.
    sign_in = await _sign_in(request)
    await sign_in.end(request)
    response = Response(status_code=204)
    response.delete_cookie(sign_in.cookie_name(request), path=_cookie_path(request))
    return response


@entrance.get("/sign-in", status_code=303, response_class=Response, responses=documented(404, 429))
async def follow_link(request: Request, query: Annotated[SignInQuery, Query()]) -> Response:
    """Sign in by a link, which is good once, and go on to what it leads to."""
    sign_in = await _sign_in(request)
    new, _ = await sign_in.begin(query.code, request)
    response = RedirectResponse(f"{request.scope.get('root_path', '')}{request.app.state.home}", 303)
    _set_cookie(response, request, sign_in, new.secret)
    return response


def _user_answer(user: User) -> dict[str, Any]:
    return {
        "name": user.name,
        "role": user.role,
        "queues": None if user.queues is None else sorted(user.queues),
    }


async def _sign_in(request: Request) -> SignIn:
    """Return what knows sessions; raise `Problem` where the application itself tells who asks."""
    await request.app.state.reach()
    found: SignIn | None = request.app.state.sign_in
    if found is None:
        raise Problem(404, "No sessions here", "the application that this API is a part of tells who asks")
    return found


def _set_cookie(response: Response, request: Request, sign_in: SignIn, secret: str) -> None:
    secure = request.url.scheme == "https"
    response.set_cookie(
        sign_in.cookie_name(request),
        secret,
        path=_cookie_path(request),
        secure=secure,
        httponly=True,
        samesite="strict",
    )


def _cookie_path(request: Request) -> str:
    # The prefix __Host- wants the whole host.
    return "/" if request.url.scheme == "https" else request.scope.get("root_path", "") or "/"
