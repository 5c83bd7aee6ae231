"""`duetime stats`."""

from __future__ import annotations

import asyncio

import pytest

from duetime import Scheduler
from duetime.cli.stats import sparkline
from duetime.model.stored.audit import deployment
from tests.acceptance.kit import URL, duetime, from_json
from tests.unit.scheduler.test_stats import count

pytestmark = pytest.mark.usefixtures("folder")


@pytest.fixture
def counted(folder: object) -> None:
    async def fill() -> None:
        async with Scheduler(URL[1]) as scheduler:
            await scheduler.store.enqueue([], entries=[deployment("1.4.2", worker="w")])
            await count(scheduler, "succeeded", "succeeded", "failed", schedule="nightly")

    asyncio.run(fill())


@pytest.mark.usefixtures("counted")
@pytest.mark.parametrize(
    ("named", "head"),
    [
        ([], "everything, from "),
        (["--task", "greet"], "task greet, from "),
        (["--queue", "mail"], "queue mail, from "),
        (["--schedule", "nightly"], "schedule nightly, from "),
    ],
    ids=str,
)
def test_counts_and_percentiles_are_told_with_bars(named: list[str], head: str) -> None:
    lines = duetime("stats", *named, "--since", "3h", "--step", "1h", *URL).stdout.splitlines()
    assert lines[0].startswith(head)
    assert lines[0].endswith("by 1 hour")
    assert [line.split()[:2] for line in lines[1:3]] == [["failed", "1"], ["succeeded", "2"]]
    assert lines[1].endswith("█")
    table = {line.split()[0]: line.split()[1:] for line in lines[3:] if not line.startswith("0s")}
    assert table["SECONDS"][:5] == ["MEAN", "P50", "P90", "P95", "P99"]
    assert table["run"][0] == "2"
    assert table["run"][-1].endswith("█")
    assert any(line.endswith("deploy 1.4.2") for line in lines)


@pytest.mark.usefixtures("counted")
def test_the_same_as_json() -> None:
    found = from_json("stats", "--task", "greet", "--since", "1h", "--step", "30m", *URL)
    assert found["total"]["outcomes"] == {"failed": 1, "succeeded": 2}
    assert sum(point["outcomes"].get("succeeded", 0) for point in found["points"]) == 2
    assert found["total"]["run"]["count"] == 3
    assert [mark["detail"] for mark in found["marks"]] == [{"release": "1.4.2"}]


def test_where_nothing_has_ended_a_line_says_so() -> None:
    duetime("migrate", *URL)
    lines = duetime("stats", "--task", "greet", *URL).stdout.splitlines()
    assert lines[1:] == ["nothing has ended"]


@pytest.mark.usefixtures("counted")
def test_failures_that_are_new_since_a_release() -> None:
    assert duetime("stats", "--new-since", "1.4.2", *URL).stdout == "no new failures\n"
    unknown = duetime("stats", "--new-since", "2", *URL)
    assert unknown.exit_code == 2
    assert "no worker of a release '2' has been seen" in unknown.output


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (["--task", "a", "--queue", "b"], "name one thing, not --task and --queue"),
        (["--since", "3d", "--step", "1m"], "finer than what is kept"),
        (["--since", "2999-01-01T00:00:00Z"], "lies in the future"),
    ],
)
def test_what_cannot_be_told_is_refused(asked: list[str], says: str) -> None:
    duetime("migrate", *URL)
    result = duetime("stats", *asked, *URL)
    assert result.exit_code == 2
    assert says in result.output


def test_bars_are_as_high_as_their_values_and_nothing_is_a_space() -> None:
    assert sparkline([0, 1, 50, 100]) == " ▁▅█"
    assert sparkline([0, 0]) == "  "
    assert sparkline([]) == ""
