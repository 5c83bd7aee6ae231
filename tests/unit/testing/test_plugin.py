"""The plugin works in projects of every kind; each here is made and run as a user would."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import tomllib
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[3]

APP = """
from duetime import Scheduler

scheduler = Scheduler("postgresql://nobody@127.0.0.1:1/nowhere")


@scheduler.task
async def send(user: int) -> str:
    return f"sent to {user}"


async def register(user: int) -> None:
    await send.options(delay="1h").enqueue(user)


def register_blocking(user: int) -> None:
    send.options(delay="1h").sync.enqueue(user)
"""

ASYNC_TEST = """
import pytest

import app
from duetime.testing import assert_enqueued, drain, inline, perform, refute_enqueued


@pytest.fixture
def scheduler(duetime_sandbox):
    return duetime_sandbox(app.scheduler)


{mark}
@pytest.mark.parametrize("user", [1, 2])
async def test_a_mail_is_sent_an_hour_later(scheduler, duetime_clock, user):
    async with scheduler:
        await refute_enqueued(scheduler, app.send)
        await app.register(user)
        await assert_enqueued(scheduler, app.send, user)
        assert await drain(scheduler) == []
        duetime_clock.advance("1h")
        (job,) = await drain(scheduler)
        assert job.result == f"sent to {{user}}"
    assert await perform(app.send, 3) == "sent to 3"


{mark}
async def test_inline(scheduler):
    async with inline(scheduler):
        job = await app.send.enqueue(1)
        assert await job.result(timeout=1) == "sent to 1"


@pytest.mark.covers("the mark is known")
def test_without_a_loop(scheduler):
    from duetime.testing import blocking

    app.register_blocking(5)
    blocking.assert_enqueued(scheduler, app.send, 5)
    assert [job.result for job in blocking.drain(scheduler, until="1h")] == ["sent to 5"]


def test_in_a_database_of_the_tests_own(duetime_sandbox, duetime_clock, tmp_path):
    from duetime.testing import blocking

    scheduler = duetime_sandbox(app.scheduler, url=f"sqlite:///{{tmp_path / 'test.db'}}")
    app.register_blocking(5)
    duetime_clock.advance("1h")
    assert len(blocking.drain(scheduler)) == 1
    assert (tmp_path / "test.db").stat().st_size > 0


def test_a_scheduler_of_the_tests_own(duetime_scheduler, duetime_clock):
    assert duetime_scheduler.clock is duetime_clock
    task = duetime_scheduler.task(name="double")(double)
    assert task.sync.enqueue(1) is not None


def double(number: int) -> int:
    return 2 * number
"""

UNITTEST = """
import unittest

import app
from duetime.testing import FakeClock, assert_enqueued, blocking, drain, sandbox


class AsyncCase(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.clock = FakeClock()
        self.scheduler = self.enterContext(sandbox(app.scheduler, clock=self.clock))
        await self.enterAsyncContext(self.scheduler)

    async def test_a_mail_is_sent_an_hour_later(self):
        await app.register(1)
        await assert_enqueued(self.scheduler, app.send, 1)
        self.clock.advance("1h")
        self.assertEqual([job.result for job in await drain(self.scheduler)], ["sent to 1"])


class BlockingCase(unittest.TestCase):
    def test_without_a_loop(self):
        with sandbox(app.scheduler) as scheduler:
            app.register_blocking(5)
            self.assertEqual(len(blocking.drain(scheduler, until="1h")), 1)
"""

PLUGIN = ["-p", "duetime.testing.plugin"]
"""By name, so that the copy under test is taken, installed or not."""
ASYNCIO, ANYIO = ["-p", "pytest_asyncio.plugin"], ["-p", "anyio.pytest_plugin"]


def run(folder: Path, *command: str) -> str:
    path = os.pathsep.join([str(ROOT / "src"), str(folder)])
    environment = os.environ | {
        "PYTHONPATH": path,
        "PYTHONDONTWRITEBYTECODE": "1",
        # To load Hypothesis and others takes longer than the tests.
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def project(folder: Path, tests: str, settings: str = "") -> Path:
    (folder / "app.py").write_text(APP, encoding="utf-8")
    (folder / "test_app.py").write_text(tests, encoding="utf-8")
    (folder / "pytest.ini").write_text(
        f"[pytest]\naddopts = --strict-markers\nfilterwarnings = error\n{settings}", encoding="utf-8"
    )
    return folder


def test_it_works_with_pytest_asyncio(tmp_path: Path) -> None:
    tests = ASYNC_TEST.format(mark="@pytest.mark.asyncio")
    settings = "asyncio_default_fixture_loop_scope = function"
    assert "6 passed" in run(project(tmp_path, tests, settings), "pytest", *PLUGIN, *ASYNCIO)


def test_it_works_with_anyio(tmp_path: Path) -> None:
    tests = ASYNC_TEST.format(mark="@pytest.mark.anyio")
    tests += '\n\n@pytest.fixture\ndef anyio_backend():\n    return "asyncio"\n'
    assert "6 passed" in run(project(tmp_path, tests), "pytest", *PLUGIN, *ANYIO)


def test_the_kit_works_with_unittest(tmp_path: Path) -> None:
    assert "Ran 2 tests" in run(project(tmp_path, UNITTEST), "unittest", "test_app")


def test_unittest_cases_run_in_pytest_too(tmp_path: Path) -> None:
    assert "2 passed" in run(project(tmp_path, UNITTEST), "pytest", *PLUGIN)


def test_its_fixtures_are_listed_with_what_they_are_for(tmp_path: Path) -> None:
    listed = run(project(tmp_path, ""), "pytest", *PLUGIN, "--fixtures")
    for name in ("duetime_clock", "duetime_scheduler", "duetime_sandbox"):
        assert f"\n{name} " in listed


def test_the_entry_point_names_it() -> None:
    points = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
    assert points == {"pytest11": {"duetime": "duetime.testing.plugin"}}
    assert import_module(points["pytest11"]["duetime"]).pytest_configure


def test_loading_it_imports_little_beside_duetime_and_pytest() -> None:
    program = """
        import sys, pytest, duetime, duetime.testing
        before = set(sys.modules)
        import duetime.testing.plugin
        print(*sorted(set(sys.modules) - before))
        assert not {"pytest_asyncio", "anyio", "hypothesis", "sqlite3", "asyncpg"} & set(sys.modules)
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["duetime.testing.plugin"]
