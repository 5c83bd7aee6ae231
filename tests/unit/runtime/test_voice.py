from __future__ import annotations

from duetime.model.job import Token
from duetime.model.log_book import HEAD_LINES, TAIL_LINES
from duetime.model.reports import NewLogPart, Progress
from duetime.runtime.voice import SILENCE, Voice, Words
from tests.unit.runtime.kit import CLAIM

TOKEN = Token("job", 1, "claim")


class Listening:
    """Counts how often it was called."""

    captures_logs = True

    def __init__(self) -> None:
        self.calls = 0

    def hear(self, voice: Voice) -> None:
        self.calls += 1


def part(number: int, text: str) -> NewLogPart:
    return NewLogPart(TOKEN, 1, number, text)


def test_only_the_latest_progress_is_kept() -> None:
    voice = Voice(CLAIM, Listening())
    voice.tell(0.1, "one")
    voice.tell(0.2, "two")
    assert voice.words() == Words(Progress(TOKEN, 0.2, "two"))


def test_the_listener_is_called_once_until_it_looks() -> None:
    ears = Listening()
    voice = Voice(CLAIM, ears)
    for _ in range(3):
        voice.tell(0.1, "")
        voice.log("line")
    assert ears.calls == 1
    voice.words()
    voice.log("line")
    assert ears.calls == 2


def test_what_was_not_heard_is_said_again_under_the_same_number() -> None:
    voice = Voice(CLAIM, Listening())
    voice.log("one")
    assert voice.words().logs == (part(0, "one"),)
    voice.log("two")
    words = voice.words()
    assert words.logs == (part(0, "one"), part(1, "two"))
    voice.heard(words)
    assert voice.words() == SILENCE
    voice.log("three")
    assert voice.words().logs == (part(2, "three"),)


def test_what_is_said_while_the_store_is_told_is_not_forgotten() -> None:
    voice = Voice(CLAIM, Listening())
    voice.tell(0.1, "")
    voice.log("one")
    words = voice.words()
    voice.tell(0.2, "")
    voice.log("two")
    voice.heard(words)
    assert voice.words() == Words(Progress(TOKEN, 0.2, ""), (part(1, "two"),))


def test_last_words_are_taken_once_and_nothing_comes_after_them() -> None:
    voice = Voice(CLAIM, Listening())
    voice.tell(0.1, "")
    voice.log("one")
    assert voice.last_words() == Words(Progress(TOKEN, 0.1, ""), (part(0, "one"),))
    voice.tell(0.2, "")
    voice.log("two")
    assert voice.words() == SILENCE


def test_the_end_of_a_long_log_comes_with_the_last_words() -> None:
    voice = Voice(CLAIM, Listening())
    for n in range(HEAD_LINES + TAIL_LINES + 1):
        voice.log(f"line {n}")
    voice.heard(voice.words())
    [rest] = voice.last_words().logs
    assert rest.part == 1
    assert rest.text.startswith("… 1 lines were dropped here …\n")


def test_a_closed_voice_says_the_rest_and_calls_for_it() -> None:
    ears = Listening()
    voice = Voice(CLAIM, ears)
    voice.log("one")
    voice.words()
    voice.close()
    assert ears.calls == 2
    assert voice.words().logs == (part(0, "one"),)
