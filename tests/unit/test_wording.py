from __future__ import annotations

import re
from pathlib import Path

import duetime
from duetime import Scheduler
from duetime.model.text import counted
from duetime.runtime.options import WorkerOptions

PACKAGE = Path(duetime.__file__).parent


def test_what_is_counted_agrees_with_its_number() -> None:
    assert [counted(number, "job") for number in (0, 1, 2)] == ["0 jobs", "1 job", "2 jobs"]
    assert counted(12_345, "job") == "12,345 jobs"
    assert [counted(number, "second") for number in (0.5, 1.0)] == ["0.5 seconds", "1 second"]


def test_no_text_leaves_open_whether_it_is_about_one_or_several() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    assert len(texts) > 100
    assert [str(path) for path, text in texts.items() if re.search(r"[a-z]\(e?s\)", text)] == []


def test_a_worker_with_one_task_says_so(sqlite_url: str) -> None:
    scheduler = Scheduler(sqlite_url)

    @scheduler.task(name="only")
    def only() -> None: ...

    assert repr(scheduler) == "<Scheduler duetime with 1 task>"
    assert "1 slot, queues default, 1 task, " in WorkerOptions(concurrency=1).describe(tasks=1, declared=0)
