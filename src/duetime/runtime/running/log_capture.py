"""Collects what runs log with the standard library's `logging`."""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from duetime.runtime.running.run import Run, current_run

_formatter: Final = logging.Formatter()


class RunLogHandler(logging.Handler):
    """Gives each record to the run in whose context it was made; all others pass."""

    def __init__(self) -> None:
        super().__init__()
        self._inside = threading.local()
        # An owner may vanish, by a garbage collection, in the midst of what is done here.
        self._users_lock = threading.RLock()
        self._users = 0

    def attach(self, owner: object) -> Callable[[], object]:
        """Collect from now on, until the answer is called or the owner is gone."""
        with self._users_lock:
            self._users += 1
            logging.root.addHandler(self)
        return weakref.finalize(owner, self._detach)

    def _detach(self) -> None:
        """Collect no more, once no worker wants it."""
        with self._users_lock:
            self._users -= 1
            if self._users == 0:
                logging.root.removeHandler(self)

    def handle(self, record: logging.LogRecord) -> bool:
        """Take a record; without a lock, because most belong to no run, and the others to one that has its own."""
        if len(logging.root.handlers) == 1:
            self._stand_in(record)
        run = current_run.get(None)
        reader = None if run is None else run.reader
        # What Duetime itself says is about the worker, not about what the job does.
        if run and reader and reader.captures_logs and not f"{record.name}.".startswith("duetime."):
            self._collect(run, record)
        return True

    def _collect(self, run: Run, record: logging.LogRecord) -> None:
        # What is logged to format a record would have no end.
        if getattr(self._inside, "busy", False):
            return
        self._inside.busy = True
        try:
            if (output := run.open_output()) is not None:
                output.add_log(record_text(record))
        except Exception:  # noqa: BLE001 - the job must not fail for a line of its log
            self.handleError(record)
        finally:
            self._inside.busy = False

    def _stand_in(self, record: logging.LogRecord) -> None:
        """Let warnings be printed as they are where logging is not set up; our handler would hide that."""
        last = logging.lastResort
        if last is not None and record.levelno >= last.level and self._is_alone(record.name):
            last.handle(record)

    def _is_alone(self, name: str) -> bool:
        logger: logging.Logger | None = logging.getLogger(name)
        while logger is not None:
            if any(handler is not self for handler in logger.handlers):
                return False
            logger = logger.parent if logger.propagate else None
        return True


run_log_capture: Final = RunLogHandler()
"""The one handler of this process."""


def record_text(record: logging.LogRecord) -> str:
    """Return a record as lines: time in UTC, level, logger and message, then its traceback; never raises."""
    moment = datetime.fromtimestamp(record.created, UTC).replace(tzinfo=None)
    start = f"{moment.isoformat(timespec='milliseconds')}Z {record.levelname} {record.name}:"
    try:
        lines = [f"{start} {record.getMessage()}"]
        lines += [_formatter.formatException(record.exc_info)] if record.exc_info else []
        # A record of a child process brings its traceback as text.
        lines += [record.exc_text] if record.exc_text and not record.exc_info else []
        lines += [record.stack_info] if record.stack_info else []
    except Exception as error:  # noqa: BLE001 - the job must not fail for a line of its log
        return f"{start} (a record that could not be written: {type(error).__name__})"
    return "\n".join(lines)
