"""What the tests of `duetime schedules` do again and again."""

from __future__ import annotations

from typing import Any

from click.testing import Result

from tests.acceptance.kit import duetime, from_json


def put(name: str = "nightly", *arguments: str) -> Result:
    """Put a schedule of the application, of a nightly greeting unless told."""
    given = arguments or ("shop.greet", "name=ann", "--cron", "0 3 * * *", "--tz", "Europe/Riga")
    return duetime("schedules", "put", "shop:scheduler", name, *given)


def names() -> list[str]:
    """Return the names of all schedules."""
    return [schedule["name"] for schedule in from_json("schedules", "list")]


def shown(name: str = "nightly") -> Any:
    """Return all that is told of a schedule."""
    return from_json("schedules", "show", name)
