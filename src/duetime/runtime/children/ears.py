"""Passes on to the worker how far a job in a child is."""

from __future__ import annotations

import threading
import time

from duetime.runtime.children.line import Line
from duetime.runtime.children.messages import Told
from duetime.runtime.voice import Voice, Words

_PAUSE = 0.1
"""Seconds between words about progress; more often nobody reads them."""


class LineEars:
    """Hears what jobs say, and says it on the line, but not each word."""

    captures_logs = False
    """They take another way: the worker's own loggers collect them."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._next = 0.0

    def hear(self, voice: Voice) -> None:
        """Pass on the latest word, now or after a pause."""
        early = self._next - time.monotonic()
        if early <= 0:
            self._pass_on(voice)
            return
        later = threading.Timer(early, self._pass_on, [voice])
        later.daemon = True
        later.start()

    def say(self, words: Words) -> None:
        """Pass on a word at once."""
        if (said := words.progress) is not None:
            self._line.say(Told(said.token, said.fraction, said.note))

    def _pass_on(self, voice: Voice) -> None:
        self._next = time.monotonic() + _PAUSE
        words = voice.words()
        self.say(words)
        voice.heard(words)
