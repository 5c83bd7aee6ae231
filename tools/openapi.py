"""Write `docs/reference/openapi.json` and the page `docs/reference/http-api.md` from the routes of the API."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from duetime import Scheduler
from duetime.web.app import make_routes

REFERENCE = Path(__file__).resolve().parents[1] / "docs/reference"
FILE = REFERENCE / "openapi.json"
PAGE = REFERENCE / "http-api.md"
HEADER = """\
# HTTP API

<!-- Written by `make docs` from the routes in src/duetime/web/api; do not edit. -->

What `scheduler.api()` serves, below the path where it is mounted. [How to use it](../how-to/http-api.md) shows it at work; the
whole description is in [openapi.json](openapi.json) (OpenAPI 3.1), and each process serves its own as `/api/v1/openapi.json`.
"""


def description() -> dict[str, Any]:
    """Return the description of the API."""
    return make_routes(Scheduler("sqlite:///any.db")).openapi()


def file_text(found: Mapping[str, Any]) -> str:
    """Return the text of the file."""
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def page(found: Mapping[str, Any]) -> str:
    """Return the text of the page."""
    return "\n".join(_lines(found))


def _lines(found: Mapping[str, Any]) -> Iterator[str]:
    yield HEADER.rstrip()
    tag = ""
    for path, operations in found["paths"].items():
        for method, operation in operations.items():
            if operation["tags"][0] != tag:
                tag = operation["tags"][0]
                yield from ("", f"## {tag.capitalize()}")
            yield from (
                "",
                f"### `{method.upper()} {path}`",
                "",
                operation["description"].replace("\n\n", " "),
            )
            yield from _parts(operation, found["components"]["schemas"])
    yield ""


def _parts(operation: Mapping[str, Any], schemas: Mapping[str, Any]) -> Iterator[str]:
    """Yield what an operation takes and answers."""
    query = [one["name"] for one in operation.get("parameters", ()) if one["in"] == "query"]
    if query:
        yield from ("", f"Query: {_names(query)}.")
    if (body := operation.get("requestBody")) is not None:
        name = str(body["content"]["application/json"]["schema"].get("$ref", "")).rpartition("/")[2]
        fields, needed = schemas[name]["properties"], schemas[name].get("required", ())
        said = ", ".join(f"`{field}`{'' if field in needed else ' (optional)'}" for field in fields)
        yield from ("", f"Body: {said}.")
    yield from ("", f"Answers: {_names(operation['responses'])}.")


def _names(names: Any) -> str:
    return ", ".join(f"`{name}`" for name in names)


if __name__ == "__main__":
    written = description()
    FILE.write_text(file_text(written), encoding="utf-8")
    PAGE.write_text(page(written), encoding="utf-8")
