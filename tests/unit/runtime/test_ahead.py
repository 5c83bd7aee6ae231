"""When what falls due soon is claimed."""

from __future__ import annotations

from duetime.model.instants import SECOND
from duetime.model.job import Claim
from duetime.runtime.fetcher import Fetcher
from duetime.runtime.slots import Slots
from duetime.stores.base import Demand, NextDue
from tests.unit.runtime.fetching import HANDLER, Busy, OneJob, idle_fetcher
from tests.unit.runtime.kit import claim


class Stream(OneJob):
    """A store whose next jobs always fall due within the window; it takes a while to hand them out."""

    def __init__(self, story: list[str]) -> None:
        super().__init__(story)
        self.fetcher: Fetcher | None = None

    async def claim(self, demand: Demand) -> list[Claim]:
        if not demand.ahead:
            return []
        assert self.fetcher is not None
        # What is held starts meanwhile, and makes room.
        self.fetcher.hold.take_all()
        self._story.append(f"claim {demand.limit}")
        return [claim(f"{len(self._story)} {n}", due_at=SECOND // 2) for n in range(demand.limit)]

    async def next_due(self, queues: object, tasks: object) -> NextDue:
        return (await super().next_due(queues, tasks))._replace(due_at=SECOND // 2)


async def test_more_is_claimed_ahead_as_soon_as_half_is_started_also_if_some_started_while_it_was_asked_for() -> (
    None
):
    store = Stream([])
    fetcher = idle_fetcher(
        store=store, dispatcher=Busy([]), handlers={"task": HANDLER}, slots=Slots(10, {}), budget=10
    )
    store.fetcher = fetcher
    for n in range(6):
        fetcher.hold.add(claim(f"held {n}", due_at=SECOND // 2))
    assert await fetcher.round() == 0, (
        "four were asked for and found, and the six before have started meanwhile"
    )
    assert await fetcher.round() == 0.5
    assert [said for said in store._story if said != "next due"] == ["claim 4", "claim 6"]
