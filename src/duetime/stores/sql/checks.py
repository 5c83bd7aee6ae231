"""What `doctor` looks for on SQL databases: tables that fit, and a server that takes changes and is set up safely."""

from __future__ import annotations

import random
from typing import Final

from duetime.errors import StoreError
from duetime.model.ids import new_job_id
from duetime.stores.base import DoctorCheck, SchemaStatus
from duetime.stores.sql.driver import Driver, Query, Script
from duetime.stores.sql.statements.loader import Statements
from duetime.stores.sql.statements.rows import encode_batch

_WRITTEN_ON_TRIAL: Final = 64 * 1024
"""How much is written to see that there is room, in characters; more than what is left of a page by chance."""


def check_schema(status: SchemaStatus, *, url: str) -> DoctorCheck:
    """Tell whether the tables are those that this code needs."""
    detail = f"tables are version {status.found}, this code needs {status.wanted}"
    return DoctorCheck.of("schema", status.found == status.wanted, detail, f"duetime migrate --url {url}")


async def check_writes(driver: Driver, sql: Statements) -> DoctorCheck:
    """Tell whether a change can be made: a full disk, a right that is missing or a lock show only then."""
    try:
        await driver.write(lambda: _write_and_remove(sql))
    except StoreError as error:
        return DoctorCheck.refused("writes", error)
    return DoctorCheck.of("writes", ok=True, detail="a row was written and removed")


def _write_and_remove(sql: Statements) -> Script[None]:
    """Keep a try of a job that there is not, and forget it, before anyone can see it."""
    job_id, text = new_job_id(), random.randbytes(_WRITTEN_ON_TRIAL // 2).hex()
    kept = (job_id, 1, "", 0, None, None, "doctor", None, text)
    yield Query(sql.add_attempts, {"rows": encode_batch([kept])})
    yield Query(sql.delete_attempts, {"rows": encode_batch([(job_id,)])})
