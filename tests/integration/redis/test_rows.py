"""How rows are kept in the server."""

from __future__ import annotations

from typing import Any

from duetime.model.ids import new_token
from duetime.stores.base import Store
from duetime.testing import FakeClock
from duetime.testing.conformance.kit import finish, hire, job, take_one


async def test_a_plain_job_stays_in_the_small_form_of_a_row(
    store: Store, client: Any, clock: FakeClock
) -> None:
    worker = new_token()
    await hire(store, worker)
    (job_id,) = await store.enqueue([job()])
    await finish(store, await take_one(store, worker), now=clock.now())
    assert await client.object("ENCODING", f"{{duetime}}:job:{job_id}") == b"listpack"
