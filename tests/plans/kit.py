"""What the plan tests share: values for every statement that is on somebody's way."""

from __future__ import annotations

import json
from collections.abc import Mapping

DUE = 1_000
"""A moment at which the jobs with a small due time are due, and the others are not."""
LATER = 1_000_000
BATCH = 100
ROWS = 100_000


def job_id(number: int) -> str:
    return f"{number:032}"


def claim_values(*, ahead: int = 0, limit: int = BATCH, floor: int | None = None) -> Mapping[str, object]:
    return {
        "worker": "w",
        "claim_id": "c",
        "queues": json.dumps([["default", limit], ["other", limit]]),
        "limit": limit,
        "tasks": json.dumps([["greet"], ["part"]]),
        "ahead": ahead,
        "unstarted": int(ahead > 0),
        "below_priority": 10,
        "floors": json.dumps([] if floor is None else [["default", 5, floor]]),
        "now": DUE,
    }


def settle_values(count: int = BATCH) -> Mapping[str, object]:
    change = [1, "c", "succeeded", 1, 2, None, 0, 0, 0, None, "null", None, None, None, None]
    return {"rows": json.dumps([[job_id(n), *change] for n in range(1, count + 1)]), "now": DUE}


def succeed_values(count: int = BATCH) -> Mapping[str, object]:
    change, own = [1, 2, "null"], [1, "c", None]
    rows = [[job_id(n), *change, *(own if n % 2 else [])] for n in range(1, count + 1)]
    return {"rows": json.dumps(rows), "fence": 1, "claim_id": "c"}


NEXT_DUE: Mapping[str, object] = {
    "queues": json.dumps([["default"], ["other"]]),
    "tasks": json.dumps([["greet"]]),
    "now": DUE,
}


def pulse_values(task: str = "greet") -> Mapping[str, object]:
    """The values of a heartbeat that looks for everything, jobs of one task among it."""
    return {
        "worker": "w",
        "lease": 1,
        "running": 0,
        "done": 0,
        "failed": 0,
        "loop_lag": 0,
        "last_error": None,
        "paused_at": None,
        "paused_reason": None,
        "queues": json.dumps([["default"], ["other"]]),
        "tasks": json.dumps([[task]]),
        "schedules": 1,
        "orphans": 1,
        "now": DUE,
    }


SURVEY: Mapping[str, object] = {
    "queues": json.dumps([["default"], ["other"]]),
    "tasks": json.dumps([["greet", "", "", -1], ["part", "", "", -1]]),
    "steps": 500,
    "latest": 100,
    "now": DUE,
}
AT_GATES: Mapping[str, object] = {
    "rows": json.dumps([["greet", "greet[key=1]", "default", 5, 2]]),
    "most": 2,
    "worker": "w",
    "now": DUE,
}
IN_QUEUES: Mapping[str, object] = {
    "rows": json.dumps([["default", 2]]),
    "most": 2,
    "tasks": json.dumps([["greet"]]),
    "worker": "w",
    "now": DUE,
}
RUNNING: Mapping[str, object] = {
    "gates": json.dumps([["greet[key=1]", None], ["greet[key=2]", None], ["[schedule:nightly]", "nightly"]]),
    "queues": json.dumps([["default"]]),
    "now": DUE,
}


def find_values(**where: object) -> Mapping[str, object]:
    """The values of a list of jobs: nothing is asked for but what is named."""
    names = ("task", "states", "registry", "queue", "schedule", "kind", "key", "tag", "since", "until")
    return {
        **dict.fromkeys(names),
        "from_id": "",
        "before": "~",
        "limit": 50,
        "newest": 2_000,
        "look_at": 500,
        "now": DUE,
        **where,
    }
