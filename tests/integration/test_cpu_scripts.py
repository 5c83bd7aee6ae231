"""However a program with cpu tasks is started, its children find them, and do not start it again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAD = """
from __future__ import annotations
import asyncio, os, sys
from duetime import Scheduler

scheduler = Scheduler("sqlite:///jobs.db")

@scheduler.task(cpu=True)
def where() -> tuple[int, list[str]]:
    return os.getppid(), sys.argv[1:]

class Half(scheduler.Job, cpu=True):
    def run(self, number: int) -> float:
        return number / 2

async def main() -> None:
    print("main runs", flush=True)
    async with scheduler, scheduler.worker(cpu_children=1):
        job = await where.enqueue()
        parent, arguments = await job.result(timeout=20)
        assert parent == os.getpid()
        assert await (await Half.enqueue(3)).result(timeout=20) == 1.5
        print("done", where.name, *arguments, flush=True)
"""
GUARDED = HEAD + 'if __name__ == "__main__":\n    asyncio.run(main())\n'
UNGUARDED = HEAD + "asyncio.run(main())\n"


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )


@pytest.mark.parametrize(
    ("words", "name"),
    [(["app.py"], "app.where"), (["-m", "app"], "app.where"), (["-m", "inner.app"], "inner.app.where")],
    ids=["script", "module", "module of a package"],
)
def test_a_program_is_imported_by_its_children_and_not_started_again(
    tmp_path: Path, words: list[str], name: str
) -> None:
    (tmp_path / "inner").mkdir()
    for file in ("app.py", "inner/app.py"):
        (tmp_path / file).write_text(GUARDED, encoding="utf-8")
    ended = run(tmp_path, *words, "an argument")
    assert ended.stdout.splitlines() == ["main runs", f"done {name} an argument"], ended.stderr


@pytest.mark.covers("cpu-start")
def test_a_script_without_a_guard_fails_its_jobs_and_says_what_to_write(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(UNGUARDED, encoding="utf-8")
    ended = run(tmp_path, "app.py")
    assert ended.returncode == 1
    assert "app starts a worker when a child process imports it" in ended.stderr
    assert 'start it below `if __name__ == "__main__":`' in ended.stderr
    assert "done" not in ended.stdout


def test_a_worker_of_the_command_line_has_children_too(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(GUARDED, encoding="utf-8")
    program = [sys.executable, "-m", "duetime.cli"]
    options = ["--cpu-children", "1", "--cpu-max-jobs", "5", "--cpu-max-memory", "1GB"]
    with subprocess.Popen(
        [*program, "worker", "app:scheduler", *options],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    ) as worker:
        try:
            code = "import app; print(app.where.sync.enqueue().result(timeout=20)[0])"
            ended = run(tmp_path, "-c", code)
            assert ended.stdout.strip() == str(worker.pid), ended.stderr
        finally:
            worker.terminate()
        worker.communicate(timeout=20)
        assert worker.returncode == 0


def test_a_function_of_an_interactive_session_is_refused(tmp_path: Path) -> None:
    ended = run(tmp_path, "-c", HEAD + "asyncio.run(main())")
    assert "cpu task __main__.where cannot be found by a child process" in ended.stderr
    assert "__main__ is not a module with a file" in ended.stderr
