"""Tells in sentences what happened to a job or a schedule, and why it has not run."""

from __future__ import annotations

from duetime.model.explain.asking import Question, Window, ask
from duetime.model.explain.facts import Facts, LimitFacts, Sentence
from duetime.model.explain.hindrances import hindrances
from duetime.model.explain.occurrences import was_made
from duetime.model.explain.schedule import MOST_TOLD, explain_schedule
from duetime.model.explain.schedule_facts import ScheduleFacts
from duetime.model.explain.story import story

__all__ = [
    "MOST_TOLD",
    "Facts",
    "LimitFacts",
    "Question",
    "ScheduleFacts",
    "Sentence",
    "Window",
    "ask",
    "explain",
    "explain_schedule",
    "was_made",
]


def explain(facts: Facts) -> tuple[Sentence, ...]:
    """Return the story of a job in the order of time, then what it waits for."""
    return (*story(facts), *hindrances(facts))
