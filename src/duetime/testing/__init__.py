"""What helps to test code that uses Duetime, and stores that want to serve it.

`duetime.testing.conformance` needs pytest and Hypothesis, and `duetime.testing.plugin` pytest; what is imported
here needs neither. `duetime.testing.blocking` has the same verbs for tests without an event loop.
"""

from __future__ import annotations

from duetime.testing.clock import FakeClock
from duetime.testing.draining import drain
from duetime.testing.enqueued import assert_enqueued, refute_enqueued
from duetime.testing.inlining import inline
from duetime.testing.performing import perform
from duetime.testing.sandboxes import sandbox

__all__ = ["FakeClock", "assert_enqueued", "drain", "inline", "perform", "refute_enqueued", "sandbox"]
