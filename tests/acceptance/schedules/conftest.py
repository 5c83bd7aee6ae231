from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def shop(folder: Path, store_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The application, on each kind of store."""
    source = (folder / "shop.py").read_text()
    (folder / "shop.py").write_text(source.replace('Scheduler("sqlite:///jobs.db")', "Scheduler()"))
    monkeypatch.setenv("DUETIME_URL", store_url)
    yield
    assert not (folder / "jobs.db").exists()
