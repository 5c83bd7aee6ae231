from __future__ import annotations

from functools import partial

import pytest

from duetime import Cancel, Retry, Snooze
from duetime.model.outcome import Cancelled, Failed, Snoozed, Succeeded
from duetime.model.time import SECOND
from duetime.runtime.error_text import MAX_ERROR
from duetime.runtime.running.call_outcome import (
    masked_outcome,
    outcome_of_call,
    outcome_of_error,
    outcome_of_value,
)


def test_a_value_is_a_result() -> None:
    assert outcome_of_value([1]) == Succeeded("[1]")
    assert outcome_of_value(None) == Succeeded()


def test_a_coroutine_that_nothing_awaits_is_a_failure_that_is_not_tried_again() -> None:
    async def work() -> int:
        return 1

    for outcome in (outcome_of_value(work()), outcome_of_call(work)):
        assert isinstance(outcome, Failed)
        assert outcome.final
        assert "its work was not done; await it" in outcome.error


def test_signals_mean_the_same_raised_or_returned() -> None:
    assert outcome_of_error(Cancel("enough")) == outcome_of_value(Cancel("enough")) == Cancelled("enough")
    assert outcome_of_error(Snooze("2s")) == outcome_of_value(Snooze("2s")) == Snoozed(2 * SECOND)
    assert outcome_of_error(Retry(5, "busy")) == outcome_of_value(Retry(5, "busy"))


def test_the_reason_of_a_cancel_is_text_that_can_be_kept() -> None:
    assert outcome_of_error(Cancel("caf\udce9")) == Cancelled("caf\\udce9")
    verdict = outcome_of_error(Cancel("x" * 17_000_000))
    assert isinstance(verdict, Cancelled)
    assert len(verdict.reason) < 2 * MAX_ERROR
    assert "characters cut" in verdict.reason


def test_a_signal_that_comes_out_of_a_task_group_alone_is_one() -> None:
    nested = ExceptionGroup("outer", [ExceptionGroup("inner", [Cancel("enough")])])
    assert outcome_of_error(nested) == Cancelled("enough")
    mixed = ExceptionGroup("both", [Cancel("enough"), ValueError("boom")])
    assert isinstance(outcome_of_error(mixed), Failed)


def test_an_exception_stays_behind_where_its_texts_are_masked() -> None:
    error = ValueError("correct horse")
    masked = masked_outcome(outcome_of_error(error), ["correct horse"])
    assert isinstance(masked, Failed)
    assert (masked.error, masked.error_type, masked.cause) == ("ValueError: ***", "ValueError", None)
    assert masked_outcome(Cancelled("correct horse"), ["correct horse"]) == Cancelled("***")
    assert masked_outcome(Succeeded('"correct horse"'), ["correct horse"]) == Succeeded('"correct horse"')


def test_a_retry_is_a_failure_with_a_wait_of_its_own() -> None:
    asked = partial(Failed, error_type="duetime.model.outcome.Retry")
    assert outcome_of_value(Retry(5, "busy")) == asked(error="Retry: busy", wait=5 * SECOND)
    assert outcome_of_value(Retry()) == asked(error="Retry: the handler asked for another try", wait=None)


def test_a_retry_that_was_raised_shows_where_and_why() -> None:
    def ask() -> None:
        try:
            int("no room")
        except ValueError as error:
            raise Retry(reason="busy") from error

    try:
        ask()
    except Retry as signal:
        verdict = outcome_of_error(signal)
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
    for verdict in (outcome_of_error(signal), outcome_of_value(signal)):
        assert isinstance(verdict, Failed)
        assert type(signal).__name__ in verdict.error
        assert "cannot be read" in verdict.error


def test_an_exception_that_cannot_be_described_is_a_failure_all_the_same() -> None:
    class Unspeakable(Exception):
        def __str__(self) -> str:
            raise SystemExit

    def call() -> None:
        raise Unspeakable

    outcome = outcome_of_call(call)
    assert isinstance(outcome, Failed)
    assert outcome.error == "Unspeakable, which cannot be described"
