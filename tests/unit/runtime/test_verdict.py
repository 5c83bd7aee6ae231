from __future__ import annotations

import pytest

from duetime import Cancel, Retry, Snooze
from duetime.model.instants import SECOND
from duetime.model.outcome import Cancelled, Failed, Snoozed, Succeeded
from duetime.runtime.failure import MAX_ERROR
from duetime.runtime.verdict import raised, returned


def test_a_value_is_a_result() -> None:
    assert returned([1]) == Succeeded("[1]")
    assert returned(None) == Succeeded()


def test_signals_mean_the_same_raised_or_returned() -> None:
    assert raised(Cancel("enough")) == returned(Cancel("enough")) == Cancelled("enough")
    assert raised(Snooze("2s")) == returned(Snooze("2s")) == Snoozed(2 * SECOND)
    assert raised(Retry(5, "busy")) == returned(Retry(5, "busy"))


def test_the_reason_of_a_cancel_is_text_that_can_be_kept() -> None:
    assert raised(Cancel("caf\udce9")) == Cancelled("caf\\udce9")
    verdict = raised(Cancel("x" * 17_000_000))
    assert isinstance(verdict, Cancelled)
    assert len(verdict.reason) < 2 * MAX_ERROR
    assert "characters cut" in verdict.reason


def test_a_signal_that_comes_out_of_a_task_group_alone_is_one() -> None:
    nested = ExceptionGroup("outer", [ExceptionGroup("inner", [Cancel("enough")])])
    assert raised(nested) == Cancelled("enough")
    mixed = ExceptionGroup("both", [Cancel("enough"), ValueError("boom")])
    assert isinstance(raised(mixed), Failed)


def test_a_retry_is_a_failure_with_a_wait_of_its_own() -> None:
    assert returned(Retry(5, "busy")) == Failed(error="Retry: busy", wait=5 * SECOND)
    assert returned(Retry()) == Failed(error="Retry: the handler asked for another try", wait=None)


def test_a_retry_that_was_raised_shows_where_and_why() -> None:
    def ask() -> None:
        try:
            int("no room")
        except ValueError as error:
            raise Retry(reason="busy") from error

    try:
        ask()
    except Retry as signal:
        verdict = raised(signal)
    assert isinstance(verdict, Failed)
    assert verdict.traceback is not None
    assert "in ask\n" in verdict.traceback
    assert "ValueError: invalid literal" in verdict.traceback


class Nap(Snooze):
    def __init__(self) -> None:
        """Forget the delay."""


class Odd(Snooze):
    def __init__(self) -> None:
        self.delay = "soon"  # type: ignore[assignment]


class Mute:
    def __str__(self) -> str:
        raise LookupError


@pytest.mark.covers("slot-lost")
@pytest.mark.parametrize("signal", [Nap(), Odd(), Cancel(Mute())])  # type: ignore[arg-type]
def test_a_signal_that_cannot_be_read_is_a_failure(signal: Snooze | Cancel) -> None:
    for verdict in (raised(signal), returned(signal)):
        assert isinstance(verdict, Failed)
        assert type(signal).__name__ in verdict.error
        assert "cannot be read" in verdict.error
