from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {"asyncpg", "fastapi", "pydantic", "sqlite3", "starlette", "uvicorn"}


@pytest.mark.covers("import-loads-drivers")
def test_importing_duetime_loads_no_driver_and_no_web_code() -> None:
    loaded = subprocess.run(
        [sys.executable, "-c", "import duetime, sys; print(*sys.modules)"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert HEAVY.isdisjoint(loaded.stdout.split())
