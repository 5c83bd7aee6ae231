from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator

import pytest

from duetime.runtime.upkeep import commands as stacks
from duetime.runtime.upkeep.commands import AnyTask, describe_stacks


async def innermost(gate: asyncio.Event) -> None:
    await gate.wait()


class Wait:
    """Something to await that is no coroutine."""

    def __init__(self, gate: asyncio.Event) -> None:
        self._gate = gate

    def __await__(self) -> Generator[None, None, None]:
        yield from innermost(self._gate).__await__()


async def outermost(gate: asyncio.Event) -> None:
    await Wait(gate)


async def show(jobs: dict[AnyTask, str]) -> str:
    """Ask from another thread while the loop goes on."""
    loop = asyncio.get_running_loop()
    return await asyncio.to_thread(describe_stacks, loop, jobs)


async def test_a_task_is_shown_down_to_what_it_awaits() -> None:
    gate = asyncio.Event()
    task = asyncio.create_task(outermost(gate), name="mine")
    await asyncio.sleep(0)
    text = await show({})
    gate.set()
    await task
    mine = next(part for part in text.split("task ") if part.startswith("mine\n"))
    assert mine.index("in outermost") < mine.index("in __await__") < mine.index("yield from")


async def test_tasks_of_jobs_have_their_names_and_come_before_the_others() -> None:
    gate = asyncio.Event()
    other = asyncio.create_task(innermost(gate), name="AAA")
    job = asyncio.create_task(innermost(gate))
    await asyncio.sleep(0)
    text = await show({job: "job 1 of greet"})
    gate.set()
    await asyncio.gather(other, job)
    assert text.index("task job 1 of greet\n") < text.index("task AAA\n")
    assert job.get_name() not in text


async def test_threads_are_shown_by_their_names() -> None:
    gate = threading.Event()
    thread = threading.Thread(target=gate.wait, name="the-one-that-waits")
    thread.start()
    text = await show({})
    gate.set()
    thread.join()
    assert "thread the-one-that-waits\n" in text
    assert "thread MainThread\n" in text


async def test_a_task_that_runs_is_not_looked_into() -> None:
    text = describe_stacks(asyncio.get_running_loop(), {})
    assert "running; its stack is that of its thread" in text
    assert "describe_stacks(asyncio.get_running_loop(), {})" in text


async def test_a_very_long_answer_is_cut_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stacks, "MAX_STACKS_TEXT", 100)
    text = await show({})
    assert text.startswith("thread ")
    assert len(text) < 150
    assert text.endswith("characters more")


async def test_a_deep_recursion_is_shown_at_its_inner_end() -> None:
    gate = asyncio.Event()

    async def dive(depth: int) -> None:
        await (dive(depth - 1) if depth else innermost(gate))

    task = asyncio.create_task(dive(200))
    await asyncio.sleep(0)
    text = await show({task: "deep"})
    gate.set()
    await task
    deep = text.partition("task deep")[2]
    assert "in innermost" in deep
    assert deep.count("in dive") < 200
