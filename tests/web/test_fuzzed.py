"""The whole API under requests made at random from its description: no answer but those that are described."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest
import schemathesis
import uvicorn
from hypothesis import HealthCheck, given, settings

from duetime.web import make_api
from tests.web.examples import seed
from tests.web.kit import make_scheduler
from tools import openapi

ROUNDS: Final = settings(
    max_examples=10, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None
)
# Of what fits the description much is refused all the same: a name that no task has, a time that has passed.
REFUSED: Final = [schemathesis.checks.positive_data_acceptance]


class Served(threading.Thread):
    """An API with what the examples name, but for a worker, served by itself."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.scheduler = make_scheduler(url)
        self.server = uvicorn.Server(uvicorn.Config(make_api(self.scheduler), port=0, log_level="warning"))
        self.ready = threading.Event()
        self.address = self.token = ""

    def run(self) -> None:
        """Serve until the server is told to end."""
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        async with self.scheduler:
            await seed(self.scheduler)
            self.token = (await self.scheduler.tokens.add("fuzzer", role="admin")).secret
            sockets = [self.server.config.bind_socket()]
            self.address = f"http://127.0.0.1:{sockets[0].getsockname()[1]}"
            self.ready.set()
            await self.server.serve(sockets)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Serve while the block runs."""
        self.start()
        self.ready.wait()
        try:
            yield
        finally:
            self.server.should_exit = True
            self.join()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_no_request_is_answered_otherwise_than_described(request: pytest.FixtureRequest, kind: str) -> None:
    # What has no end has tests of its own.
    schema = schemathesis.openapi.from_dict(openapi.description()).exclude(path="/api/v1/events")
    problems: list[str] = []
    served = Served(request.getfixturevalue(f"{kind}_url"))
    with served.running():

        def check(case: Any) -> None:
            headers = {"Authorization": f"Bearer {served.token}"}
            case.call_and_validate(
                base_url=served.address, headers=headers, excluded_checks=REFUSED, timeout=30
            )

        for found in schema.get_all_operations():
            operation: Any = found.ok()  # type: ignore[union-attr]
            try:
                ROUNDS(given(case=operation.as_strategy())(check))()
            except (Exception, BaseExceptionGroup) as error:  # noqa: BLE001 - all of them are to be seen at once
                problems.append(f"{operation.label}: {error}")
    assert not problems, "\n\n".join(problems)
