"""Values that requests bring, as people write them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final, TypeAlias

from fastapi import Path, Query
from pydantic import Field

from duetime.errors import InvalidTime

EXAMPLE_JOB: Final = "0198c5a07d3e7c429a576a1f6d4f2b10"
EXAMPLE_TOKEN: Final = "dt_an_example_of_a_token"  # noqa: S105 - it opens nothing
EXAMPLE_CODE: Final = "dt_an_example_of_a_link"
EXAMPLE_MOMENT: Final = "2030-01-31T09:00:00+01:00"

JobIdPath: TypeAlias = Annotated[
    str, Path(alias="job_id", description="The id of a job.", examples=[EXAMPLE_JOB], max_length=64)
]
Duration: TypeAlias = Annotated[float | str, Field(description="Seconds, or text such as `1h30m`.")]
Moment: TypeAlias = Annotated[str, Field(description="A point in time in ISO 8601, with its zone.")]
Since: TypeAlias = Annotated[
    str,
    Field(description="A point in time in ISO 8601 with its zone, or how long ago: `2h`."),
]
Limit: TypeAlias = Annotated[int, Query(ge=1, le=200, description="At most this many.")]
Cursor: TypeAlias = Annotated[str, Query(description="The `next` of the page before.", max_length=2_000)]
Reason: TypeAlias = Annotated[str, Field(description="Kept with it.", max_length=1_000)]


def moment(text: str, *, what: str) -> datetime:
    """Read a point in time; whether it has a zone is checked where it is used."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise InvalidTime(f"{what} {text[:40]!r} is not a point in time; write {EXAMPLE_MOMENT}") from None


def moment_or_duration(text: str) -> datetime | str:
    """Read a point in time; what is none is taken for a duration."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return text
