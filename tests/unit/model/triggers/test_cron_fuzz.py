"""Whatever is written: a rule, or a message that helps, in a bounded number of steps."""

from __future__ import annotations

import contextlib
import re
from datetime import UTC, datetime

import pytest
from hypothesis import example, given, strategies as st

from duetime.errors import InvalidCron
from duetime.model.triggers.cron import cron
from duetime.model.triggers.cron_expression import CRON_MACROS, check_cron_text, parse_cron
from tests.support.profiles import tries
from tests.support.steps import steps_of

MOST_STEPS = 10_000
PIECES = [
    *"0123456789*/-,#LWH()@?= ",
    *(
        "59",
        "60",
        "23",
        "31",
        "MON",
        "FRI#2",
        "sun",
        "JAN",
        "feb",
        "L",
        "LW",
        "15W",
        "*/5",
        "H(1-9)/2",
        "5-1",
        "L-3",
        "L-3W",
        "Monday",
        "2030",
        "1970/1",
    ),
    *(
        "@daily",
        "@every",
        "TZ=",
        "Europe/Riga",
        "\t",
        "\n",
        "é",
        "\N{ARABIC-INDIC DIGIT THREE}",
        "\x00",
        "\x1b",
    ),
]
FIELDS = st.lists(st.sampled_from(PIECES), min_size=1, max_size=6).map("".join)
LINES = st.lists(FIELDS, min_size=4, max_size=8).map(" ".join)
# As long as is read at all, and longer.
LONG = st.builds(lambda piece, times: piece * times, FIELDS, st.integers(1, 2_000))
TEXTS = st.one_of(
    st.text(), LINES, LONG, st.builds("{} * * * *".format, LONG), st.builds("0 0 {} 2 *".format, LONG)
)


def refusal(expression: str) -> str | None:
    """Return the message, unless it is a rule, which then can be used."""
    try:
        rule = cron(expression)
    except InvalidCron as error:
        return str(error)
    assert rule.describe()
    assert rule.next_after(datetime(2025, 1, 1, tzinfo=UTC)) is not None
    return None


def read(expression: str) -> None:
    parse_cron.cache_clear()
    with contextlib.suppress(InvalidCron):
        parse_cron(check_cron_text(expression), seed="")


@pytest.mark.covers("never-comes")
@tries(4)
@given(TEXTS)
@example(",".join(["H(0-59)/1"] * 49) + " * * * *")
@example(",".join(["0-59/1"] * 70) + " * * * *")
@example("* * 29W,30W,31W,30,31 2 */7")
@example("0 0 0 29W,30W,31W,L-29W,30,31 2 */7 " + ",".join(["1970/1"] * 50))
@example("0 0 0 30,31,L-29,L-30 2 */7 1970-2199")
@example("9" * 512)
@example("a-" * 256)
def test_an_expression_is_read_in_a_bounded_number_of_steps(expression: str) -> None:
    assert steps_of(lambda: read(expression)) <= MOST_STEPS


def test_a_huge_expression_is_refused_in_hardly_any() -> None:
    for text in ("*" * 10_000_000, "1," * 5_000_000, " " * 10_000_000, "* " * 5_000_000):
        assert steps_of(lambda text=text: read(text)) <= 20  # type: ignore[misc]


@tries(4)
@given(TEXTS)
def test_every_refusal_shows_the_place_what_was_expected_and_an_example(expression: str) -> None:
    text = refusal(expression)
    if text is None or "at most 512 characters" in text:
        return
    first, line, caret, expected = text.split("\n")
    assert first.startswith("bad ")
    assert re.fullmatch(r" {3} *\^+", caret)
    # At most behind the space after the end, where something is missing.
    assert len(caret) <= len(line) + 2
    assert line.isprintable()
    told = re.fullmatch(r'expected .+, e\.g\. "(.+)"', expected)
    assert told is not None
    assert refusal(told[1]) is None, "the example is none"


@pytest.mark.parametrize("macro", [*CRON_MACROS, "@every 15m"])
def test_what_a_message_names_can_be_written(macro: str) -> None:
    assert refusal(macro) is None
    assert macro in str(refusal("@reboot"))
