"""Removes old records on request."""

from __future__ import annotations

from collections.abc import Callable

from duetime.model import durations
from duetime.model.durations import Duration
from duetime.model.retention import DEFAULT_KEEP_PER_SCHEDULE, Retention, check_keep_per_schedule
from duetime.stores.base import Pruned, Store


class Pruning:
    """The verb `scheduler.prune`; workers do the same by themselves, now and then."""

    def __init__(self, store: Callable[[], Store]) -> None:
        self._store = store

    async def __call__(
        self,
        *,
        older_than: Duration = "30d",
        keep_per_schedule: int = DEFAULT_KEEP_PER_SCHEDULE,
        dry_run: bool = False,
    ) -> int:
        """Remove the records of jobs that ended longer ago, in small batches, and return how many there were.

        The latest of each schedule stay, and those whose result, error or key is to be kept for longer. A dry run
        counts what would go.
        """
        age = durations.parse(older_than, what="older_than")
        keep = check_keep_per_schedule(keep_per_schedule)
        store = self._store()
        retention = Retention(before=await store.now() - age, keep_per_schedule=keep)
        removed, pruned = 0, Pruned(0, "")
        while pruned.last is not None:
            pruned = await store.prune(retention, after=pruned.last, dry_run=dry_run)
            removed += pruned.jobs
        return removed
