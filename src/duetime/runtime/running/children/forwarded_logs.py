"""Log records of a child, sent to its worker and handled there, as if the job had run in it."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable

from duetime.runtime.error_text import describe_error
from duetime.runtime.running.children.messages import ForwardedRecord
from duetime.runtime.running.context import current_run

log = logging.getLogger("duetime.worker")

MAX_TEXT = 16_000


class LogForwarder(logging.Handler):
    """Tells every record that it is given."""

    def __init__(self, tell: Callable[[ForwardedRecord], None]) -> None:
        super().__init__()
        self._tell = tell
        self._plain = logging.Formatter()

    def emit(self, record: logging.LogRecord) -> None:
        """Tell the text of a record: its arguments may be anything, and need not travel."""
        try:
            text = record.getMessage()
        except Exception as error:  # noqa: BLE001 - a bad format string is reported where the record is read
            text = f"{record.msg!r} cannot be formatted: {describe_error(error)}"
        exception = self._plain.formatException(record.exc_info) if record.exc_info else None
        run = current_run.get(None)
        self._tell(
            ForwardedRecord(
                token=None if run is None else run.claim.token,
                name=_bounded_text(record.name),
                level=record.levelno,
                text=_bounded_text(text),
                created=record.created,
                path=_bounded_text(record.pathname),
                line=record.lineno,
                function=record.funcName or "",
                thread=_bounded_text(record.threadName or ""),
                exception=None if exception is None else _bounded_text(exception),
            )
        )


def forward_logs(tell: Callable[[ForwardedRecord], None], *, level: int) -> None:
    """Tell what the root logger hears, until the job's own code configures logging otherwise."""
    # Already here `basicConfig` in a job's module finds a handler and adds none, so that nothing is said twice.
    logging.basicConfig(level=level, handlers=[LogForwarder(tell)], force=True)


def handle_forwarded(told: ForwardedRecord, *, pid: int) -> None:
    """Give a child's record to the loggers of this process; what they raise is no fault of the child's."""
    try:
        _handle_record(told, pid)
    except Exception:
        with contextlib.suppress(Exception):
            log.exception("a log record of child process %d was refused", pid)


def _handle_record(told: ForwardedRecord, pid: int) -> None:
    logger = logging.getLogger(told.name)
    if not logger.isEnabledFor(told.level):
        return
    record = logger.makeRecord(
        told.name, told.level, told.path, told.line, told.text, (), None, func=told.function
    )
    record.created = told.created
    record.msecs = told.created % 1 * 1000
    record.process = pid
    record.processName = "duetime-child"
    record.threadName = told.thread
    record.exc_text = told.exception
    logger.handle(record)


def _bounded_text(text: str) -> str:
    return text[:MAX_TEXT].encode("utf-8", "backslashreplace").decode()
