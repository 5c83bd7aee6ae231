"""PostgreSQL, through asyncpg."""
