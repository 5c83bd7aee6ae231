"""The description of the API: as it is kept in the repository, and true."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pytest
from jsonschema_rs import Draft202012Validator

from duetime import Scheduler
from duetime.web.api.workers import EXAMPLE_WORKER
from duetime.web.openapi import OPERATIONS, needs_of
from tests.web.examples import ENDED_FIRST, Example, examples, seed
from tests.web.kit import TokenApi
from tests.web.streams import reading
from tools import openapi

DESCRIPTION: Final = openapi.description()
EXAMPLES: Final = list(examples(DESCRIPTION))


def test_the_description_in_the_repository_is_that_of_the_code() -> None:
    assert openapi.FILE.read_text("utf-8") == openapi.file_text(DESCRIPTION), "run `make docs`"
    assert openapi.PAGE.read_text("utf-8") == openapi.page(DESCRIPTION), "run `make docs`"


def test_each_operation_is_described_with_its_role() -> None:
    assert {example.name for example in EXAMPLES} == OPERATIONS.keys()
    for operations in DESCRIPTION["paths"].values():
        for operation in operations.values():
            needs = needs_of(OPERATIONS[operation["operationId"]])
            assert operation["security"] == ([] if needs is None else [{"token": []}, {"session": []}])
            assert needs is None or f"Needs the role {needs.role}" in operation["description"]


@pytest.mark.parametrize(
    "example", [one for one in EXAMPLES if one.name != "follow_events"], ids=lambda example: example.name
)
async def test_each_operation_succeeds_with_its_examples(
    token_api: TokenApi, scheduler: Scheduler, example: Example
) -> None:
    await seed(scheduler, ended=example.name in ENDED_FIRST)
    async with scheduler.worker() as worker:
        path = example.path.replace(EXAMPLE_WORKER, worker.id)
        response = await token_api.request(example.method, f"http://localhost{path}", json=example.body)
        assert response.is_success or response.status_code == 303, response.text
        said = example.answers[str(response.status_code)]
        content = said.get("content", {})
        kind = response.headers.get("content-type", "").partition(";")[0]
        assert kind in (content or {""}), kind
        if kind == "application/json":
            _check(response.json(), content[kind]["schema"])


def _check(value: Any, schema: Mapping[str, Any]) -> None:
    whole = {**schema, "components": DESCRIPTION["components"]}
    problems = [
        f"{error.instance_path}: {error.message}" for error in Draft202012Validator(whole).iter_errors(value)
    ]
    assert problems == []


async def test_the_stream_succeeds_as_described(token_api: TokenApi) -> None:
    (example,) = [one for one in EXAMPLES if one.name == "follow_events"]
    own = {"authorization": token_api.headers["authorization"]}
    async with reading(token_api.app, None, headers=own) as stream:
        kind = stream.headers["content-type"].partition(";")[0]
        assert example.path == "/api/v1/events"
        assert kind in example.answers[str(stream.status)]["content"]
