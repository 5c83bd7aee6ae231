"""Tables that an older version has made serve this one."""

from __future__ import annotations

import pytest

from duetime.stores.open import open_store
from duetime.stores.sql.mariadb.dialect import MARIADB
from duetime.stores.sql.schema import migrations
from tests.support.mariadb import connected, fetch

pytestmark = pytest.mark.no_tables


async def test_tables_of_the_first_version_get_room_for_the_note_of_a_move(mariadb_url: str) -> None:
    async with connected(mariadb_url) as connection:
        for statement in migrations(MARIADB, "duetime")[0].statements():
            await fetch(connection, statement)
    store = open_store(mariadb_url)
    await store.open()
    await store.set_moved(note := "here was copied " * 20)
    assert (await store.schema_status()).moved == note
    await store.close()
