"""The options of a task and of a single request, checked where they are written."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Literal, TypedDict, get_args

from duetime.errors import InvalidOption
from duetime.model.callbacks import GivenCallback, bind_callbacks, overlay
from duetime.model.headers import check_headers, headers_to_text, overlay_headers
from duetime.model.job import (
    DEFAULT_PRIORITY,
    DEFAULT_QUEUE,
    FIRST_PRIORITY,
    FOREVER,
    LAST_PRIORITY,
    NO_TERMS,
    IfExists,
    JobTerms,
    Key,
    OnCrash,
    join_tags,
)
from duetime.model.limits import Gate, Limit, Rate, gate
from duetime.model.locks import LockTemplate, lock_template
from duetime.model.retry import NO_RETRIES, Retries, RetryPolicy, check_retries, retry_policy
from duetime.model.secrets import check_secret
from duetime.model.text import check_choice, check_name, check_whole, did_you_mean, shown
from duetime.model.time import Duration, Instant, Micros, from_datetime, parse_duration

MAX_KEY = 500
MAX_TAGS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOptions:
    """The defaults every job of a task starts from."""

    queue: str = DEFAULT_QUEUE
    priority: int = DEFAULT_PRIORITY
    retry: RetryPolicy = NO_RETRIES
    timeout: Micros | None = None
    on_crash: OnCrash = "retry"
    cancel_grace: Micros = 0
    """How long a handler that was asked to stop may go on before it is cancelled."""
    cpu: bool = False
    """Whether it runs in a child process."""
    gate: Gate | None = None
    """The limits of the task, over all workers."""
    lock: LockTemplate | None = None
    """What a job holds while it runs."""
    terms: JobTerms = NO_TERMS


class CommonOptionValues(TypedDict, total=False):
    """What users may write for tasks, for requests and for schedules."""

    queue: str
    priority: int
    tags: Sequence[str]
    headers: Mapping[str, str]
    result_ttl: Duration | None
    failure_ttl: Duration | None
    on_success: GivenCallback
    on_failure: GivenCallback
    on_cancel: GivenCallback


class TaskOptionValues(CommonOptionValues, total=False):
    """What users may write in `scheduler.task(...)` apart from the name."""

    retries: Retries
    timeout: Duration | None
    on_crash: Literal["retry", "fail"]
    cancel_grace: Duration
    cpu: bool
    limit: int | Limit | None
    rate: str | Rate | None
    lock: str | None
    expires: Duration | None
    secret: Collection[str]


def task_options(values: TaskOptionValues, *, owner: object | None = None) -> TaskOptions:
    """Check what a user wrote for a task; callbacks must be of the same owner, if one is given."""
    check_known(values, TaskOptionValues.__optional_keys__)
    timeout = values.get("timeout")
    hidden = join_tags(check_secret(values.get("secret", ())))
    callbacks = overlay(None, bind_callbacks(values, owner=owner))
    return TaskOptions(
        queue=check_name(values.get("queue", DEFAULT_QUEUE), what="queue"),
        priority=check_priority(values.get("priority", DEFAULT_PRIORITY)),
        retry=retry_policy(values.get("retries")),
        timeout=None if timeout is None else check_timeout(timeout),
        on_crash=check_on_crash(values.get("on_crash", "retry")),
        cancel_grace=parse_duration(values.get("cancel_grace", 0), what="cancel_grace"),
        cpu=check_cpu(values.get("cpu", False)),
        gate=gate(values.get("limit"), values.get("rate")),
        lock=lock_template(values.get("lock")),
        terms=_terms(values, values.get("expires"), callbacks, hidden),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOptions:
    """What one request asks for apart from its arguments; `None` leaves it to the task."""

    delay: Micros = 0
    at: Instant | None = None
    queue: str | None = None
    priority: int | None = None
    retries: int | None = None
    timeout: Micros | None = None
    key: Key | None = None
    expires_at: Instant | None = None
    tx: object | None = None
    """The caller's own transaction, as the store knows it."""
    terms: JobTerms = NO_TERMS
    """What they say replaces what the task says; tags and headers are added to those of the task."""

    def over(self, defaults: JobTerms) -> JobTerms:
        """Return the terms of a job with these options."""
        own = self.terms
        if own is NO_TERMS:
            return defaults
        said = {name: value for name in own.__slots__ if (value := getattr(own, name)) not in (None, ())}
        said["tags"] = _few_tags((*defaults.tags, *own.tags))
        said["callbacks"] = overlay(defaults.callbacks, own.callbacks)
        said["headers"] = check_headers(overlay_headers(defaults.headers, own.headers))
        return replace(defaults, **said)


NO_OPTIONS: Final = JobOptions()


class JobOptionValues(CommonOptionValues, total=False):
    """What users may write in `task.options(...)`."""

    delay: Duration
    at: datetime
    retries: int
    timeout: Duration
    key: str
    if_exists: IfExists
    keep_key: Duration
    debounce: Duration
    throttle: Duration
    expires: Duration | datetime
    tx: object


