"""What `doctor` looks for on every SQL database: tables that fit, and a server that takes changes."""

from __future__ import annotations

import random
from typing import Final

from duetime.errors import StoreError
from duetime.model.ids import new_job_id
from duetime.stores.base import Check, SchemaStatus
from duetime.stores.sql import rows
from duetime.stores.sql.driver import Driver, Query, Script
from duetime.stores.sql.loader import Statements

_TRIED: Final = 64 * 1024
"""How much is written to see that there is room, in characters; more than what is left of a page by chance."""


def fits(status: SchemaStatus, *, url: str) -> Check:
    """Tell whether the tables are those that this code needs."""
    ok = status.found == status.wanted
    return Check(
        name="schema",
        ok=ok,
        detail=f"tables are version {status.found}, this code needs {status.wanted}",
        fix=None if ok else f"duetime migrate --url {url}",
    )


async def try_to_write(driver: Driver, sql: Statements) -> Check:
    """Tell whether a change can be made: a full disk, a right that is missing or a lock show only then."""
    try:
        await driver.write(lambda: _write_and_remove(sql))
    except StoreError as error:
        return Check.refused("writes", error)
    return Check(name="writes", ok=True, detail="a row was written and removed")


def _write_and_remove(sql: Statements) -> Script[None]:
    """Keep a try of a job that there is not, and forget it, before anybody can see it."""
    job_id, text = new_job_id(), random.randbytes(_TRIED // 2).hex()
    kept = (job_id, 1, "", "", 0, None, None, "doctor", None, text)
    yield Query(sql.add_attempts, {"rows": rows.batch([kept])})
    yield Query(sql.prune_attempts, {"rows": rows.batch([(job_id,)])})
