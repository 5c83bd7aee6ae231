"""The shop of the page on dependencies, served by several processes that are all killed in the middle."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest
import sqlalchemy as sa

from duetime import Scheduler, State
from tests.docs.snippets import ROOT, read_blocks
from tests.integration.callers import of_alchemy
from tools.servers.process import free_port

ORDERS = 200
PATIENCE = 60.0
UVICORN = ["uvicorn", "shop:app", "--workers", "4", "--port"]
GUNICORN = [
    "gunicorn",
    "shop:app",
    "--workers",
    "4",
    "--worker-class",
    "uvicorn_worker.UvicornWorker",
    "--bind",
]


@pytest.mark.timeout(180)
@pytest.mark.covers("effect-and-completion", "enqueue-apart", "worker-killed")
@pytest.mark.parametrize("server", [UVICORN, GUNICORN], ids=["uvicorn", "gunicorn"])
async def test_each_order_has_one_receipt_though_all_is_killed_in_the_middle(
    sql_url: str, server: list[str], tmp_path: Path
) -> None:
    shop = Shop(sql_url, server, tmp_path)
    answered: list[int] = []
    with shop.served() as (process, address):
        async with httpx.AsyncClient(base_url=address, timeout=PATIENCE) as client:

            async def order(number: int) -> None:
                answer = await client.post("/orders", json={"item": f"item {number}", "count": 2})
                answered.append(answer.raise_for_status().json())
                if len(answered) == ORDERS // 3:
                    os.killpg(process.pid, signal.SIGKILL)

            asked = await asyncio.gather(*map(order, range(ORDERS)), return_exceptions=True)
    lost = [error for error in asked if error is not None]
    assert lost
    assert all(isinstance(error, httpx.TransportError) for error in lost), lost

    with shop.served():
        jobs = await shop.ended_jobs()
    orders, receipts = shop.numbers("SELECT id FROM orders"), shop.numbers("SELECT order_id FROM receipts")
    assert {*answered} <= {*orders}
    assert len(orders) < ORDERS
    assert Counter(receipts) == Counter(orders)
    assert jobs == {State.SUCCEEDED: len(orders)}


class Shop:
    """The page's program, on a database of its own."""

    def __init__(self, url: str, server: list[str], folder: Path) -> None:
        page = ROOT / "docs" / "how-to" / "dependencies.md"
        blocks = [
            block.text
            for block in read_blocks(page.read_text(encoding="utf-8"))
            if block.options.get("title") == "shop.py"
        ]
        (folder / "shop.py").write_text("".join(blocks), encoding="utf-8")
        self._url = url
        self._server = server
        self._folder = folder
        self._env = os.environ | {"DUETIME_URL": url, "SHOP_URL": of_alchemy(url, asynchronous=True)}
        subprocess.run([sys.executable, "shop.py"], cwd=folder, env=self._env, check=True)

    @contextmanager
    def served(self) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
        port = free_port()
        program, *words = self._server
        place = f"127.0.0.1:{port}" if "--bind" in words else str(port)
        command = [sys.executable, "-m", program, *words, place]
        with (self._folder / "output").open("ab") as output:
            process = subprocess.Popen(
                command, cwd=self._folder, env=self._env, stdout=output, stderr=output, start_new_session=True
            )
        try:
            address = f"http://127.0.0.1:{port}"
            wait_until(lambda: answers(address), what=self._printed)
            yield process, address
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(PATIENCE)

    async def ended_jobs(self) -> dict[State, int]:
        """Wait until no job is left to run, and count them by state."""
        async with Scheduler(self._url) as scheduler:
            deadline = time.monotonic() + PATIENCE
            while True:
                counts = await scheduler.queues.counts()
                found = {state: number for (_, state), number in counts.items() if number}
                if all(state.terminal for state in found):
                    return found
                assert time.monotonic() < deadline, found
                await asyncio.sleep(0.05)

    def numbers(self, sql: str) -> list[int]:
        engine = sa.create_engine(of_alchemy(self._url))
        with engine.connect() as connection:
            found = list(connection.execute(sa.text(sql)).scalars())
        engine.dispose()
        return found

    def _printed(self) -> str:
        return (self._folder / "output").read_text(encoding="utf-8")


def answers(address: str) -> bool:
    try:
        return httpx.get(f"{address}/openapi.json", timeout=PATIENCE).is_success
    except httpx.TransportError:
        return False


def wait_until(condition: Callable[[], bool], *, what: Callable[[], str]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, what()
        time.sleep(0.05)
