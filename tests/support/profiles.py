"""How hard the property tests try: `--hypothesis-profile=thorough` for a long look."""

from __future__ import annotations

import os

from hypothesis import settings

# In CI the same examples every time, so that a red run can be run again; deadlines measure the machine.
settings.register_profile(
    "usual",
    deadline=None,
    stateful_step_count=30,
    max_examples=50,
    derandomize=bool(os.environ.get("CI")),
    database=None,
)
settings.register_profile("thorough", deadline=None, stateful_step_count=60, max_examples=500, database=None)
settings.load_profile("usual")


def tries(times: float) -> settings:
    """Try so many times as often as the profile in use says."""
    return settings(max_examples=round(times * settings().max_examples))
