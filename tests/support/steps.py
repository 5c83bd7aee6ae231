"""How much work something is, told without a clock."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType


def steps_of(work: Callable[[], object]) -> int:
    """How many functions, of Python or of C, are called."""
    steps = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal steps
        steps += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return steps
