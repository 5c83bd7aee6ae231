from __future__ import annotations

import sys
from functools import wraps
from types import ModuleType
from typing import Any

import pytest

from duetime import Job, Scheduler
from duetime.errors import InvalidTask
from duetime.runtime.running.handler import (
    TaskLocation,
    TaskModule,
    find_handler,
    load_module,
    locate_task,
    module_being_imported,
)

scheduler = Scheduler("sqlite://")


def plain() -> str:
    return "plain"


@wraps(plain)
def disguised() -> str:
    return "disguised"


@scheduler.task(cpu=True)
def decorated() -> str:
    return "decorated"


class Written(Job, scheduler=scheduler, cpu=True):
    def run(self, number: int) -> int:
        return number


def test_a_task_is_found_where_its_function_was_written() -> None:
    here = TaskModule(__name__)
    task = Scheduler("sqlite://").task(name="other", cpu=True)(plain)
    assert locate_task(decorated.handler) == TaskLocation(here, "decorated")
    assert locate_task(Written.task.handler) == TaskLocation(here, "Written")
    assert locate_task(task.handler) == TaskLocation(here, "plain")


def test_what_is_found_is_the_task_or_else_the_plain_function() -> None:
    module = sys.modules[__name__]
    assert find_handler(module, "decorated", task="t") is decorated.handler
    assert find_handler(module, "Written", task="t") is Written.task.handler
    found = find_handler(module, "plain", task="t")
    assert found is not None
    assert (found.name, found.function) == ("t", plain)
    assert find_handler(module, "sys", task="t") is None
    assert find_handler(module, "no.such.name", task="t") is None


def test_a_name_that_leads_to_another_function_is_refused() -> None:
    """The child would run `plain` without what was put around it."""
    task = Scheduler("sqlite://").task(name="other", cpu=True)(disguised)
    with pytest.raises(InvalidTask, match=r"other cannot be found by a child process: .*plain is not that"):
        locate_task(task.handler)


def test_a_module_without_a_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    main = ModuleType("__main__")
    main.__dict__["plain"] = plain
    monkeypatch.setitem(sys.modules, "__main__", main)
    monkeypatch.setattr(plain, "__module__", "__main__")
    task = Scheduler("sqlite://").task(name="other", cpu=True)(plain)
    with pytest.raises(InvalidTask, match="__main__ is not a module with a file"):
        locate_task(task.handler)


@pytest.mark.parametrize("breaks", [False, True], ids=["well", "with an error"])
def test_while_a_script_is_loaded_others_can_tell(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, breaks: bool
) -> None:
    script = tmp_path / "script_to_load.py"
    end = "1 / 0" if breaks else ""
    script.write_text(
        f"from {__name__} import module_being_imported\nseen = module_being_imported(), __name__\n{end}\n"
    )
    home = TaskModule("script_to_load", str(script))
    monkeypatch.delitem(sys.modules, home.module, raising=False)
    if breaks:
        with pytest.raises(ZeroDivisionError):
            load_module(home)
        assert home.module not in sys.modules
    else:
        module = load_module(home)
        assert module.seen == ("script_to_load", "script_to_load")
        assert load_module(home) is module
    assert module_being_imported() is None