def job_options(values: JobOptionValues, *, owner: object | None = None) -> JobOptions:
    """Check what a user wrote for one request; callbacks must be of the same owner, if one is given."""
    if not values:
        return NO_OPTIONS
    check_known(values, JobOptionValues.__optional_keys__)
    if sum(name in values for name in ("delay", "at", "debounce")) > 1:
        raise InvalidOption("give either delay= or at= (debounce= is a delay, too), not both")
    wait = values.get("delay", values.get("debounce"))
    expires = values.get("expires")
    moment = from_datetime(expires, what="expires") if isinstance(expires, datetime) else None
    return JobOptions(
        delay=0 if wait is None else parse_duration(wait, what="delay" if "delay" in values else "debounce"),
        at=from_datetime(values["at"], what="at") if "at" in values else None,
        queue=check_name(values["queue"], what="queue") if "queue" in values else None,
        priority=check_priority(values["priority"]) if "priority" in values else None,
        retries=check_retries(values["retries"]) if "retries" in values else None,
        timeout=check_timeout(values["timeout"]) if "timeout" in values else None,
        key=_key(values),
        expires_at=moment,
        tx=values.get("tx"),
        terms=_terms(
            values, None if isinstance(expires, datetime) else expires, bind_callbacks(values, owner=owner)
        ),
    )


def _terms(
    values: CommonOptionValues, expires: Duration | None, callbacks: str | None, secret: str | None = None
) -> JobTerms:
    terms = JobTerms(
        expires=None if expires is None else parse_duration(expires, what="expires"),
        tags=check_tags(values.get("tags", ())),
        callbacks=callbacks,
        result_ttl=_ttl(values, "result_ttl"),
        failure_ttl=_ttl(values, "failure_ttl"),
        headers=headers_to_text(values["headers"]) if "headers" in values else None,
        secret=secret,
    )
    return NO_TERMS if terms == NO_TERMS else terms


def check_priority(priority: int) -> int:
    """Return the priority, or raise `InvalidOption`."""
    return check_whole(priority, FIRST_PRIORITY, LAST_PRIORITY, what="priority")


def check_timeout(timeout: Duration) -> Micros:
    """Return the timeout in microseconds, or raise when it is not above zero."""
    micros = parse_duration(timeout, what="timeout")
    if micros == 0:
        raise InvalidOption("timeout must be longer than 0; leave it out for no timeout")
    return micros


def check_on_crash(on_crash: Literal["retry", "fail"]) -> OnCrash:
    """Return the choice, or raise `InvalidOption`."""
    choice: OnCrash = check_choice(on_crash, get_args(OnCrash), what="on_crash")
    return choice


def check_cpu(cpu: bool) -> bool:  # noqa: FBT001 - it is checked, not obeyed
    """Return the choice, or raise `InvalidOption`."""
    if not isinstance(cpu, bool):
        raise InvalidOption(f"cpu must be True (run in a child process) or False, not {shown(cpu)}")
    return cpu


def check_tags(tags: Sequence[str]) -> tuple[str, ...]:
    """Return the tags, each once, or raise when one is not a name, or they are too many."""
    if isinstance(tags, str):
        raise InvalidOption(f"tags must be a list such as [{tags!r}]")
    if not isinstance(tags, Iterable):
        raise InvalidOption(f"tags must be a list such as ['billing'], or [] for none, not {shown(tags)}")
    return _few_tags(check_name(tag, what="tag") for tag in tags)


def _few_tags(tags: Iterable[str]) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(tags))
    if len(found) > MAX_TAGS:
        raise InvalidOption(f"{len(found)} tags; at most {MAX_TAGS} are allowed, with those of the task")
    return found


def _key(values: JobOptionValues) -> Key | None:
    """Build the key of a request; what only makes sense with one is refused without it."""
    if "key" not in values:
        for name in ("if_exists", "keep_key", "debounce", "throttle"):
            if name in values:
                raise InvalidOption(f"{name}= needs a key: task.options(key='...', {name}=...)")
        return None
    if "debounce" in values and "throttle" in values:
        raise InvalidOption("give either debounce= or throttle=, not both")
    if_exists = values.get("if_exists", "replace" if "debounce" in values else "return")
    check_choice(if_exists, get_args(IfExists), what="if_exists")
    if "debounce" in values and if_exists != "replace":
        raise InvalidOption(f"debounce= replaces what waits; it does not go with if_exists={if_exists!r}")
    if "throttle" in values and if_exists == "replace":
        raise InvalidOption("throttle= lets the first request stand; it does not go with if_exists='replace'")
    key = values["key"]
    if not isinstance(key, str) or not 0 < len(key) <= MAX_KEY:
        raise InvalidOption(f"key must be text of 1 to {MAX_KEY} characters, not {shown(key)}")
    return Key(
        value=key,
        if_exists=if_exists,
        keep=parse_duration(values["keep_key"], what="keep_key") if "keep_key" in values else None,
        period=parse_duration(values["throttle"], what="throttle") if "throttle" in values else None,
    )


def _ttl(values: Mapping[str, object], name: str) -> Micros | None:
    if name not in values:
        return None
    given: Duration | None = values[name]  # type: ignore[assignment]  # `parse` checks it
    return FOREVER if given is None else parse_duration(given, what=name)


def check_known(values: Mapping[str, object], known: frozenset[str], *, where: str = "options are") -> None:
    """Raise `InvalidOption` for an option that is not known."""
    if unknown := sorted(set(values) - known):
        offer = did_you_mean(unknown[0], sorted(known))
        text = f"unknown option {unknown[0]!r}; {offer and f'{offer} '}{where} {', '.join(sorted(known))}"
        raise InvalidOption(text)
