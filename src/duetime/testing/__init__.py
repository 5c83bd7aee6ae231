"""What helps to test code that uses Duetime, and stores that want to serve it.

`duetime.testing.conformance` needs pytest and Hypothesis; what is imported here needs neither.
"""

from __future__ import annotations

from duetime.testing.clock import FakeClock

__all__ = ["FakeClock"]
