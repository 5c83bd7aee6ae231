"""The reference says what the package has: no more, no less."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Callable, Iterator

import click
import pytest

import duetime
from duetime import errors, testing
from duetime.cli import main
from duetime.cli.output import ExitCode
from duetime.model.events import EventKind
from duetime.model.schedule.options import ScheduleOptionValues
from duetime.model.states import LEGAL, State
from duetime.model.task import JobOptionValues, TaskOptionValues
from duetime.runtime.settling.job_log import RECORD_FIELDS
from duetime.scheduler.processes.worker_process import WorkerSettings
from duetime.scheduler.scheduler import Scheduler
from duetime.testing import blocking, plugin
from tests.docs.snippets import ROOT

REFERENCE = ROOT / "docs" / "reference"
NAME = re.compile(r"`([^`]+)`")


def test_the_table_of_states_is_the_one_in_the_code() -> None:
    written = {
        State(first): {State(state) for state in NAME.findall(second)}
        for (first,), second in rows("states.md", heading="| From | To |")
    }
    assert written == LEGAL


def test_the_drawing_of_states_shows_each_of_them() -> None:
    drawing = (REFERENCE / "states.md").read_text(encoding="utf-8").split("```")[1]
    assert [state for state in State if state not in drawing] == []


def test_every_option_of_a_task_is_listed() -> None:
    assert names("options.md", "## Task options") == {"name", *TaskOptionValues.__optional_keys__}


def test_every_option_of_a_job_is_listed() -> None:
    assert names("options.md", "## Job options") == JobOptionValues.__optional_keys__


def test_every_option_of_a_schedule_is_listed() -> None:
    parameters = inspect.signature(Scheduler.schedule).parameters.values()
    own = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY}
    assert names("options.md", "## Schedule options") == own | ScheduleOptionValues.__optional_keys__


def test_every_way_to_make_or_change_a_trigger_is_listed() -> None:
    page = (REFERENCE / "triggers.md").read_text(encoding="utf-8")
    makers = ["at", "cron", "every", "rrule", "working_day"]
    assert [name for name in makers if f"# `{name}(" not in page] == []
    asked = ("next_after", "previous_before", "occurrences")
    assert [name for name in ("between", "at_most", "jitter", *asked) if f"| `{name}(" not in page] == []
    assert "`trigger.roll(" in page
    calendars = [name for name in duetime.calendars.__all__ if name != "Calendar"]
    assert [name for name in calendars if f"| `{name}(" not in page] == []


def test_every_member_of_a_scheduler_is_listed() -> None:
    page = (REFERENCE / "scheduler.md").read_text(encoding="utf-8").partition("### `scheduler.jobs`")[0]
    members = {name for name in dir(Scheduler) if not name.startswith("_")}
    # What other parts of the package call.
    members -= {"add_task", "close_after", "enqueue_many_blocking", "make_store"}
    assert [
        name for name in sorted(members) if not re.search(rf"^\|.*`@?{name}\b.*\|", page, re.MULTILINE)
    ] == []


def test_the_readme_names_every_command_and_every_extra() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    named = readme.partition("- A command line: ")[2].partition("\n- ")[0]
    assert {*NAME.findall(named)} == main.commands.keys()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = set(re.findall(r"pip install '\.\[(\w+)\]'", readme))
    assert extras | {"dev"} == project["optional-dependencies"].keys()


def test_every_setting_of_a_worker_is_listed() -> None:
    assert names("options.md", "## Worker settings") == WorkerSettings.__optional_keys__


def test_every_error_is_listed_with_the_built_in_that_it_also_is() -> None:
    listed = {found[0]: set(found[1:]) for found, _ in rows("errors.md", heading="| Error |")}
    assert listed == {
        name: {base.__name__ for base in kind.__bases__ if base.__module__ == "builtins"} - {"Exception"}
        for name, kind in vars(errors).items()
        if inspect.isclass(kind) and kind is not errors.DuetimeError
    }


@pytest.mark.parametrize(
    "record",
    [
        duetime.JobRecord,
        duetime.Ended,
        duetime.AttemptRecord,
        duetime.AuditRecord,
        duetime.TaskRecord,
        duetime.Event,
        duetime.LastRun,
        duetime.ScheduleRecord,
        duetime.ScheduleExport,
        duetime.ScheduleImport,
        duetime.ScheduleChange,
        duetime.Upcoming,
        duetime.Backfill,
        duetime.Forecast,
        duetime.QueueRecord,
        duetime.WorkerRecord,
        duetime.CommandRecord,
        duetime.JobContext,
        duetime.JobRequest,
        duetime.Statistics,
        duetime.Figures,
        duetime.Spread,
    ],
)
def test_every_field_of_a_record_is_listed(record: type) -> None:
    public = {name for name in dir(record) if not name.startswith("_")}
    methods = {name for name in public if callable(getattr(record, name))}
    listed = names(
        "scheduler.md", "## `current_job" if record is duetime.JobContext else f"## `{record.__name__}`"
    )
    assert listed == public - methods


def test_every_public_name_is_somewhere_in_the_reference() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in REFERENCE.glob("*.md"))
    assert [name for name in duetime.__all__ if not re.search(rf"`[^`]*\b{name}\b", pages)] == []


def test_every_logger_and_every_field_of_a_record_about_a_job_is_listed() -> None:
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    assert names("logging.md", "| Logger |") == {*re.findall(r'getLogger\("(duetime[^"]*)"\)', sources)} - {
        "duetime"
    }
    assert names("logging.md", "| Field |") == {*RECORD_FIELDS}
    outcomes = {kind.removeprefix("job.") for kind in EventKind if kind.startswith("job.")} - {"started"}
    page = (REFERENCE / "logging.md").read_text(encoding="utf-8")
    assert [outcome for outcome in outcomes if f"`{outcome}`" not in page] == []


def test_every_verb_of_the_testing_kit_and_its_options_are_listed() -> None:
    assert {name.partition("(")[0].removeprefix("await ") for name in names("testing.md", "## Verbs")} == {
        *testing.__all__,
        "blocking",
    }
    assert names("testing.md", "## Options of `drain`") == keywords(testing.drain)
    assert names("testing.md", "## Options of `assert_enqueued`") == keywords(testing.assert_enqueued)


@pytest.mark.parametrize("verb", ["assert_enqueued", "drain", "perform", "refute_enqueued"])
def test_verbs_of_the_testing_kit_for_blocking_callers_have_the_same_parameters(verb: str) -> None:
    twins = [inspect.signature(getattr(module, verb)) for module in (testing, blocking)]
    assert twins[0] == twins[1]


def test_every_fixture_of_the_plugin_is_listed() -> None:
    fixtures = {name for name in vars(plugin) if name.startswith("duetime_")}
    assert names("testing.md", "| Fixture |") == fixtures


def test_every_command_and_its_options_are_listed() -> None:
    text = (REFERENCE / "cli.md").read_text(encoding="utf-8")
    assert [words for words in commands(main, "duetime") if words not in text] == []
    assert [option for option in options(main) if not re.search(rf"{option}\b", text)] == []


def test_every_exit_code_is_listed() -> None:
    listed = [line.split("|")[1].strip() for line in table("cli.md", "| Code |")]
    # 70 is the worker's own, not one of the program's.
    assert [int(code) for code in listed if code != "70"] == list(ExitCode)


def test_every_test_folder_has_its_reason() -> None:
    text = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
    folders = [path for path in (ROOT / "tests").iterdir() if path.is_dir() and any(path.glob("**/*.py"))]
    assert [path.name for path in folders if f"`tests/{path.name}/`" not in text] == []


def keywords(function: Callable[..., object]) -> set[str]:
    """Return the names of the keyword-only parameters."""
    return {p.name for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY}


def table(page: str, heading: str) -> Iterator[str]:
    """Yield the rows of the first table at or after the line that begins with `heading`."""
    lines = iter((REFERENCE / page).read_text(encoding="utf-8").splitlines())
    for line in lines:
        if line.startswith(heading):
            break
    else:
        raise AssertionError(f"{page} has no {heading!r}")
    seen = line.startswith("|")
    for line in lines:
        if line.startswith("|"):
            if seen and not line.startswith("|---"):
                yield line
            seen = True
        elif seen:
            return


def rows(page: str, *, heading: str) -> Iterator[tuple[list[str], str]]:
    """Yield the names in the first cell of each row, and the rest of it."""
    for line in table(page, heading):
        first, _, rest = line[1:].partition("|")
        yield NAME.findall(first), rest


def names(page: str, heading: str) -> set[str]:
    """Return the names in the first cells of a table."""
    return {name for found, _ in rows(page, heading=heading) for name in found}


def commands(command: click.Command, words: str) -> Iterator[str]:
    """Yield how each command is called."""
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield f"{words} {name}"
            yield from commands(inner, f"{words} {name}")


def options(command: click.Command) -> Iterator[str]:
    """Yield every long option."""
    for parameter in command.params:
        yield from (name for name in parameter.opts if name.startswith("--") and name != "--help")
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            yield from options(inner)
