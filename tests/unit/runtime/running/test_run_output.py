from __future__ import annotations

from duetime.model.job import Token
from duetime.model.reports import HEAD_LINES, TAIL_LINES, NewLogPart, Progress
from duetime.runtime.running.run import NO_OUTPUT, RunOutput, UnwrittenOutput
from tests.unit.runtime.kit import CLAIM

TOKEN = Token("job", 1, "claim")


class Listening:
    """Counts how often it was called."""

    captures_logs = True

    def __init__(self) -> None:
        self.calls = 0

    def hear(self, voice: RunOutput) -> None:
        self.calls += 1


def part(line: int, text: str) -> NewLogPart:
    return NewLogPart(TOKEN, 1, line, text)


def test_only_the_latest_progress_is_kept() -> None:
    voice = RunOutput(CLAIM, Listening())
    voice.tell(0.1, "one")
    voice.tell(0.2, "two")
    assert voice.words() == UnwrittenOutput(Progress(TOKEN, 0.2, "two"))


def test_the_listener_is_called_once_until_it_looks() -> None:
    ears = Listening()
    voice = RunOutput(CLAIM, ears)
    for _ in range(3):
        voice.tell(0.1, "")
        voice.log("line")
    assert ears.calls == 1
    voice.words()
    voice.log("line")
    assert ears.calls == 2


def test_what_was_not_heard_is_said_again_and_what_came_after_it_later() -> None:
    ears = Listening()
    voice = RunOutput(CLAIM, ears)
    voice.log("one")
    first = voice.words()
    assert first.logs == (part(1, "one"),)
    voice.log("two")
    assert voice.words() == first
    assert ears.calls == 2
    voice.heard(first)
    assert ears.calls == 3, "there is more to say"
    assert voice.words().logs == (part(2, "two"),)


def test_while_nobody_hears_it_a_log_stays_within_its_bounds() -> None:
    voice = RunOutput(CLAIM, Listening())
    for _ in range(20):
        for n in range(HEAD_LINES):
            voice.log(f"line {n}")
        words = voice.words()
    assert sum(part.text.count("\n") + 1 for part in words.logs) <= HEAD_LINES
    last = voice.last_words()
    assert sum(part.text.count("\n") + 1 for part in last.logs) <= HEAD_LINES + TAIL_LINES


def test_what_is_said_while_the_store_is_told_is_not_forgotten() -> None:
    voice = RunOutput(CLAIM, Listening())
    voice.tell(0.1, "")
    voice.log("one")
    words = voice.words()
    voice.tell(0.2, "")
    voice.log("two")
    voice.heard(words)
    assert voice.words() == UnwrittenOutput(Progress(TOKEN, 0.2, ""), (part(2, "two"),))


def test_last_words_are_taken_once_and_nothing_comes_after_them() -> None:
    voice = RunOutput(CLAIM, Listening())
    voice.tell(0.1, "")
    voice.log("one")
    assert voice.last_words() == UnwrittenOutput(Progress(TOKEN, 0.1, ""), (part(1, "one"),))
    voice.tell(0.2, "")
    voice.log("two")
    assert voice.words() == NO_OUTPUT


def test_last_words_repeat_what_may_not_have_been_heard() -> None:
    voice = RunOutput(CLAIM, Listening())
    voice.log("one")
    voice.words()
    voice.log("two")
    assert voice.last_words().logs == (part(1, "one"), part(2, "two"))


def test_a_closed_voice_says_the_rest_and_calls_for_it() -> None:
    ears = Listening()
    voice = RunOutput(CLAIM, ears)
    voice.log("one")
    voice.words()
    voice.close()
    assert ears.calls == 2
    assert voice.words().logs == (part(1, "one"),)
