"""What the examples of the description name, and requests made of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from duetime import Scheduler, cron
from duetime.model.ids import new_job_id
from duetime.model.job import NewJob
from duetime.model.stored.audit import deployment
from duetime.model.stored.credentials import CredentialKind, NewCredential, Role, digest_of
from duetime.model.worker import WorkerInfo
from duetime.web.api.values import EXAMPLE_CODE, EXAMPLE_JOB, EXAMPLE_TOKEN
from duetime.web.api.workers import EXAMPLE_WORKER

METHODS = ("get", "put", "post", "patch", "delete")
ENDED_FIRST = frozenset({"rerun_job"})
"""Operations for jobs that have ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """An operation with the values of its examples."""

    name: str
    method: str
    path: str
    """With its parameters filled in."""
    body: Any
    answers: Mapping[str, Any]


def examples(description: Mapping[str, Any]) -> Iterator[Example]:
    """Yield each operation as its examples have it."""
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            filled = path
            for parameter in operation.get("parameters", ()):
                if parameter["in"] == "path":
                    (value,) = parameter["schema"]["examples"]
                    value = new_job_id() if operation["operationId"] == "enqueue_job_once" else value
                    filled = filled.replace(f"{{{parameter['name']}}}", quote(value, safe=""))
                elif parameter.get("required"):
                    filled += f"?{parameter['name']}={parameter['schema']['examples'][0]}"
            yield Example(
                name=operation["operationId"],
                method=method.upper(),
                path=filled,
                body=_body(description, operation),
                answers=operation["responses"],
            )


def _body(description: Mapping[str, Any], operation: Mapping[str, Any]) -> Any:
    if "requestBody" not in operation:
        return None
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    name = (schema.get("$ref") or schema["allOf"][0]["$ref"]).rpartition("/")[2]
    return next(iter(description["components"]["schemas"][name].get("examples", ())), None)


async def seed(scheduler: Scheduler, *, ended: bool = False) -> None:
    """See that there is what examples name, as it was at the beginning, but for a worker."""
    store, hour = scheduler.store, 3_600_000_000
    await store.delete([EXAMPLE_JOB])
    await store.enqueue([NewJob(EXAMPLE_JOB, "mail.send", "{}", queue="mail", delay=hour)])
    if ended:
        await store.cancel([EXAMPLE_JOB], reason="for an example")
    await scheduler.schedules.put("nightly", cron("0 3 * * *", tz="Europe/Berlin"), "mail.send")
    await scheduler.schedules.resume("nightly")
    for kind, secret in ((CredentialKind.TOKEN, EXAMPLE_TOKEN), (CredentialKind.LINK, EXAMPLE_CODE)):
        # A link that was used stays used.
        if not any(one.name == "example" for one in await store.credentials(kind)):
            new = NewCredential(kind=kind, digest=digest_of(secret), name="example", role=Role.VIEWER)
            await store.add_credential(new)
    await store.enqueue([], entries=[deployment("1.4.2", worker="an example")])
    await store.make_locks()
    await store.take_lock("reindex", token="example", holder="an example", ttl=hour)


async def register_worker(scheduler: Scheduler) -> None:
    """See that there is a worker with the id of the examples, which answers nothing."""
    info = WorkerInfo(
        id=EXAMPLE_WORKER,
        host="here",
        host_key=None,
        pid=1,
        pid_started=None,
        version="1",
        queues=("mail",),
        slots=1,
        tasks=("mail.send",),
    )
    await scheduler.store.register(info, lease=3_600_000_000)
