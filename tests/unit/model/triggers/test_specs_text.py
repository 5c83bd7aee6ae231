from __future__ import annotations

from datetime import UTC, datetime

import pytest

from duetime import at, cron, every
from duetime.errors import InvalidTrigger
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.specs import same_rule, trigger_from_text, trigger_to_text

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "trigger", [cron("0 3 * * *", tz="Europe/Riga"), every("15m"), every("15m", start=START), at(START)]
)
def test_a_trigger_is_read_back_as_it_was(trigger: Trigger) -> None:
    assert trigger_from_text(trigger_to_text(trigger)) == trigger


def test_what_is_no_json_is_refused() -> None:
    with pytest.raises(InvalidTrigger, match="stored as JSON"):
        trigger_from_text("every day")


def test_a_rule_is_the_same_wherever_it_counts_from() -> None:
    assert same_rule(every("15m").anchored(77), every("15m"))
    assert same_rule(every("15m", start=START), every("15m", start=START))
    assert same_rule(cron("H 3 * * *").seeded("nightly"), cron("H 3 * * *").seeded("nightly"))


@pytest.mark.parametrize(
    "written",
    [
        every("10m"),
        every("15m", start=datetime(2026, 1, 2, tzinfo=UTC)),
        every("15m", times=3),
        cron("*/15 * * * *"),
        at(START),
    ],
)
def test_a_rule_that_says_something_else_is_another_one(written: Trigger) -> None:
    assert not same_rule(every("15m").anchored(77), written)
