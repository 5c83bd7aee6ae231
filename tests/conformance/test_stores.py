"""Every store that ships passes the suite that ships."""

from __future__ import annotations

import pytest
from hypothesis import settings

from duetime.testing.conformance import *  # noqa: F403 - the suite is its names

pytestmark = pytest.mark.covers("same-suite-everywhere")


@pytest.fixture  # type: ignore[no-redef]
def lives(store_url: str) -> settings:
    """Fewer lives where each begins with a round of CREATE TABLE on a server."""
    fewest, one_in = (6, 15) if store_url.startswith("postgresql:") else (20, 5)
    return settings(max_examples=max(fewest, settings().max_examples // one_in))
