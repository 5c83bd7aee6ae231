"""The marathon of the benchmarks runs its whole course, at a length that says nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import children
from benchmarks.marathon.run import DATABASES, drained, fill, room_of

JOBS = 300


@pytest.mark.timeout(180)
def test_all_jobs_are_drained_and_the_room_they_take_is_known(sql_url: str, tmp_path: Path) -> None:
    engine = "sqlite" if sql_url.startswith("sqlite") else "postgres"
    with DATABASES[engine]() as database:
        children.run(fill, url=database.url, jobs=JOBS)
        samples = drained(database, tmp_path / "tally", JOBS, 0.001)
        assert all(sample.memory > 1 and sample.table > 0 for sample in samples)
        room = room_of(database, tmp_path / "encore", JOBS, 0.001)
        assert 0 < room.fresh <= room.end * 1.1
        assert room.encore_fresh == pytest.approx(room.fresh / 10)
        assert (database.written() is None) == (engine == "sqlite")
