"""When somebody comes to a store that had nothing to do."""

from __future__ import annotations

import asyncio
import random


async def odd_moment() -> None:
    """Wait until processors, caches and the disk have turned to other things, for a time that fits no rhythm."""
    await asyncio.sleep(random.uniform(0.01, 0.03))
