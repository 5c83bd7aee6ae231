"""Jobs that are enqueued because another has ended; what to enqueue is stored with that one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, get_args

from duetime.errors import InvalidOption
from duetime.model.headers import overlay_headers
from duetime.model.ids import new_job_id
from duetime.model.job import FIRST_PRIORITY, LAST_PRIORITY, JobId, JobTerms, NewJob, OnCrash, split_tags
from duetime.model.secrets import MASK, mask_arguments, masks_result
from duetime.model.states import State
from duetime.model.text import MAX_READ, check_name, is_deeper, shown
from duetime.model.time import to_datetime

if TYPE_CHECKING:
    from duetime.model.stored.jobs import StoredJob

_KINDS: Final = {"on_success": "success", "on_failure": "failure", "on_cancel": "cancel"}
_AS_STORED: Final = ("id", "task", "state", "error", "traceback", "reason", "attempt", "schedule", "key")
_CALLED: Final = {State.SUCCEEDED: "success", State.FAILED: "failure", State.CANCELLED: "cancel"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a job has ended: the one argument of a callback."""

    id: JobId
    task: str
    arguments: Any
    """By parameter name, as JSON values; the raw text when it cannot be read."""
    state: State
    result: Any
    """As JSON values, if it succeeded."""
    error: str | None
    traceback: str | None
    reason: str | None
    attempt: int
    finished_at: datetime
    schedule: str | None
    key: str | None
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Callback:
    """What is stored of a task so that a job of it can be made without knowing the task."""

    task: str
    parameter: str
    """The name that the task has for what it is given."""
    queue: str
    priority: int
    on_crash: OnCrash
    terms: str | None
    owner: object
    """Whose task it is; not stored."""

    def to_spec(self) -> dict[str, object]:
        """Return what is stored."""
        return {name: getattr(self, name) for name in self.__slots__ if name != "owner"}


class CallbackTask(Protocol):
    """A task that takes an `Ended`."""

    def call(self, ended: Ended, /) -> object:
        """Make a request."""
        ...

    def as_callback(self) -> Callback:
        """Tell what to store of it."""
        ...


class CallbackJob(Protocol):
    """An instance of a job class that takes an `Ended`."""

    def run(self, ended: Ended, /) -> object:
        """Do the work."""
        ...

    @classmethod
    def as_callback(cls) -> Callback:
        """Tell what to store of the class."""
        ...


GivenCallback: TypeAlias = CallbackTask | type[CallbackJob] | None


def bind_callbacks(values: Mapping[str, object], *, owner: object | None) -> str | None:
    """Return the callbacks among a user's options as JSON; `null` drops the one of the task."""
    said = {kind: _bind(option, values[option], owner) for option, kind in _KINDS.items() if option in values}
    return json.dumps(said, sort_keys=True) if said else None


def overlay(defaults: str | None, own: str | None) -> str | None:
    """Return the callbacks of a request over those of its task."""
    if own is None:
        return defaults
    merged = json.loads(defaults or "{}") | json.loads(own)
    said = {kind: spec for kind, spec in merged.items() if spec is not None}
    return json.dumps(said, sort_keys=True) if said else None


def call_back(job: StoredJob) -> NewJob | None:
    """Return the callback job for a job that has ended, with its headers; it has no callbacks itself, so chains end."""
    try:
        spec = json.loads(job.callbacks or "{}").get(_CALLED.get(job.state))
        if spec is None:
            return None
        terms = JobTerms.from_text(spec["terms"])
        if job.headers is not None:
            terms = replace(terms, headers=overlay_headers(terms.headers, job.headers))
        new = NewJob(
            id=new_job_id(),
            task=check_name(spec["task"], what="task"),
            payload=json.dumps({spec["parameter"]: _ended(job)}),
            queue=check_name(spec["queue"], what="queue"),
            priority=spec["priority"],
            on_crash=spec["on_crash"],
            terms=terms,
            parent=job.id,
        )
        sound = FIRST_PRIORITY <= new.priority <= LAST_PRIORITY and new.on_crash in get_args(OnCrash)
        return new if sound else None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        # The row was edited by hand; the end of the job must be recorded all the same.
        return None


def _bind(option: str, target: Any, owner: object | None) -> dict[str, object] | None:
    if target is None:
        return None
    as_callback = getattr(target, "as_callback", None)
    if as_callback is None:
        raise InvalidOption(f"{option} must be a task or a job class of a scheduler, not {shown(target)}")
    callback: Callback = as_callback()
    if owner is not None and callback.owner is not owner:
        raise InvalidOption(f"{option}={callback.task} is a task of another scheduler; give one of this one")
    return callback.to_spec()


def _ended(job: StoredJob) -> dict[str, object]:
    """Return the fields of an `Ended` as JSON values."""
    return {name: getattr(job, name) for name in _AS_STORED} | {
        "arguments": mask_arguments(_loose(job.payload), job.secret),
        "result": _result(job),
        "finished_at": to_datetime(job.finished_at or 0).isoformat(),
        "tags": split_tags(job.tags),
    }


def _result(job: StoredJob) -> object:
    if job.result is None:
        return None
    return MASK if masks_result(job.secret) else _loose(job.result)


def _loose(text: str) -> object:
    if is_deeper(text.encode(errors="replace"), MAX_READ):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
