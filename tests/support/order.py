"""Tests that may take long come first, so that at the end no process waits for one that began late."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put those that ask for more time than others first, and leave the rest in order."""
    items.sort(key=_time_asked_for, reverse=True)


def _time_asked_for(item: pytest.Item) -> float:
    mark = item.get_closest_marker("timeout")
    return float(mark.args[0]) if mark else 0
