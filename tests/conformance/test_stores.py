"""Every store that ships passes the suite that ships."""

from __future__ import annotations

import pytest

from duetime.testing.conformance import *  # noqa: F403 - the suite is its names

pytestmark = pytest.mark.covers("same-suite-everywhere")
