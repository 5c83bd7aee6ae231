"""Tells in sentences what happened to a job, and why it has not run yet."""

from __future__ import annotations

from duetime.model.explain.facts import Facts, LimitFacts, Sentence
from duetime.model.explain.hindrances import hindrances
from duetime.model.explain.story import story

__all__ = ["Facts", "LimitFacts", "Sentence", "explain"]


def explain(facts: Facts) -> tuple[Sentence, ...]:
    """Return the story of a job in the order of time, then what it waits for."""
    return (*story(facts), *hindrances(facts))
