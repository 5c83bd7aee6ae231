"""What tasks may declare with `Depends`, and what is refused when they are registered."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import pytest
from fastapi import BackgroundTasks, Depends, Header, Query, Request, Response, Security
from fastapi.security import OAuth2PasswordBearer, SecurityScopes

import duetime
from duetime import Scheduler
from duetime.errors import InvalidArguments, InvalidTask
from duetime.testing import assert_enqueued, perform


class Session:
    """Stands for a session of a database."""


def get_session() -> Iterator[Session]:
    yield Session()


SessionDep = Annotated[Session, Depends(get_session)]


@pytest.fixture
def scheduler() -> Scheduler:
    return Scheduler("sqlite://")


def register(function: Callable[..., Any], **options: Any) -> duetime.Task[..., Any]:
    task: duetime.Task[..., Any] = Scheduler("sqlite://").task(name="mail.send", **options)(function)
    return task


async def send(user: int, session: SessionDep = Depends(get_session), *, copies: int = 1) -> str:
    return f"{type(session).__name__} for {user}"


async def test_a_dependency_is_no_argument(scheduler: Scheduler) -> None:
    task = scheduler.task(name="send")(send)
    async with scheduler:
        await task.enqueue(1, copies=2)
        await assert_enqueued(scheduler, task, 1, copies=2)
        with pytest.raises(InvalidArguments, match="unexpected keyword argument 'session'"):
            await task.enqueue(1, session=Session())
        with pytest.raises(InvalidArguments, match="too many positional arguments"):
            await task.enqueue(1, Session())
    assert [*task.handler.arguments.schema()["properties"]] == ["user", "copies"]


async def of_secret(user: int, key: duetime.Secret[str] = Depends(get_session)) -> None: ...


def test_a_dependency_is_no_secret_argument_either() -> None:
    assert register(of_secret).handler.arguments.secrets == frozenset()


def in_front(session: SessionDep, user: int) -> str:
    return f"{type(session).__name__} for {user}"


def of_default(user: int, session: Session = Depends(get_session)) -> str:
    return f"{type(session).__name__} for {user}"


def of_annotation(user: int, session: Annotated[Session, Depends()] = Depends()) -> str:
    return f"{type(session).__name__} for {user}"


def ours(user: int, session: Session = duetime.Depends(get_session)) -> str:
    return f"{type(session).__name__} for {user}"


@pytest.mark.parametrize("function", [send, in_front, of_default, of_annotation, ours])
async def test_it_is_told_by_annotated_or_by_the_default(function: Callable[..., Any]) -> None:
    assert await perform(register(function), 7) == "Session for 7"


async def test_one_of_a_job_class_is_a_parameter_of_its_run(scheduler: Scheduler) -> None:
    class Report(duetime.Job, scheduler=scheduler, name="report"):
        async def run(self, day: int, session: Session = Depends(get_session)) -> str:
            return f"{type(session).__name__} on {day}"

    assert await perform(Report.task, 3) == "Session on 3"


async def after(ended: duetime.Ended, session: SessionDep = Depends(get_session)) -> None: ...


def test_a_callback_may_have_some(scheduler: Scheduler) -> None:
    callback = scheduler.task(name="after")(after)
    task = scheduler.task(name="send", on_success=callback)(send)
    assert task.handler.options.terms.callbacks is not None


def test_a_cpu_task_is_refused() -> None:
    with pytest.raises(
        InvalidTask, match="of_default, which depends on 'session', cannot be a cpu task: a child"
    ):
        register(of_default, cpu=True)


def of_request(request: Request) -> str:
    return str(request.url)


def deep(url: Annotated[str, Depends(of_request)]) -> str:
    return url


def of_optional(request: Request | None = None) -> None: ...
def of_response(response: Response) -> None: ...
def of_tasks(tasks: BackgroundTasks) -> None: ...
def of_scopes(scopes: SecurityScopes) -> None: ...
def of_header(agent: Annotated[str, Header()] = "none") -> None: ...
def of_query(page: int = Query(1)) -> None: ...
def of_path(user_id: int) -> None: ...


@pytest.mark.parametrize(
    ("dependency", "why"),
    [
        (of_request, "mail.send → of_request cannot be resolved: of_request takes 'request' (Request), and"),
        (
            deep,
            "mail.send → deep → of_request cannot be resolved: of_request takes 'request' (Request), and",
        ),
        (of_optional, "of_optional takes 'request' (Request), and a job has no request"),
        (of_response, "of_response takes 'response' (Response), and"),
        (of_tasks, "of_tasks takes 'tasks' (BackgroundTasks), and"),
        (of_scopes, "of_scopes takes 'scopes' (SecurityScopes), and"),
        (of_header, "of_header takes 'agent' out of a request, and"),
        (of_query, "of_query takes 'page' out of a request, and"),
        (of_path, "of_path takes 'user_id', and a job has no request"),
        (OAuth2PasswordBearer("token"), "OAuth2PasswordBearer takes 'request' (HTTPConnection), and"),
    ],
)
def test_one_that_needs_a_request_is_refused_with_the_fix(dependency: Any, why: str) -> None:
    async def task(value: Any = Depends(dependency)) -> None: ...

    with pytest.raises(InvalidTask) as refused:
        register(task)
    assert why in str(refused.value)
    assert "Make it an argument of the task, which the endpoint passes to enqueue()" in str(refused.value)


def chicken(it: Annotated[str, Depends(lay)]) -> str:
    return it


def lay(it: Annotated[str, Depends(chicken)]) -> str:
    return it


async def eat(it: str = Depends(chicken)) -> None: ...
async def of_text(it: str = Depends("get_session")) -> None: ...  # type: ignore[arg-type]
async def of_call(it: Any = Depends(get_session())) -> None: ...  # type: ignore[arg-type]  # noqa: B008 - the mistake itself
async def of_two(it: SessionDep = Depends(lay)) -> None: ...
async def of_scope(it: str = Security(get_session, scopes=["mail"])) -> None: ...


def unresolved(it: Missing = 1) -> None: ...  # type: ignore[name-defined] # noqa: F821


async def of_unresolved(it: str = Depends(unresolved)) -> None: ...


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (eat, "mail.send → chicken → lay cannot be resolved: chicken needs itself"),
        (of_text, "Depends('get_session') names no function; give it the function itself"),
        (of_call, "names no function; give it the function itself, without a call"),
        (of_two, "'it' has two dependencies; name the same in Annotated and as the default"),
        (of_scope, "'it' has security scopes, which are of a request"),
        (of_unresolved, "the annotations of unresolved cannot be resolved: name 'Missing' is not defined"),
    ],
)
def test_what_cannot_be_resolved_is_refused(function: Callable[..., Any], why: str) -> None:
    with pytest.raises(InvalidTask) as refused:
        register(function)
    assert why in str(refused.value)


def test_a_task_that_cannot_be_read_is_not_said_to_have_dependencies() -> None:
    with pytest.raises(
        InvalidTask, match=r"^the annotations of mail\.send cannot be resolved: name 'Missing'"
    ):
        register(unresolved)


def test_a_refused_task_is_not_registered(scheduler: Scheduler) -> None:
    with pytest.raises(InvalidTask):
        scheduler.task(name="eat")(eat)
    assert not scheduler.tasks


WITHOUT_FASTAPI = """
import asyncio, sys
sys.modules["fastapi"] = sys.modules["starlette"] = None

from duetime import Depends, Scheduler
from duetime.testing import perform

scheduler = Scheduler("sqlite://")

def get_name():
    yield "Ada"

@scheduler.task
async def greet(word: str, name: str = Depends(get_name)) -> str:
    return f"{word} {name}"

print(asyncio.run(perform(greet, "hello")))
"""


def test_it_works_where_fastapi_is_not_installed() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_FASTAPI], capture_output=True, text=True, check=True)
    assert done.stdout == "hello Ada\n"


NO_IMPORT = """
import sys
from duetime import Depends, Scheduler

@Scheduler("sqlite://").task
async def greet(name: str = Depends(lambda: "Ada")) -> str: ...

assert not {"fastapi", "starlette"} & {*sys.modules}
"""


def test_it_does_not_import_fastapi() -> None:
    subprocess.run([sys.executable, "-c", NO_IMPORT], check=True)
