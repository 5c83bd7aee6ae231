"""Tasks: what workers have announced that they can run, with the schema of the arguments."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from starlette.responses import Response

from duetime.errors import UnknownTask
from duetime.model.text import check_name
from duetime.scheduler.announced import TaskRecord
from duetime.web.access import Viewer
from duetime.web.answers import Body, answer, model_of
from duetime.web.problems import Problem, documented

router = APIRouter(prefix="/tasks", tags=["tasks"])

Task = model_of(TaskRecord)


class TaskListAnswer(Body):
    """All tasks that workers have announced, by name."""

    items: list[Task]  # type: ignore[valid-type]


@router.get("", response_model=TaskListAnswer)
async def list_tasks(access: Viewer) -> Response:
    """List tasks with the JSON Schema of their arguments; those that no worker has announced for long are forgotten."""
    found = await access.scheduler.announced.list()
    return answer({"items": [task for task in found if access.user.sees(task.queue)]})


@router.get("/{name:path}", response_model=Task, responses=documented(404))
async def get_task(
    access: Viewer, name: Annotated[str, Path(description="The name of a task.", examples=["mail.send"])]
) -> Response:
    """Show a task."""
    unknown = Problem(
        404, "Unknown task", "no worker has announced a task of this name", kind="urn:duetime:UnknownTask"
    )
    try:
        task = await access.scheduler.announced.get(check_name(name, what="task name"))
    except UnknownTask:
        raise unknown from None
    if not access.user.sees(task.queue):
        raise unknown
    return answer(task)
