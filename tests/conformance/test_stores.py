"""Every store that ships passes the suite that ships."""

from __future__ import annotations

from duetime.testing.conformance import *  # noqa: F403 - the suite is its names
