"""Takes the pace of the machine out of tests that count what is done."""

from __future__ import annotations

import pytest

from duetime.model.instants import SECOND
from duetime.runtime import firing


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no round of firing be cut into pieces because it takes long."""
    monkeypatch.setattr(firing, "_BREATH", 3600 * SECOND)
