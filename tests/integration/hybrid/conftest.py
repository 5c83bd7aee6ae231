from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.hybrid.kit import Split
from tests.support.stores import hybrid_of


@pytest.fixture
def files_url(tmp_path: Path) -> str:
    """The address of two SQLite files that make one store."""
    return hybrid_of(f"sqlite:///{tmp_path / 'near.db'}", f"sqlite:///{tmp_path / 'far.db'}")


@pytest.fixture
def split(files_url: str) -> Split:
    """An application on it."""
    return Split(files_url)
