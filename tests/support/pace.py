"""Takes the pace of the machine out of tests that count what is done."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import pytest

from duetime.model.time import SECOND
from duetime.runtime.upkeep import firing


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no round of firing be cut into pieces because it takes long."""
    monkeypatch.setattr(firing, "_YIELD_AFTER", 3600 * SECOND)


@contextmanager
def one_moment() -> Iterator[None]:
    """Let no time pass in the event loop."""
    loop = asyncio.get_running_loop()
    with patch.object(loop, "time", return_value=loop.time()):
        yield
