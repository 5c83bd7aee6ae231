"""The description of the API: which role each operation needs, how one signs in, and problems in place of FastAPI's own errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from duetime.web.access import Needs
from duetime.web.api import APART, ROUTERS
from duetime.web.problems import PROBLEM_TYPE, ProblemAnswer

_TEXT: Final = """\
Shows and steers a Duetime scheduler. Times are ISO 8601 in UTC, durations seconds; where a duration is asked for, text such as
`1h30m` will do, too. Errors are `application/problem+json` with the sentences of the Python API."""
_VERSION: Final = "1"
_SCHEMAS: Final = "#/components/schemas/{model}"


def described(app: FastAPI) -> Callable[[], dict[str, Any]]:
    """Return what makes the description of an app, once."""

    def describe() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _describe(app)
        return app.openapi_schema

    return describe


OPERATIONS: Final = {
    route.name: route
    for router in (*ROUTERS, *APART)
    for route in router.routes
    if isinstance(route, APIRoute)
}
"""All operations by name, which is their id in the description."""


def needs_of(route: APIRoute) -> Needs | None:
    """Return what an operation needs; `None` for one that is open to all."""
    found = [one.call for one in route.dependant.dependencies if isinstance(one.call, Needs)]
    return found[0] if found else None


def _describe(app: FastAPI) -> dict[str, Any]:
    found = get_openapi(
        title="Duetime", version=_VERSION, openapi_version="3.1.0", description=_TEXT, routes=app.routes
    )
    components = found["components"]
    schemas = components["schemas"]
    problem = ProblemAnswer.model_json_schema(ref_template=_SCHEMAS)
    schemas |= {"ProblemAnswer": problem, **problem.pop("$defs")}
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    components["schemas"] = dict(sorted(schemas.items()))
    components["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer", "description": "A token of `duetime tokens add`."},
        "session": {
            "type": "apiKey",
            "in": "cookie",
            "name": "duetime_session",
            "description": "Set by `POST /api/v1/session`; under HTTPS its name begins with `__Host-`.",
        },
    }
    shared: dict[str, Any] = {}
    for path in found["paths"].values():
        for operation in path.values():
            _describe_operation(operation, OPERATIONS[operation["operationId"]])
            _share_problems(operation["responses"], shared)
    components["responses"] = dict(sorted(shared.items()))
    return cast("dict[str, Any]", _without_titles(found))


def _describe_operation(operation: dict[str, Any], route: APIRoute) -> None:
    """Say what an operation does in a sentence, and who may do it."""
    text = " ".join(operation["description"].split())
    operation["responses"] = dict(sorted(operation["responses"].items()))
    needs = needs_of(route)
    operation["summary"] = text.partition(". ")[0].partition("; ")[0].rstrip(".")
    if needs is None:
        operation["security"] = []
        return
    bound = "; not for users who are bound to queues" if needs.unbound else ""
    operation["description"] = f"{text}\n\nNeeds the role {needs.role}{bound}."
    operation["security"] = [{"token": []}, {"session": []}]


def _share_problems(responses: dict[str, Any], shared: dict[str, Any]) -> None:
    """Say what problems are like in one place for all operations."""
    for status, response in responses.items():
        if PROBLEM_TYPE in response.get("content", {}):
            shared[f"Problem{status}"] = response
            responses[status] = {"$ref": f"#/components/responses/Problem{status}"}


def _without_titles(value: Any) -> Any:
    """Leave out the titles that repeat the names of fields."""
    if isinstance(value, dict):
        said = cast("dict[str, Any]", value)
        return {
            name: _without_titles(one)
            for name, one in said.items()
            if not (
                name == "title" and isinstance(one, str) and "openapi" not in said and "version" not in said
            )
        }
    if isinstance(value, list):
        return list(map(_without_titles, cast("list[Any]", value)))  # type: ignore[redundant-cast]  # pyright wants it
    return value
