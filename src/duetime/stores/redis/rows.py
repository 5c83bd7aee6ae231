"""Values to MessagePack and back."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import msgspec

from duetime.model.audit import AuditEntry
from duetime.model.job import NewJob
from duetime.model.terms import join_tags

Facts = dict[str, Any]
FACTS: Final = msgspec.msgpack.Decoder(tuple[Facts, list[Any]])
"""For answers whose rows are none, or are looked at one by one."""

_encode: Final = msgspec.msgpack.Encoder().encode
_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")


def pack(request: object) -> bytes:
    """Encode what a function is given."""
    try:
        return _encode(request)
    except UnicodeEncodeError:
        return _encode(_cleaned(request))


def clean_text(text: str) -> str:
    """Replace what other stores cannot keep in text: NUL and lone halves of surrogate pairs."""
    return _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {name: _cleaned(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(each) for each in value]
    return value


_SPECIAL: Final = NewJob._fields.index("terms")
_OWN: Final = NewJob._fields[:_SPECIAL]
_NOTHING_SPECIAL: Final = tuple(NewJob._field_defaults[name] for name in NewJob._fields[_SPECIAL:])


def new_job(job: NewJob) -> dict[str, object]:
    """Name what a request says, without what it leaves open."""
    row: dict[str, object] = {
        name: value for name, value in zip(_OWN, job, strict=False) if value is not None
    }
    return row if job[_SPECIAL:] == _NOTHING_SPECIAL else row | _special(job)


def _special(job: NewJob) -> dict[str, object]:
    terms, key = job.terms, job.key
    row = {
        "parent": job.parent,
        "expires_at": job.expires_at,
        "tags": join_tags(terms.tags),
        "callbacks": terms.callbacks,
        "expires": terms.expires,
        "result_ttl": terms.result_ttl,
        "failure_ttl": terms.failure_ttl,
        "gate": terms.gate,
        "unique_key": None if key is None else clean_text(key.value),
        "keep_key": None if key is None else key.keep,
        "key_period": None if key is None else key.period,
    }
    return {name: value for name, value in row.items() if value is not None}


def entry(noted: AuditEntry) -> dict[str, object]:
    """Name what an entry says."""
    try:
        detail = msgspec.json.encode(noted.detail).decode()
    except UnicodeEncodeError:
        detail = clean_text(json.dumps(noted.detail, ensure_ascii=False))
    return {"id": noted.id, "who": noted.who, "verb": noted.verb, "target": noted.target, "detail": detail}
