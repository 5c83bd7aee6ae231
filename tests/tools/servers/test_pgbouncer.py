from __future__ import annotations

import asyncpg


async def test_sessions_do_not_keep_their_connection_between_transactions(pgbouncer_url: str) -> None:
    """Two clients in turn are served by one PostgreSQL session, which only transaction mode allows."""
    first = await asyncpg.connect(pgbouncer_url, statement_cache_size=0)
    second = await asyncpg.connect(pgbouncer_url, statement_cache_size=0)
    try:
        served_first = await first.fetchval("SELECT pg_backend_pid()")
        served_second = await second.fetchval("SELECT pg_backend_pid()")
    finally:
        await first.close()
        await second.close()
    assert served_first == served_second
