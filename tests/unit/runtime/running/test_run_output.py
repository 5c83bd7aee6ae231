from __future__ import annotations

from duetime.model.job import Token
from duetime.model.reports import HEAD_LINES, TAIL_LINES, NewLogPart, Progress
from duetime.runtime.running.run import RunOutput, UnwrittenOutput
from tests.unit.runtime.kit import CLAIM

TOKEN = Token("job", 1, "claim")


class Listening:
    """Counts how often it was called."""

    captures_logs = True

    def __init__(self) -> None:
        self.calls = 0

    def notice(self, output: RunOutput) -> None:
        self.calls += 1


def part(line: int, text: str) -> NewLogPart:
    return NewLogPart(TOKEN, 1, line, text)


def test_only_the_latest_progress_is_kept() -> None:
    output = RunOutput(CLAIM, Listening())
    output.set_progress(0.1, "one")
    output.set_progress(0.2, "two")
    assert output.read() == UnwrittenOutput(Progress(TOKEN, 0.2, "two"))


def test_the_listener_is_called_once_until_it_looks() -> None:
    reader = Listening()
    output = RunOutput(CLAIM, reader)
    for _ in range(3):
        output.set_progress(0.1, "")
        output.add_log("line")
    assert reader.calls == 1
    output.read()
    output.add_log("line")
    assert reader.calls == 2


def test_what_was_not_heard_is_said_again_and_what_came_after_it_later() -> None:
    reader = Listening()
    output = RunOutput(CLAIM, reader)
    output.add_log("one")
    first = output.read()
    assert first.logs == (part(1, "one"),)
    output.add_log("two")
    assert output.read() == first
    assert reader.calls == 2
    output.written(first)
    assert reader.calls == 3, "there is more to say"
    assert output.read().logs == (part(2, "two"),)


def test_while_nobody_hears_it_a_log_stays_within_its_bounds() -> None:
    output = RunOutput(CLAIM, Listening())
    for _ in range(20):
        for n in range(HEAD_LINES):
            output.add_log(f"line {n}")
        words = output.read()
    assert sum(part.text.count("\n") + 1 for part in words.logs) <= HEAD_LINES
    last = output.take_rest()
    assert sum(part.text.count("\n") + 1 for part in last.logs) <= HEAD_LINES + TAIL_LINES


def test_what_is_said_while_the_store_is_told_is_not_forgotten() -> None:
    output = RunOutput(CLAIM, Listening())
    output.set_progress(0.1, "")
    output.add_log("one")
    words = output.read()
    output.set_progress(0.2, "")
    output.add_log("two")
    output.written(words)
    assert output.read() == UnwrittenOutput(Progress(TOKEN, 0.2, ""), (part(2, "two"),))


def test_last_words_are_taken_once_and_nothing_comes_after_them() -> None:
    output = RunOutput(CLAIM, Listening())
    output.set_progress(0.1, "")
    output.add_log("one")
    assert output.take_rest() == UnwrittenOutput(Progress(TOKEN, 0.1, ""), (part(1, "one"),))
    output.set_progress(0.2, "")
    output.add_log("two")
    assert output.read() == UnwrittenOutput()


def test_last_words_repeat_what_may_not_have_been_heard() -> None:
    output = RunOutput(CLAIM, Listening())
    output.add_log("one")
    output.read()
    output.add_log("two")
    assert output.take_rest().logs == (part(1, "one"), part(2, "two"))


def test_a_closed_voice_says_the_rest_and_calls_for_it() -> None:
    reader = Listening()
    output = RunOutput(CLAIM, reader)
    output.add_log("one")
    output.read()
    output.close()
    assert reader.calls == 2
    assert output.read().logs == (part(1, "one"),)
